"""A missing flag or barrier reads what is there, and writes when it writes: values, and what the checker says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.run import Run
from tests.machine.kit import (
    ALL,
    A,
    B,
    C,
    E,
    V,
    hand_over,
    instructions,
    line_of,
    local,
    toy_run,
    window,
)

N = 1024
D = 0x1C000


def floats(count: int = N) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


def fill(*places: tuple[int, float]) -> None:
    """Fill places of UB and wait until all is done."""
    for address, value in places:
        asc.duplicate(local(address, N), value, N)
    asc.pipe_barrier(ALL)


def out(z: Any, address: int) -> None:
    """Store a place once everything is done."""
    asc.pipe_barrier(ALL)
    asc.data_copy(window(z), local(address, N), N)


def only(run: Run, code: str, struck: bool) -> Any:
    """The run's one finding."""
    (finding,) = run.findings
    assert (finding.kind, finding.code, finding.struck) == ("RACE", code, struck)
    return finding


def test_a_vector_instruction_without_the_flag_reads_what_was_there() -> None:
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        fill((A, 7.0))
        asc.data_copy(local(A, N), window(x), N)
        asc.adds(local(C, N), local(A, N), 1.0, N)
        out(z, C)

    z = np.zeros(N, np.float32)
    run = toy_run(kernel, floats(), z)
    np.testing.assert_array_equal(z, np.full(N, 8.0, np.float32))
    finding = only(run, "race-raw", True)
    assert finding.file == __file__
    assert finding.line == line_of(kernel, "asc.adds")
    assert (finding.core, finding.pipe, finding.bytes) == ("core0.aiv0", "V", (A, A + 4 * N))
    assert finding.related == [
        {
            "file": __file__,
            "line": line_of(kernel, "asc.data_copy"),
            "pipe": "MTE2",
            "instruction": "data_copy",
        }
    ]


def test_with_the_flag_it_reads_what_was_loaded() -> None:
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        fill((A, 7.0))
        asc.data_copy(local(A, N), window(x), N)
        hand_over(E.MTE2_V)
        asc.adds(local(C, N), local(A, N), 1.0, N)
        out(z, C)

    z = np.zeros(N, np.float32)
    assert toy_run(kernel, floats(), z).findings == []
    np.testing.assert_array_equal(z, floats() + 1)


def test_only_the_bytes_under_way_are_old() -> None:
    """The load writes the second half of what is added."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        fill((A, 7.0))
        asc.data_copy(local(A, N)[N // 2 :], window(x), N // 2)
        asc.adds(local(C, N), local(A, N), 1.0, N)
        asc.pipe_barrier(ALL)
        asc.adds(local(C, N // 2), local(A, N), 2.0, N // 2)
        out(z, C)

    z = np.zeros(N, np.float32)
    run = toy_run(kernel, floats(), z)
    assert z.tolist() == [9.0] * (N // 2) + [8.0] * (N // 2)
    assert only(run, "race-raw", True).bytes == (A + 2 * N, A + 4 * N)


def test_a_dependent_vector_instruction_without_a_barrier_reads_what_was_there() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        fill((A, 1.0), (B, 10.0))
        asc.adds(local(B, N), local(A, N), 1.0, N)  # 2
        asc.adds(local(C, N), local(B, N), 1.0, N)  # 11, not 3
        out(z, C)

    z = np.zeros(N, np.float32)
    run = toy_run(kernel, z)
    np.testing.assert_array_equal(z, np.full(N, 11.0, np.float32))
    finding = only(run, "race-raw", True)
    assert finding.line == line_of(kernel, "# 11")
    assert finding.related[0]["line"] == line_of(kernel, "# 2")
    assert "pipe_barrier(PIPE_V)" in finding.message


def test_with_a_barrier_it_reads_the_result() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        fill((A, 1.0), (B, 10.0))
        asc.adds(local(B, N), local(A, N), 1.0, N)
        asc.pipe_barrier(V)
        asc.adds(local(C, N), local(B, N), 1.0, N)
        out(z, C)

    z = np.zeros(N, np.float32)
    assert toy_run(kernel, z).findings == []
    np.testing.assert_array_equal(z, np.full(N, 3.0, np.float32))


def test_a_race_that_timing_hides_is_reported_all_the_same() -> None:
    """A long independent instruction lies between the two: the numbers are right, the order is not."""

    def kernel(z: asc.GlobalAddress) -> None:
        fill((A, 1.0), (B, 10.0))
        asc.adds(local(B, N), local(A, N), 1.0, N)
        asc.adds(local(D, N), local(A, N), 1.0, N)
        asc.adds(local(D + 4 * N, N), local(A, N), 1.0, N)
        asc.adds(local(C, N), local(B, N), 1.0, N)
        out(z, C)

    z = np.zeros(N, np.float32)
    run = toy_run(kernel, z)
    np.testing.assert_array_equal(z, np.full(N, 3.0, np.float32))
    assert only(run, "race-raw", False).line == line_of(kernel, "local(C, N), local(B, N)")


def test_a_store_without_the_flag_stores_what_was_there() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        fill((A, 1.0), (C, 5.0))
        asc.adds(local(C, N), local(A, N), 1.0, N)
        asc.data_copy(window(z), local(C, N), N)

    z = np.zeros(N, np.float32)
    run = toy_run(kernel, z)
    np.testing.assert_array_equal(z, np.full(N, 5.0, np.float32))
    finding = only(run, "race-raw", True)
    assert finding.pipe == "MTE3"
    assert "set_flag(V_MTE3" in finding.message


def test_a_load_without_the_flag_overwrites_what_is_still_to_be_read() -> None:
    """V is busy for long; the load lands before the instruction that still wants the old data starts."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        fill((A, 7.0), (B, 1.0))
        for _ in range(5):
            asc.div(local(D, N), local(B, N), local(B, N), N)  # 64 cycles each, 30 more at the end
            asc.pipe_barrier(V)
        asc.adds(local(C, N), local(A, N), 1.0, N)
        asc.data_copy(local(A, N), window(x), N)
        out(z, C)

    z = np.zeros(N, np.float32)
    run = toy_run(kernel, floats(), z)
    np.testing.assert_array_equal(z, floats() + 1)
    finding = only(run, "race-war", True)
    assert finding.line == line_of(kernel, "asc.data_copy")
    assert finding.pipe == "MTE2"


