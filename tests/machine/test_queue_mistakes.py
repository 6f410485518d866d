"""Every way to misuse TPipe, TQue and TBuf: which error or finding, on which line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import (
    BoundsError,
    CapacityError,
    DeadlockError,
    KernelError,
    QueueError,
)
from tests.machine.kit import kinds, line_of, local, toy_run, window


def floats(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


def queue_kernel(
    body: Callable[[Any, Any], None], position: Any = asc.TPosition.VECIN, num: int = 1
) -> Any:
    """A kernel that hands a queue and another one of its kind to `body`."""

    def kernel() -> None:
        pipe = asc.TPipe()
        queue, other = asc.TQue(position, 1), asc.TQue(position, 1)
        pipe.init_buffer(que=queue, num=num, len=256)
        pipe.init_buffer(que=other, num=1, len=256)
        body(queue, other)

    return kernel


def double_free(queue: Any, _: Any) -> None:
    t = queue.alloc_tensor(asc.float32)
    queue.free_tensor(t)
    queue.free_tensor(t)  # here


def free_of_an_enqueued_tensor(queue: Any, _: Any) -> None:
    t = queue.alloc_tensor(asc.float32)
    queue.enque(t)
    queue.free_tensor(t)  # here


def deque_of_an_empty_queue(queue: Any, _: Any) -> None:
    queue.deque(asc.float32)  # here


def deque_before_enque(queue: Any, _: Any) -> None:
    queue.alloc_tensor(asc.float32)
    queue.deque(asc.float32)  # here


def enque_of_a_freed_tensor(queue: Any, _: Any) -> None:
    t = queue.alloc_tensor(asc.float32)
    queue.free_tensor(t)
    queue.enque(t)  # here


def enque_twice(queue: Any, _: Any) -> None:
    t = queue.alloc_tensor(asc.float32)
    queue.enque(t)
    queue.enque(t)  # here


def enque_beyond_the_depth(queue: Any, _: Any) -> None:
    for _ in range(2):
        t = queue.alloc_tensor(asc.float32)
        queue.enque(t)  # here


def foreign_tensor_enqueued(queue: Any, other: Any) -> None:
    t = other.alloc_tensor(asc.float32)
    queue.enque(t)  # here


def foreign_tensor_freed(queue: Any, other: Any) -> None:
    t = other.alloc_tensor(asc.float32)
    queue.free_tensor(t)  # here


def static_tensor_freed(queue: Any, _: Any) -> None:
    queue.free_tensor(local(0, 64))  # here


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (
            double_free,
            "double-free",
            r"queue\[0\] is free already, since .*test_queue_mistakes.py:\d+",
        ),
        (
            free_of_an_enqueued_tensor,
            "free-enqueued",
            r"still enqueued \(at .*test_queue_mistakes.py:\d+",
        ),
        (deque_of_an_empty_queue, "deque-empty", "queue is empty: nothing was enqueued"),
        (
            deque_before_enque,
            "deque-empty",
            r"allocated at .*test_queue_mistakes.py:\d+ .* and not enqueued",
        ),
        (enque_of_a_freed_tensor, "enque-state", r"queue\[0\] is free, only an allocated tensor"),
        (enque_twice, "enque-state", r"queue\[0\] is enqueued, only an allocated tensor"),
        (enque_beyond_the_depth, "queue-depth", "depth 1 .* a depth of 2"),
        (foreign_tensor_enqueued, "foreign-tensor", r"other\[0\] is no tensor of queue"),
        (foreign_tensor_freed, "foreign-tensor", r"other\[0\] is no tensor of queue"),
        (static_tensor_freed, "foreign-tensor", "is no tensor of queue"),
    ],
)
def test_life_of_a_tensor(body: Callable[[Any, Any], None], code: str, text: str) -> None:
    with pytest.raises(QueueError) as caught:
        toy_run(queue_kernel(body, num=2))
    finding = caught.value.finding
    assert (finding.kind, finding.code) == ("QUEUE", code)
    assert re.search(text, str(caught.value))
    assert (finding.file, finding.line) == (__file__, line_of(body, "# here"))
    assert kinds(caught.value.run) == [("QUEUE", code)]


def test_alloc_that_would_spin_forever() -> None:
    """Nobody frees: the hardware would search for ever. The message names who holds the buffers, and where."""

    def body(queue: Any, _: Any) -> None:
        t = queue.alloc_tensor(asc.float32)  # first holder
        queue.enque(t)
        u = queue.alloc_tensor(asc.float32)  # second holder
        assert u is not t
        queue.alloc_tensor(asc.float32)  # here

    with pytest.raises(DeadlockError) as caught:
        toy_run(queue_kernel(body, num=2))
    finding = caught.value.finding
    assert (finding.kind, finding.code) == ("DEADLOCK", "alloc-spins-forever")
    assert finding.line == line_of(body, "# here")
    message = str(caught.value)
    assert "none of its 2 buffers is free" in message
    assert (
        f"buffer 0 is enqueued since tests/machine/test_queue_mistakes.py:{line_of(body, 'queue.enque')}"
        in message
    )
    assert (
        f"buffer 1 is allocated since tests/machine/test_queue_mistakes.py:{line_of(body, '# second')}"
        in message
    )
    assert caught.value.run.exit_code == 3


def test_use_after_free() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        queue, work = asc.TQue(asc.TPosition.VECIN, 1), asc.TBuf()
        pipe.init_buffer(que=queue, num=1, len=256)
        pipe.init_buffer(work, 256)
        t = queue.alloc_tensor(asc.float32)
        asc.data_copy(t, window(x), 64)
        queue.enque(t)
        t = queue.deque(asc.float32)
        queue.free_tensor(t)  # freed
        asc.adds(work.get(asc.float32), t, 1.0, 64)  # used

    run = toy_run(kernel, floats(64))
    (finding,) = run.findings
    assert (finding.kind, finding.code) == ("QUEUE", "use-after-free")
    assert finding.line == line_of(kernel, "# used")
    assert f"test_queue_mistakes.py:{line_of(kernel, '# freed')}" in finding.message
    assert (finding.tensor, finding.pipe, finding.bytes) == ("queue[0]", "V", (0, 256))
    assert run.exit_code == 2


@pytest.mark.parametrize("of_queue", [True, False])
@pytest.mark.parametrize("pooled", [True, False])
def test_use_after_a_reset(of_queue: bool, pooled: bool) -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        giver = asc.TBufPool(asc.TPosition.VECCALC) if pooled else pipe
        if pooled:
            pipe.init_buf_pool(giver, 1024)
        queue, work = asc.TQue(asc.TPosition.VECOUT, 1), asc.TBuf()
        giver.init_buffer(que=queue, num=1, len=256)
        giver.init_buffer(work, 256)
        t = queue.alloc_tensor(asc.float32) if of_queue else work.get(asc.float32)
        asc.duplicate(t, 1.0, 64)
        giver.reset()  # reset
        asc.set_flag(asc.HardEvent.V_MTE3, 7)
        asc.wait_flag(asc.HardEvent.V_MTE3, 7)
        asc.data_copy(window(z), t, 64)  # used

    (finding,) = toy_run(kernel, floats(64)).findings
    assert (finding.kind, finding.code) == ("QUEUE", "use-after-free")
    assert finding.line == line_of(kernel, "# used")
    assert f"after reset at tests/machine/test_queue_mistakes.py:{line_of(kernel, '# reset')}" in (
        finding.message
    )


def test_buffers_that_come_after_a_reset() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        queue = asc.TQue(asc.TPosition.VECOUT, 1)
        for _ in range(2):
            pipe.init_buffer(que=queue, num=1, len=256)
            t = queue.alloc_tensor(asc.float32)
            asc.duplicate(t, 1.0, 64)
            queue.enque(t)
            t = queue.deque(asc.float32)
            asc.data_copy(window(z), t, 64)
            queue.free_tensor(t)
            pipe.reset()

    assert toy_run(kernel, floats(64)).findings == []


def test_a_write_after_free_is_seen_too() -> None:
    def kernel() -> None:
        pipe = asc.TPipe()
        queue = asc.TQue(asc.TPosition.VECOUT, 1)
        pipe.init_buffer(que=queue, num=1, len=256)
        t = queue.alloc_tensor(asc.float32)
        queue.enque(t)
        queue.free_tensor(queue.deque(asc.float32))
        asc.duplicate(t, 1.0, 64)

    assert ("QUEUE", "use-after-free") in kinds(toy_run(kernel))


def test_a_tensor_allocated_again_may_be_used() -> None:
    def kernel() -> None:
        pipe = asc.TPipe()
        queue = asc.TQue(asc.TPosition.VECOUT, 1)
        pipe.init_buffer(que=queue, num=1, len=256)
        for _ in range(3):
            t = queue.alloc_tensor(asc.float32)
            asc.duplicate(t, 1.0, 64)
            queue.enque(t)
            queue.free_tensor(queue.deque(asc.float32))

    assert toy_run(kernel).findings == []


def test_a_tensor_that_nobody_filled_since_it_was_allocated() -> None:
    """The second tile's load is missing: what it reads is the first tile's, by luck."""

    def kernel(x: asc.GlobalAddress, tiles: int) -> None:
        pipe = asc.TPipe()
        queue, work = asc.TQue(asc.TPosition.VECIN, 1), asc.TBuf()
        pipe.init_buffer(que=queue, num=1, len=256)
        pipe.init_buffer(work, 256)
        for tile in range(2):
            t = queue.alloc_tensor(asc.float32)
            if tile < tiles:
                asc.data_copy(t, window(x), 64)
            queue.enque(t)
            t = queue.deque(asc.float32)
            asc.adds(work.get(asc.float32), t, 1.0, 64)  # here
            asc.pipe_barrier(asc.PipeID.PIPE_V)
            queue.free_tensor(t)

    assert toy_run(kernel, floats(64), 2).findings == []
    (finding,) = toy_run(kernel, floats(64), 1).findings
    assert (finding.kind, finding.line, finding.bytes) == (
        "UNINIT",
        line_of(kernel, "# here"),
        (0, 256),
    )


def test_a_tensor_that_is_never_freed() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        queue = asc.TQue(asc.TPosition.VECIN, 1)
        pipe.init_buffer(que=queue, num=1, len=256)
        t = queue.alloc_tensor(asc.float32)
        asc.data_copy(t, window(x), 64)
        queue.enque(t)
        queue.deque(asc.float32)

    (finding,) = toy_run(kernel, floats(64)).findings
    assert (finding.kind, finding.code) == ("QUEUE", "tensor-not-freed")
    assert finding.line == line_of(kernel, "queue.deque")
    assert "queue[0] is still dequeued" in finding.message


def test_a_tensor_that_is_never_dequeued_leaves_its_flag_set() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        queue = asc.TQue(asc.TPosition.VECIN, 1)
        pipe.init_buffer(que=queue, num=1, len=256)
        t = queue.alloc_tensor(asc.float32)
        asc.data_copy(t, window(x), 64)
        queue.enque(t)

    run = toy_run(kernel, floats(64))
    assert sorted(kinds(run)) == [("FLAG_BALANCE", "flag-left-set"), ("QUEUE", "tensor-not-freed")]


def test_an_id_given_by_hand_that_a_queue_holds() -> None:
    """The queue has raised MTE2_V id 0 and nobody has taken it: the same flag by hand gets mixed up with it."""

    def kernel(x: asc.GlobalAddress, event_id: int) -> None:
        pipe = asc.TPipe()
        queue = asc.TQue(asc.TPosition.VECIN, 1)
        pipe.init_buffer(que=queue, num=1, len=256)
        t = queue.alloc_tensor(asc.float32)
        asc.data_copy(t, window(x), 64)
        queue.enque(t)
        asc.data_copy(local(0x10000, 64), window(x), 64)
        asc.set_flag(asc.HardEvent.MTE2_V, event_id)  # here
        asc.wait_flag(asc.HardEvent.MTE2_V, event_id)
        queue.free_tensor(queue.deque(asc.float32))

    assert toy_run(kernel, floats(64), 1).findings == []
    (finding,) = toy_run(kernel, floats(64), 0).findings
    assert finding.line == line_of(kernel, "# here")
    assert "MTE2_V" in finding.message


def init(position: Any, *sizes: tuple[int, int]) -> Any:
    def kernel() -> None:
        pipe = asc.TPipe()
        queues = [asc.TQue(position, 1) for _ in sizes]
        for queue, (num, length) in zip(queues, sizes, strict=True):
            pipe.init_buffer(que=queue, num=num, len=length)

    return kernel


def test_more_buffers_than_event_ids() -> None:
    toy_run(init(asc.TPosition.VECIN, (4, 256), (4, 256)))
    with pytest.raises(QueueError) as caught:
        toy_run(init(asc.TPosition.VECIN, (4, 256), (5, 256)))
    assert caught.value.finding.code == "too-many-buffers"
    assert "9 buffers would share the event ids of MTE2_V and V_MTE2, 8 exist" in str(caught.value)
    assert "Use at most 4 buffers here" in str(caught.value)


def test_memory_overflow_shows_the_table() -> None:
    def kernel() -> None:
        pipe = asc.TPipe()
        in_queue, out_queue = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
        work = asc.TBuf()
        pipe.init_buffer(que=in_queue, num=2, len=49152)
        pipe.init_buffer(que=out_queue, num=2, len=32768)
        pipe.init_buffer(work, 65536)

    with pytest.raises(CapacityError) as caught:
        toy_run(kernel)
    message = str(caught.value)
    assert (caught.value.finding.kind, caught.value.finding.code) == ("CAPACITY", "memory-overflow")
    assert caught.value.finding.line == line_of(kernel, "init_buffer(work")
    table = [re.split(r"\s{2,}", line.strip()) for line in message.splitlines()[1:4]]
    assert table == [
        ["in_queue", "2 x 49152 = 98304 bytes"],
        ["out_queue", "2 x 32768 = 65536 bytes"],
        ["work", "1 x 65536 = 65536 bytes"],
    ]
    assert (
        "229376 bytes of UB asked, 196352 there (196608 less 256 that the framework keeps)"
        in message
    )
    assert "33024 too many" in message
    assert "32512 bytes a buffer would still fit" in message
    assert caught.value.run.exit_code == 4


def test_the_last_byte_that_fits() -> None:
    toy_run(init(asc.TPosition.VECIN, (1, 196352)))
    with pytest.raises(CapacityError):
        toy_run(init(asc.TPosition.VECIN, (1, 196353)))


def test_tbuf_windows_stay_inside() -> None:
    def kernel(size: int, offset: int) -> None:
        pipe = asc.TPipe()
        work = asc.TBuf()
        pipe.init_buffer(work, 256)
        work.get_with_offset(size, offset, asc.float32)

    toy_run(kernel, 32, 128)
    with pytest.raises(
        BoundsError, match="33 elements of float32 from byte 128 end at byte 260"
    ) as caught:
        toy_run(kernel, 33, 128)
    assert caught.value.finding.tensor == "work"


@pytest.mark.parametrize("position", [asc.TPosition.VECCALC])
def test_positions_that_are_no_queue(position: Any) -> None:
    with pytest.raises(QueueError, match="use TBuf for VECCALC"):
        toy_run(lambda: asc.TQue(position, 1))


def test_two_pipe_objects() -> None:
    def kernel(destroy: bool) -> None:
        pipe = asc.TPipe()
        if destroy:
            pipe.destroy()
        asc.TPipe()

    assert toy_run(kernel, True).findings == []
    with pytest.raises(QueueError, match="second TPipe"):
        toy_run(kernel, False)


def test_a_queue_without_buffers() -> None:
    def kernel() -> None:
        asc.TPipe()
        asc.TQue(asc.TPosition.VECIN, 1).alloc_tensor(asc.float32)

    with pytest.raises(KernelError, match="alloc_tensor before"):
        toy_run(kernel)
