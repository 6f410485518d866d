"""Mistakes that people have made with real kernels: each faulty version is found, each repaired one is silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import AlignmentError, DeadlockError, Finding
from tests.machine.kit import ALL, E, V, hand_over, line_of, local, toy_run, window

F32 = asc.float32
A, B, C, D, W = (0x4000 * i for i in range(5))


def ramp(count: int = 64) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32) + 1


def found(kernel: Any, *args: Any, **options: Any) -> list[Finding]:
    return toy_run(kernel, *args, **options).findings


def race_places(findings: list[Finding]) -> list[tuple[str, int, int]]:
    return sorted(
        (finding.code, finding.related[0]["line"], finding.line)
        for finding in findings
        if finding.kind == "RACE"
    )


def fill(*addresses: int) -> None:
    for address in addresses:
        asc.duplicate(local(address, 64), 1.0, 64)
    asc.pipe_barrier(ALL)


@pytest.mark.parametrize("barriers", [True, False])
def test_a_chain_of_dependent_vector_instructions(barriers: bool) -> None:
    """One finding for each missing edge, and each names both lines."""

    def kernel() -> None:
        a, b, m, e = (local(address, 64) for address in (A, B, C, D))
        fill(A, B)
        asc.max(m, a, b, 64)  # one
        if barriers:
            asc.pipe_barrier(V)
        asc.sub(e, a, m, 64)  # two
        if barriers:
            asc.pipe_barrier(V)
        asc.exp(local(W, 64), e, 64)  # three
        if barriers:
            asc.pipe_barrier(V)
        asc.mul(b, local(W, 64), a, 64)  # four

    findings = found(kernel)
    if barriers:
        assert findings == []
        return
    one, two, three, four = (
        line_of(kernel, f"# {word}") for word in ("one", "two", "three", "four")
    )
    places = race_places(findings)
    assert {("race-raw", one, two), ("race-raw", two, three), ("race-raw", three, four)} <= set(
        places
    )
    assert {code for code, _, _ in places} <= {"race-raw", "race-war"}
    for finding in findings:
        assert "pipe_barrier(PIPE_V)" in finding.message


def test_a_cast_and_what_reads_it_and_a_slot_that_nobody_filled() -> None:
    def kernel(x: Any, repaired: bool) -> None:
        half, wide, acc, ring = local(A, 64, asc.float16), local(B, 64), local(C, 64), local(D, 64)
        asc.data_copy(half, window(x), 64)
        asc.duplicate(acc, 0.0, 64)
        if repaired:
            asc.duplicate(ring, 0.0, 64)
        hand_over(E.MTE2_V)
        asc.cast(wide, half, asc.RoundMode.CAST_NONE, 64)  # cast
        if repaired:
            asc.pipe_barrier(V)
        asc.mul_add_dst(acc, wide, wide, 64)  # first
        asc.pipe_barrier(V)
        asc.mul_add_dst(acc, ring, wide, 64)  # second

    x = np.ones(64, np.float16)
    assert found(kernel, x, True) == []
    findings = found(kernel, x, False)
    cast, first = line_of(kernel, "# cast"), line_of(kernel, "# first")
    assert ("race-raw", cast, first) in race_places(findings)
    (missing,) = [finding for finding in findings if finding.kind == "UNINIT"]
    assert missing.line == line_of(kernel, "# second")
    assert missing.bytes == (D, D + 256)


@pytest.mark.parametrize("repaired", [True, False])
def test_stored_to_gm_and_read_back(repaired: bool) -> None:
    def kernel(ws: Any) -> None:
        fill(A)
        asc.data_copy(window(ws), local(A, 64), 64)  # store
        if repaired:
            hand_over(E.MTE3_MTE2)
        asc.data_copy(local(B, 64), window(ws), 64)  # load
        if repaired:
            hand_over(E.MTE2_V)
        asc.adds(local(C, 64), local(B, 64), 1.0, 64)  # add

    findings = found(kernel, ramp())
    if repaired:
        assert findings == []
    else:
        store, load, add = (line_of(kernel, f"# {word}") for word in ("store", "load", "add"))
        assert race_places(findings) == [("race-raw", store, load), ("race-raw", load, add)]
        assert [finding.tensor for finding in findings if finding.line == load] == ["ws"]


@pytest.mark.parametrize("event", [E.V_MTE3, E.S_MTE3])
def test_a_flag_raised_on_the_wrong_pipe(event: asc.HardEvent) -> None:
    """The producer is V, and the flag that stands there comes from the scalar unit: it fires at once."""

    def kernel(z: Any) -> None:
        fill(A)
        asc.exp(local(B, 64), local(A, 64), 64)  # exp
        hand_over(event)
        asc.data_copy(window(z), local(B, 64), 64)  # store

    findings = found(kernel, ramp())
    if event is E.V_MTE3:
        assert findings == []
    else:
        exp, store = line_of(kernel, "# exp"), line_of(kernel, "# store")
        assert race_places(findings) == [("race-raw", exp, store)]
        assert "V_MTE3" in findings[0].message
        assert "S_MTE3 id 0 at " in findings[0].message
        assert "stands between them, but it orders S, not V" in findings[0].message


def test_a_set_that_comes_too_early() -> None:
    def kernel(z: Any) -> None:
        fill(A)
        asc.set_flag(E.V_MTE3, 2)  # set
        asc.exp(local(B, 64), local(A, 64), 64)
        asc.wait_flag(E.V_MTE3, 2)  # wait
        asc.data_copy(window(z), local(B, 64), 64)

    (finding,) = found(kernel, ramp())
    place = "tests/hazards/test_known_mistakes.py"
    assert f"V_MTE3 id 2 at {place}:{line_of(kernel, '# wait')}" in finding.message
    assert (
        f"its set_flag at {place}:{line_of(kernel, '# set')} in kernel comes before exp"
        in finding.message
    )


def test_both_callers_of_a_helper_are_named() -> None:
    """The helper's line alone would say nothing: what orders the two calls stands between those who call it."""

    def move(target: Any, source: Any) -> None:
        asc.data_copy(target, source, 64)  # move

    def kernel(z: Any) -> None:
        move(local(A, 64), window(z))  # first
        move(window(z), local(A, 64))  # second

    (finding,) = (one for one in found(kernel, ramp()) if one.code == "race-raw")
    first, second = line_of(kernel, "# first"), line_of(kernel, "# second")
    for line in (first, second):
        assert f":{line_of(move, '# move')} in move (from line {line})  core0" in finding.message
    assert f"set_flag(MTE2_MTE3, id) after line {first}, " in finding.message
    assert f"wait_flag(MTE2_MTE3, id) before line {second};" in finding.message


