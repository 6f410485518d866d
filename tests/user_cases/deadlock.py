"""Waits that nothing ends: told at once, with who waits for what and what would end it."""

from __future__ import annotations

from ascend_sim import asc
from tests.user_cases.kit import F32, E, Told, Want, case, fill, flag, ramp, told, ub, window, zeros


@case(
    "DLK-01",
    Want(
        "DEADLOCK", "deadlock", "wait", "",
        None, ("M_MTE1 id 3", "wait number 1", "set 0 times", "the next set is at", "needs one set before the loop"),
    ),
)  # fmt: skip
def loop_head_waits_first(wrong: bool) -> Told:
    """Nobody raised the flag before trip 0."""

    def kernel(a: asc.GlobalAddress) -> None:
        a1 = asc.LocalTensor(asc.float16, asc.TPosition.A1, 0, 256)
        a2 = asc.LocalTensor(asc.float16, asc.TPosition.A2, 0, 256)
        b2 = asc.LocalTensor(asc.float16, asc.TPosition.B2, 0, 256)
        c = asc.LocalTensor(F32, asc.TPosition.CO1, 0, 256)
        asc.data_copy(a1, window(a), 256)
        flag(E.MTE2_MTE1)
        if not wrong:
            asc.set_flag(E.M_MTE1, 3)
        for _ in range(4):
            asc.wait_flag(E.M_MTE1, 3)  # wait
            asc.load_data(a2, a1, asc.LoadData2DParams())
            asc.load_data(b2, a1, asc.LoadData2DParams())
            flag(E.MTE1_M)
            asc.mmad(c, a2, b2, asc.MmadParams(16, 16, 16))
            asc.pipe_barrier(asc.PipeID.PIPE_M)
            asc.set_flag(E.M_MTE1, 3)
        if not wrong:
            asc.wait_flag(E.M_MTE1, 3)

    return told(kernel, ramp(256, "float16"), kernel_type="AIC_ONLY")


@case(
    "DLK-02",
    Want(
        "DEADLOCK", "deadlock", "outer", "",
        None, ("MTE3_V id 0", "event_ids", "MTE3_MTE2 id 0"),
    ),
    Want("FLAG_BALANCE", "flag-set-twice", "inner", "", None, ("event_ids is 'source'", "pipe MTE3")),
)  # fmt: skip
def one_id_for_two_fences(wrong: bool) -> Told:
    """On a toolchain whose ids belong to the source pipe, the inner wait takes the outer signal."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        t = ub(F32, 64, 0)
        fill(t)
        flag(E.V_MTE3)
        asc.data_copy(window(z), t, 64)
        asc.set_flag(E.MTE3_V, 0)
        inner = 0 if wrong else 1
        asc.set_flag(E.MTE3_MTE2, inner)  # inner
        asc.wait_flag(E.MTE3_MTE2, inner)
        asc.data_copy(ub(F32, 64, 4096), window(x), 64)
        asc.wait_flag(E.MTE3_V, 0)  # outer
        asc.duplicate(t, 2.0, 64)

    return told(kernel, ramp(64), zeros(64), event_ids="source")


@case(
    "DLK-04",
    Want(
        "DEADLOCK", "alloc-spins-forever", "alloc", "qz",
        None, ("qz (VECOUT)", "2 buffers", "buffer 0 is dequeued since", "buffer 1 is dequeued since", "free_tensor"),
    ),
)  # fmt: skip
def free_tensor_forgotten(wrong: bool) -> Told:
    """With two buffers the third turn has none to take."""

    def kernel(z: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        qz = asc.TQue(asc.TPosition.VECOUT, 1)
        pipe.init_buffer(que=qz, num=2, len=256)
        for trip in range(3):
            t = qz.alloc_tensor(F32)  # alloc
            asc.duplicate(t, 1.0, 64)
            qz.enque(t)
            t = qz.deque(F32)
            asc.data_copy(window(z)[64 * trip :], t, 64)
            if not wrong:
                qz.free_tensor(t)

    return told(kernel, zeros(192))


@case(
    "DLK-05",
    Want(
        "DEADLOCK", "deadlock", "sync", "",
        None, ("sync_all", "6 of 8", "missing: block 6, 7", "6, 7 ended without it"),
    ),
)  # fmt: skip
def sync_all_in_a_condition(wrong: bool) -> Told:
    """Two of eight blocks never come."""

    def kernel(ws: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        words = ub(asc.int32, 64, 0)
        if block < 6 or not wrong:
            asc.sync_all(window(ws), words, 8)  # sync

    return told(kernel, zeros(64, dtype="int32"), cores=8, chip="ascend910b1")