def test_a_load_that_comes_late_enough_does_no_harm() -> None:
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        fill((A, 7.0))
        asc.adds(local(C, N), local(A, N), 1.0, N)
        asc.data_copy(local(A, N), window(x), N)
        out(z, C)

    z = np.zeros(N, np.float32)
    run = toy_run(kernel, floats(), z)
    np.testing.assert_array_equal(z, np.full(N, 8.0, np.float32))
    only(run, "race-war", False)


def test_the_last_write_to_land_stays() -> None:
    """The fill is later in the program and lands first."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, N), window(x), N)
        asc.duplicate(local(A, N), 1.0, N)
        out(z, A)

    z = np.zeros(N, np.float32)
    run = toy_run(kernel, floats(), z)
    np.testing.assert_array_equal(z, floats())
    only(run, "race-waw", True)


def test_two_writes_of_one_pipe_land_in_order() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        asc.duplicate(local(A, N), 1.0, N)
        asc.duplicate(local(A, N), 2.0, N)
        out(z, A)

    z = np.zeros(N, np.float32)
    run = toy_run(kernel, z)
    np.testing.assert_array_equal(z, np.full(N, 2.0, np.float32))
    only(run, "race-waw", False)


def test_two_loads_into_the_same_place() -> None:
    """Two instructions of MTE2 overlap as well: their order needs a barrier of MTE2."""

    def kernel(x: asc.GlobalAddress, barrier: bool) -> None:
        asc.data_copy(local(A, N), window(x), N)
        if barrier:
            asc.pipe_barrier(asc.PipeID.PIPE_MTE2)
        asc.data_copy(local(A, N), window(x)[N:], N)

    assert toy_run(kernel, floats(2 * N), True).findings == []
    finding = only(toy_run(kernel, floats(2 * N), False), "race-waw", False)
    assert "pipe_barrier(PIPE_MTE2)" in finding.message


def test_in_place_is_no_race() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        fill((A, 1.0), (B, 2.0))
        asc.add(local(A, N), local(A, N), local(B, N), N)
        asc.pipe_barrier(V)
        asc.add(local(A, N), local(A, N), local(A, N), N)
        out(z, A)

    z = np.zeros(N, np.float32)
    assert toy_run(kernel, z).findings == []
    np.testing.assert_array_equal(z, np.full(N, 6.0, np.float32))


def test_disjoint_strided_rows_are_no_race() -> None:
    """One instruction writes the even blocks, the next one the odd blocks of the same area."""

    def kernel(z: asc.GlobalAddress) -> None:
        strides = asc.UnaryRepeatParams(2, 1, 16, 8)
        fill((A, 1.0), (C, 0.0))
        asc.adds(local(C, N), local(A, N), 1.0, mask=64, repeat_times=8, repeat_params=strides)
        asc.adds(local(C, N)[8:], local(A, N), 2.0, mask=64, repeat_times=8, repeat_params=strides)
        out(z, C)

    z = np.zeros(N, np.float32)
    assert toy_run(kernel, z).findings == []
    assert z.reshape(-1, 8).mean(axis=1).tolist() == [2.0, 3.0] * (N // 16)


def test_a_flag_orders_what_stands_before_it_only() -> None:
    """The set stands before the load that is read: it proves nothing about that load."""

    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(B, N), window(x), N)
        asc.set_flag(E.MTE2_V, 0)
        asc.data_copy(local(A, N), window(x)[N:], N)
        asc.wait_flag(E.MTE2_V, 0)
        asc.adds(local(C, N), local(B, N), 1.0, N)
        asc.adds(local(D, N), local(A, N), 1.0, N)

    finding = only(toy_run(kernel, floats(2 * N)), "race-raw", True)
    assert finding.line == line_of(kernel, "local(D, N)")


def test_order_passes_through_a_third_pipe() -> None:
    """MTE2 to V to MTE3: the store knows of the load because V does."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, N), window(x), N)
        hand_over(E.MTE2_V)
        asc.adds(local(C, N), local(A, N), 1.0, N)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), local(A, N), N)

    assert toy_run(kernel, floats(), np.zeros(N, np.float32)).findings == []


