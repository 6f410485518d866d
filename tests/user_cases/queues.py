"""TQue against its life cycle, and one queue that is right."""

from __future__ import annotations

from typing import Any

from ascend_sim import asc
from tests.user_cases.kit import F32, Told, V, Want, case, ramp, told, window

VECIN, VECOUT = asc.TPosition.VECIN, asc.TPosition.VECOUT


@case(
    "QUE-01",
    Want(
        "QUEUE", "too-many-buffers", "init", "q4",
        None, ("10 buffers", "8 exist", "q0 2, q1 2, q2 2, q3 2", "VECIN"),
    ),
)  # fmt: skip
def too_many_buffers(wrong: bool) -> Told:
    """Each buffer of a position takes an event id, and there are eight."""

    def kernel() -> None:
        pipe = asc.TPipe()
        q0, q1, q2, q3, q4, q5 = (asc.TQue(VECIN, 1) for _ in range(6))
        for queue in (q0, q1, q2, q3, q4, q5)[: 6 if wrong else 4]:
            pipe.init_buffer(que=queue, num=2, len=256)  # init

    return told(kernel)


@case(
    "QUE-02",
    Want(
        "QUEUE", "deque-empty", "deque", "qx",
        None, ("qx is empty", "buffer 0 was allocated at", "not enqueued"),
    ),
)  # fmt: skip
def never_enqueued(wrong: bool) -> Told:
    """A buffer was filled and not handed over."""

    def kernel(gm: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        qx = asc.TQue(VECIN, 1)
        pipe.init_buffer(que=qx, num=2, len=256)
        x = qx.alloc_tensor(F32)
        asc.data_copy(x, window(gm), 64)
        if not wrong:
            qx.enque(x)
        y = qx.deque(F32)  # deque
        asc.adds(y, y, 1.0, 64)
        qx.free_tensor(y)

    return told(kernel, ramp(64))


@case(
    "QUE-04",
    Want(
        "QUEUE",
        "use-after-free",
        "add",
        "qx[0]",
        (0, 256),
        ("adds uses qx[0] after free_tensor at",),
    ),
)
def used_after_free(wrong: bool) -> Told:
    """A buffer that went back is still read."""

    def kernel(gm: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        qx, work = asc.TQue(VECIN, 1), asc.TBuf()
        pipe.init_buffer(que=qx, num=2, len=256)
        pipe.init_buffer(work, 256)
        x = qx.alloc_tensor(F32)
        asc.data_copy(x, window(gm), 64)
        qx.enque(x)
        x = qx.deque(F32)
        if wrong:
            qx.free_tensor(x)
        asc.adds(work.get(F32), x, 1.0, 64)  # add
        if not wrong:
            qx.free_tensor(x)

    return told(kernel, ramp(64))


@case("QUE-05")
def depth_one_with_two_buffers(wrong: bool) -> Told:
    """Depth counts enque calls in a row; what overlaps is a matter of the buffers."""

    def kernel(gm: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        qx, work = asc.TQue(VECIN, 1), asc.TBuf()
        pipe.init_buffer(que=qx, num=2, len=4096)
        pipe.init_buffer(work, 4096)
        for tile in range(8):
            x = qx.alloc_tensor(F32)
            asc.data_copy(x, window(gm)[1024 * tile :], 1024)
            qx.enque(x)
            x = qx.deque(F32)
            asc.div(work.get(F32), x, x, 1024)
            asc.pipe_barrier(V)
            qx.free_tensor(x)

    said = told(kernel, ramp(8192))
    assert said.run is not None
    named: dict[str, list[Any]] = {}
    for item in said.run.log.cores[0].items:
        named.setdefault(item.name, []).append(item)
    assert all(named["data_copy"][i + 1].start < named["div"][i].end for i in range(7))
    return said