@pytest.mark.parametrize("trips", [6, 7])
def test_ping_pong_with_both_slots_primed(trips: int) -> None:
    """The last two trips set once too often and nothing holds the loads back: the same verdict for odd and even."""

    def kernel(x: Any) -> None:
        slots = [local(A, 64), local(B, 64)]
        for slot in range(2):
            asc.data_copy(slots[slot], window(x), 64)
            asc.set_flag(E.MTE2_V, slot)
        for trip in range(trips):
            asc.wait_flag(E.MTE2_V, trip % 2)
            asc.adds(local(C, 64), slots[trip % 2], 1.0, 64)  # use
            asc.pipe_barrier(V)
            asc.data_copy(slots[trip % 2], window(x), 64)  # load
            asc.set_flag(E.MTE2_V, trip % 2)  # set

    findings = found(kernel, ramp())
    use, load = line_of(kernel, "# use"), line_of(kernel, "# load")
    assert ("race-war", use, load) in race_places(findings)
    left = [finding for finding in findings if finding.code == "flag-left-set"]
    assert {finding.line for finding in left} == {line_of(kernel, "# set")}
    assert sum(finding.hits for finding in left) == 2


def test_a_vector_barrier_does_not_order_the_scalar_unit() -> None:
    def kernel(flag: bool) -> None:
        fill(A)
        asc.adds(local(B, 64), local(A, 64), 1.0, 64)  # add
        asc.pipe_barrier(V)
        if flag:
            hand_over(E.V_S)
        local(B, 64).get_value(0)  # read

    assert found(kernel, True) == []
    (finding,) = found(kernel, False)
    assert race_places([finding]) == [
        ("race-raw", line_of(kernel, "# add"), line_of(kernel, "# read"))
    ]
    assert "set_flag(V_S" in finding.message
    assert "orders V only" in finding.message