def test_order_passes_through_the_scalar_unit() -> None:
    """What is issued after a wait into the scalar unit knows what the scalar unit knows."""

    def kernel(x: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, N), window(x), N)
        hand_over(E.MTE2_S)
        local(A, N).get_value(0)
        asc.adds(local(C, N), local(A, N), 1.0, N)

    run = toy_run(kernel, floats())
    assert run.findings == []
    assert instructions(run, "V")[0].start > instructions(run, "MTE2")[0].end


@pytest.mark.parametrize("flag", [True, False])
def test_a_scalar_write_and_the_vector_unit(flag: bool) -> None:
    def kernel() -> None:
        fill((A, 1.0))
        local(A, N).set_value(0, 5.0)
        if flag:
            hand_over(E.S_V)
        asc.adds(local(C, N), local(A, N), 1.0, N)

    findings = [(f.code, f.line) for f in toy_run(kernel).findings]
    assert findings == ([] if flag else [("race-raw", line_of(kernel, "asc.adds"))])


def test_overwriting_what_the_scalar_unit_has_read_needs_nothing() -> None:
    """The scalar unit has the value before it issues the next instruction."""

    def kernel() -> None:
        fill((A, 1.0))
        local(A, N).get_value(0)
        asc.duplicate(local(A, N), 2.0, N)

    assert toy_run(kernel).findings == []


# ---- fresh memory ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "numpy_dtype"),
    [(asc.float16, np.float16), (asc.float32, np.float32), (asc.int32, np.int32)],
)
def test_fresh_memory_is_poison(dtype: Any, numpy_dtype: Any) -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        asc.data_copy(window(z), local(A, 64, dtype), 64)

    z = np.zeros(64, numpy_dtype)
    run = toy_run(kernel, z)
    assert z.tobytes() == b"\xff" * z.nbytes
    if numpy_dtype is not np.int32:
        assert np.isnan(z).all()
    (finding,) = run.findings
    assert (finding.kind, finding.code, finding.struck) == ("UNINIT", "uninitialised-read", True)
    assert (finding.line, finding.pipe) == (line_of(kernel, "data_copy"), "MTE3")
    assert finding.bytes == (0, z.nbytes)


def test_the_bytes_that_nothing_wrote() -> None:
    """Of 4096 bytes 1024 to 3072 are missing."""

    def kernel() -> None:
        asc.duplicate(local(A, 256), 1.0, 256)
        asc.duplicate(local(A + 3072, 256), 1.0, 256)
        asc.pipe_barrier(V)
        asc.adds(local(C, N), local(A, N), 1.0, N)

    (finding,) = toy_run(kernel).findings
    assert finding.kind == "UNINIT"
    assert finding.bytes == (A + 1024, A + 3072)
    assert "1024" in finding.message
    assert finding.line == line_of(kernel, "asc.adds")


def test_masked_lanes_are_neither_read_nor_written() -> None:
    """16 lanes of each repeat are written, and the same ones read: nothing is missing. 17 are too many."""

    def kernel(lanes: int) -> None:
        unary = asc.UnaryRepeatParams(1, 1, 8, 8)
        asc.duplicate(local(A, N), 1.0, 16, 4, 1, 8)
        asc.pipe_barrier(V)
        asc.adds(local(C, N), local(A, N), 1.0, mask=lanes, repeat_times=4, repeat_params=unary)

    assert toy_run(kernel, 16).findings == []
    (finding,) = toy_run(kernel, 17).findings
    assert (finding.kind, finding.bytes) == ("UNINIT", (A + 64, A + 68))


def test_the_filler_of_a_padded_copy_is_not_to_be_read() -> None:
    """Rows of 20 bytes fill 32: without padding the last 12 are undefined."""

    def kernel(x: asc.GlobalAddress, count: int, pad: bool) -> None:
        padding = asc.DataCopyPadExtParams(asc.float32, True, 0, 3, 0.0) if pad else None
        asc.data_copy_pad(local(A, 8), window(x), asc.DataCopyExtParams(1, 20, 0, 0), padding)
        hand_over(E.MTE2_V)
        asc.adds(local(C, 8), local(A, 8), 1.0, count)

    assert toy_run(kernel, floats(8), 5, False).findings == []
    assert toy_run(kernel, floats(8), 8, True).findings == []
    (finding,) = toy_run(kernel, floats(8), 8, False).findings
    assert (finding.kind, finding.bytes) == ("UNINIT", (A + 20, A + 32))


def test_an_element_read_by_the_scalar_unit() -> None:
    def kernel() -> None:
        local(A, 8).set_value(0, 1.0)
        local(A, 8).get_value(0)
        local(A, 8).get_value(1)

    (finding,) = toy_run(kernel).findings
    assert (finding.kind, finding.pipe, finding.bytes) == ("UNINIT", "S", (4, 8))
    assert finding.line == line_of(kernel, "get_value(1)")