@pytest.mark.parametrize("sync", ["S_V", "ALL", "V"])
def test_a_table_that_the_scalar_unit_fills(sync: str) -> None:
    def kernel() -> None:
        fill(A)
        for element in range(64):
            local(B, 64).set_value(element, float(element))  # write
        if sync == "S_V":
            hand_over(E.S_V)
        elif sync == "ALL":
            asc.pipe_barrier(ALL)
        else:
            asc.pipe_barrier(V)
        asc.mul(local(C, 64), local(A, 64), local(B, 64), 64)  # read

    findings = found(kernel)
    if sync == "V":
        write, read = line_of(kernel, "# write"), line_of(kernel, "# read")
        assert race_places(findings) == [("race-raw", write, read)]
        assert "S_V" in findings[0].message
    else:
        assert findings == []


def test_scalar_stores_to_gm_that_the_copy_engine_reads() -> None:
    """The stores sit in the data cache: at the least nothing orders them before the load."""

    def kernel(ws: Any) -> None:
        for element in range(8):
            window(ws).set_value(element, 5.0)
        asc.data_copy(local(A, 64), window(ws), 64)  # load

    findings = found(kernel, ramp())
    assert {finding.kind for finding in findings} <= {"RACE", "COHERENCE"}
    assert {finding.line for finding in findings} == {line_of(kernel, "# load")}


def test_a_doubled_pair_is_no_mistake() -> None:
    def kernel() -> None:
        hand_over(E.V_MTE2)
        hand_over(E.V_MTE2)

    assert all(finding.kind in ("INFO", "PERF") for finding in found(kernel))


@pytest.mark.parametrize("primed", [True, False])
def test_a_wait_at_the_head_of_a_loop_that_nobody_primed(primed: bool) -> None:
    def kernel(x: Any) -> None:
        if primed:
            asc.set_flag(E.V_MTE2, 3)
        for _ in range(4):
            asc.wait_flag(E.V_MTE2, 3)  # wait
            asc.data_copy(local(A, 64), window(x), 64)
            hand_over(E.MTE2_V)
            asc.adds(local(B, 64), local(A, 64), 1.0, 64)
            asc.pipe_barrier(V)
            asc.set_flag(E.V_MTE2, 3)  # set
        if primed:
            asc.wait_flag(E.V_MTE2, 3)

    if primed:
        assert found(kernel, ramp()) == []
        return
    with pytest.raises(DeadlockError) as caught:
        found(kernel, ramp())
    message = str(caught.value)
    assert (
        f"test_known_mistakes.py:{line_of(kernel, '# wait')} in kernel for V_MTE2 id 3" in message
    )
    assert "this is wait number 1, the flag was set 0 times" in message
    assert (
        f"the next set is at tests/hazards/test_known_mistakes.py:{line_of(kernel, '# set')}"
        in message
    )


def test_the_finding_of_a_hang_is_the_first_wait_of_the_program() -> None:
    """V waits for MTE2 only because MTE2 waits: the place to mend is the wait that stands first."""

    def kernel(x: Any) -> None:
        asc.wait_flag(E.V_MTE2, 3)  # wait
        asc.data_copy(local(A, 64), window(x), 64)
        hand_over(E.MTE2_V)
        asc.adds(local(B, 64), local(A, 64), 1.0, 64)
        asc.set_flag(E.V_MTE2, 3)

    with pytest.raises(DeadlockError) as caught:
        found(kernel, ramp())
    assert (caught.value.finding.pipe, caught.value.finding.line) == (
        "MTE2",
        line_of(kernel, "# wait"),
    )


def test_free_tensor_forgotten_in_the_last_stage() -> None:
    def kernel(z: Any, trips: int) -> None:
        pipe = asc.TPipe()
        qz = asc.TQue(asc.TPosition.VECOUT, 1)
        pipe.init_buffer(que=qz, num=2, len=256)
        for trip in range(trips):
            t = qz.alloc_tensor(F32)  # alloc
            asc.duplicate(t, 1.0, 64)
            qz.enque(t)
            t = qz.deque(F32)  # deque
            asc.data_copy(window(z)[64 * trip :], t, 64)

    assert {finding.code for finding in found(kernel, ramp(128), 2)} == {"tensor-not-freed"}
    with pytest.raises(DeadlockError) as caught:
        found(kernel, ramp(192), 3)
    message = str(caught.value)
    assert caught.value.finding.line == line_of(kernel, "# alloc")
    deque = f"test_known_mistakes.py:{line_of(kernel, '# deque')}"
    assert message.count(deque) == 2
    assert "buffer 0 is dequeued" in message
    assert "buffer 1 is dequeued" in message


def test_depth_one_with_two_buffers_is_right_and_overlaps() -> None:
    def kernel(x: Any) -> None:
        pipe = asc.TPipe()
        qx, work = asc.TQue(asc.TPosition.VECIN, 1), asc.TBuf()
        pipe.init_buffer(que=qx, num=2, len=4096)
        pipe.init_buffer(work, 4096)
        for tile in range(8):
            t = qx.alloc_tensor(F32)
            asc.data_copy(t, window(x)[1024 * tile :], 1024)
            qx.enque(t)
            t = qx.deque(F32)
            asc.div(work.get(F32), t, t, 1024)
            asc.pipe_barrier(V)
            qx.free_tensor(t)

    run = toy_run(kernel, ramp(8192))
    assert run.findings == []
    loads = [item for item in run.log.cores[0].items if item.name == "data_copy"]
    divs = [item for item in run.log.cores[0].items if item.name == "div"]
    assert all(loads[i + 1].start < divs[i].end for i in range(7))


def test_one_element_off_in_ub_and_in_gm() -> None:
    """UB starts on 32 bytes; GM may start at any element."""

    def kernel(z: Any, ub: int, gm: int) -> None:
        asc.duplicate(local(A, 16), 1.0, 16)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z)[gm:], local(A, 16)[ub:], 8)

    with pytest.raises(AlignmentError, match="32-byte border") as caught:
        found(kernel, ramp(), 1, 0)
    assert caught.value.finding.bytes == (4, 64)
    kinds = {finding.kind for finding in found(kernel, ramp(), 8, 4)}
    assert kinds <= {"COVERAGE", "PERF", "INFO"}


def test_rows_of_four_bytes_do_not_lie_side_by_side() -> None:
    """A padded copy gives each row 32 bytes of its own; read as packed, all but the first element are filler."""

    def kernel(x: Any, z: Any, rows: int, length: int) -> None:
        asc.data_copy_pad(local(A, 32), window(x), asc.DataCopyExtParams(rows, length, 0, 0, 0))
        hand_over(E.MTE2_V)
        asc.adds(local(B, 8), local(A, 32), 1.0, 4)  # add
        hand_over(E.V_MTE3)
        asc.data_copy_pad(window(z), local(B, 8), asc.DataCopyExtParams(1, 16, 0, 0, 0))

    z = np.zeros(4, np.float32)
    assert found(kernel, ramp(4), z, 1, 16) == []
    assert z.tolist() == [2, 3, 4, 5]
    (finding,) = found(kernel, ramp(4), z, 4, 4)
    assert (finding.kind, finding.bytes) == ("UNINIT", (A + 4, A + 16))
    assert finding.line == line_of(kernel, "# add")


def test_a_scalar_read_of_gm_that_a_store_is_writing() -> None:
    def kernel(z: Any, flag: bool) -> None:
        fill(A)
        asc.data_copy(window(z), local(A, 64), 64)  # store
        if flag:
            hand_over(E.MTE3_S)
        window(z).get_value(5)  # read

    assert found(kernel, ramp(), True) == []
    assert race_places(found(kernel, ramp(), False)) == [
        ("race-raw", line_of(kernel, "# store"), line_of(kernel, "# read"))
    ]
