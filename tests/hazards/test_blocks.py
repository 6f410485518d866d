"""Blocks of one launch touch each other's bytes, or leave bytes of an output out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import Finding
from ascend_sim.run import Run
from tests.machine.kit import ALL, A, C, E, hand_over, line_of, local, toy_run, window

ROWS, COLUMNS = 12, 256


def zeros(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


def ramp(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def one(run: Run) -> Finding:
    """The run's one finding."""
    (finding,) = run.findings
    return finding


def race(run: Run) -> Finding:
    """The run's one race; some outputs of these kernels stay half empty on purpose."""
    (finding,) = [finding for finding in run.findings if finding.kind != "COVERAGE"]
    return finding


def copy(z: Any, target: int, source: Any, start: int, count: int) -> None:
    """Copy `count` elements from GM to GM by way of UB."""
    t = local(A, count)
    asc.data_copy(t, window(source)[start:], count)
    hand_over(E.MTE2_MTE3)
    asc.data_copy(window(z)[target:], t, count)
    hand_over(E.MTE3_MTE2)


# ---- overlaps -------------------------------------------------------------------------------


def test_two_blocks_write_the_same_bytes() -> None:
    """Each block writes 136 elements where it should write 128."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        t = local(A, 136)
        asc.data_copy(t, window(x)[128 * block :], 136)
        hand_over(E.MTE2_MTE3)
        asc.data_copy(window(z)[128 * block :], t, 136)  # here

    finding = one(toy_run(kernel, ramp(520), zeros(520), cores=4))
    assert (finding.kind, finding.code) == ("RACE", "race-blocks-waw")
    assert (finding.line, finding.pipe, finding.tensor) == (line_of(kernel, "# here"), "MTE3", "z")
    assert finding.bytes == (512, 544)
    assert "blocks 0 and 1 write the same bytes of z, 512 to 544" in finding.message


def test_a_block_reads_what_another_writes() -> None:
    """The neighbour's rows are read while the neighbour overwrites them."""

    def kernel(z: asc.GlobalAddress) -> None:
        block = asc.get_block_idx()
        t = local(A, 128)
        asc.data_copy(t, window(z)[128 * ((block + 1) % 3) :], 128)  # reads
        hand_over(E.MTE2_MTE3)
        asc.data_copy(window(z)[128 * block :], t, 128)  # writes

    finding = one(toy_run(kernel, ramp(384), cores=3))
    assert (finding.kind, finding.code, finding.tensor) == ("RACE", "race-blocks-raw", "z")
    assert finding.line == line_of(kernel, "# reads")
    assert f"test_blocks.py:{line_of(kernel, '# writes')}" in finding.message
    assert finding.bytes == (512, 1024)
    assert "blocks 1 and 0 write and read the same bytes of z" in finding.message


def test_scalar_accesses_count_too() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        window(z).set_value(3, 1.0)

    finding = race(toy_run(kernel, zeros(8), cores=2))
    assert (finding.code, finding.bytes, finding.pipe) == ("race-blocks-waw", (12, 16), "S")


def test_a_word_that_is_polled_by_hand() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        if asc.get_block_idx() == 0:
            while window(z).get_value(0) == 0:  # poll
                asc.data_cache_clean_and_invalid(asc.CacheLine.SINGLE_CACHE_LINE, window(z))
        else:
            for _ in range(50):
                local(A, 8).set_value(0, 1.0)
            window(z).set_value(0, 1.0)
            asc.data_cache_clean_and_invalid(asc.CacheLine.SINGLE_CACHE_LINE, window(z))

    finding = race(toy_run(kernel, zeros(16), cores=2))
    assert (finding.code, finding.line) == ("race-blocks-raw", line_of(kernel, "# poll"))
    assert "ib_set and ib_wait do it" in finding.message


def test_two_names_of_one_array() -> None:
    """Blocks write disjoint parts of two views of one root that overlap."""

    def kernel(first: asc.GlobalAddress, second: asc.GlobalAddress) -> None:
        asc.duplicate(local(A, 64), 1.0, 64)
        asc.pipe_barrier(ALL)
        target = first if asc.get_block_idx() == 0 else second
        asc.data_copy(window(target), local(A, 64), 64)

    root = zeros(128)
    finding = race(toy_run(kernel, root[:96], root[32:], cores=2))
    assert finding.code == "race-blocks-waw"


def test_reading_the_same_bytes_is_fine() -> None:
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        copy(z, 64 * asc.get_block_idx(), x, 0, 64)

    assert toy_run(kernel, ramp(64), zeros(512), cores=8).findings == []


def test_disjoint_columns_of_one_tensor() -> None:
    """Strided stores of neighbouring columns touch no common byte, however they interleave."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        block, width = asc.get_block_idx(), COLUMNS // asc.get_block_num()
        rest = (COLUMNS - width) // 8
        t = local(A, ROWS * width)
        asc.data_copy(t, window(x)[width * block :], asc.DataCopyParams(ROWS, width // 8, rest, 0))
        hand_over(E.MTE2_MTE3)
        asc.data_copy(window(z)[width * block :], t, asc.DataCopyParams(ROWS, width // 8, 0, rest))

    for blocks in (1, 2, 8, 32):
        x, z = ramp(ROWS, COLUMNS), zeros(ROWS, COLUMNS)
        assert toy_run(kernel, x, z, cores=blocks).findings == []
        np.testing.assert_array_equal(x, z)


def test_columns_that_overlap_by_one_block() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        width = 136
        asc.duplicate(local(A, ROWS * width), 1.0, ROWS * width)
        asc.pipe_barrier(ALL)
        rest = (COLUMNS - width) // 8
        target = window(z)[(COLUMNS - width) * asc.get_block_idx() :]
        asc.data_copy(target, local(A, ROWS * width), asc.DataCopyParams(ROWS, width // 8, 0, rest))

    finding = one(toy_run(kernel, zeros(ROWS, COLUMNS), cores=2))
    assert finding.code == "race-blocks-waw"
    assert finding.bytes == (480, 544)


def test_one_block_may_write_its_bytes_twice() -> None:
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        for _ in range(2):
            copy(z, 64 * asc.get_block_idx(), x, 0, 64)

    assert toy_run(kernel, ramp(64), zeros(256), cores=4).findings == []


def test_blocks_of_later_waves_are_not_ordered_either() -> None:
    """Two blocks on one core run one after the other here, and at once on a larger chip."""

    def kernel(z: asc.GlobalAddress) -> None:
        asc.duplicate(local(A, 64), 1.0, 64)
        asc.pipe_barrier(ALL)
        asc.data_copy(window(z), local(A, 64), 64)

    for present in (1, 2):
        run = toy_run(kernel, zeros(64), cores=2, physical_cores=present)
        assert one(run).code == "race-blocks-waw"


# ---- inside one block -----------------------------------------------------------------------


@pytest.mark.parametrize("flag", [True, False])
def test_a_load_of_what_the_same_block_has_stored(flag: bool) -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        asc.duplicate(local(A, 64), 1.0, 64)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), local(A, 64), 64)
        if flag:
            hand_over(E.MTE3_MTE2)
        asc.data_copy(local(C, 64), window(z), 64)  # here

    run = toy_run(kernel, zeros(64))
    if flag:
        assert run.findings == []
    else:
        finding = one(run)
        assert (finding.code, finding.line) == ("race-raw", line_of(kernel, "# here"))
        assert finding.tensor == "z"


def test_two_stores_to_the_same_bytes() -> None:
    def kernel(z: asc.GlobalAddress, barrier: bool) -> None:
        asc.duplicate(local(A, 64), 1.0, 64)
        hand_over(E.V_MTE3)
        asc.data_copy(window(z), local(A, 64), 64)
        if barrier:
            asc.pipe_barrier(asc.PipeID.PIPE_MTE3)
        asc.data_copy(window(z), local(A, 64), 64)

    assert toy_run(kernel, zeros(64), True).findings == []
    assert one(toy_run(kernel, zeros(64), False)).code == "race-waw"


# ---- coverage -------------------------------------------------------------------------------


def rows_kernel(which: Callable[[int], list[int]]) -> Any:
    """Block b copies the rows `which(b)`."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        for row in which(asc.get_block_idx()):
            copy(z, COLUMNS * row, x, COLUMNS * row, COLUMNS)

    return kernel


@pytest.mark.parametrize(
    ("which", "missing", "words"),
    [
        (
            lambda block: [block],
            [(4, 12)],
            "rows 4 to 11 were never written (2048 of 3072 elements)",
        ),
        (lambda block: [4 + block], [(0, 4), (8, 12)], "8 rows between row 0 and 11"),
        (lambda block: [block, 5 + block], [(4, 5), (9, 12)], "4 rows between row 4 and 11"),
        (lambda block: [2 * block, 8 + 2 * (block % 2)], [], "every second row from row 1"),
        (lambda block: [3 * block], [], "8 rows between row 1 and 11"),
        (lambda block: [*range(6), *range(7, 12)], [(6, 7)], "row 6 "),
    ],
)
def test_rows_left_out(which: Any, missing: list[tuple[int, int]], words: str) -> None:
    run = toy_run(rows_kernel(which), ramp(ROWS, COLUMNS), zeros(ROWS, COLUMNS), cores=4)
    (finding,) = [finding for finding in run.findings if finding.kind == "COVERAGE"]
    assert (finding.code, finding.tensor, finding.struck) == ("output-not-written", "z", True)
    assert words in finding.message
    if missing:
        row = 4 * COLUMNS
        assert run.coverage["z"] == [(first * row, last * row) for first, last in missing]
    assert run.exit_code == 2


def test_every_second_row() -> None:
    run = toy_run(
        rows_kernel(lambda _: list(range(0, ROWS, 2))), ramp(ROWS, COLUMNS), zeros(ROWS, COLUMNS)
    )
    assert "every second row from row 1 was never written" in one(run).message
    row = 4 * COLUMNS
    assert run.coverage["z"] == [(i * row, (i + 1) * row) for i in range(1, ROWS, 2)]


@pytest.mark.parametrize(
    ("first", "width", "words"),
    [
        (0, 128, "columns 128 to 255 of every row"),
        (0, 248, "columns 248 to 255 of every row"),
        (64, 192, "columns 0 to 63 of every row"),
    ],
)
def test_columns_left_out(first: int, width: int, words: str) -> None:
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        rest = (COLUMNS - width) // 8
        t = local(A, ROWS * width)
        asc.data_copy(t, window(x)[first:], asc.DataCopyParams(ROWS, width // 8, rest, 0))
        hand_over(E.MTE2_MTE3)
        asc.data_copy(window(z)[first:], t, asc.DataCopyParams(ROWS, width // 8, 0, rest))

    finding = one(toy_run(kernel, ramp(ROWS, COLUMNS), zeros(ROWS, COLUMNS)))
    assert finding.kind == "COVERAGE"
    assert (
        f"z: {words} were never written ({ROWS * (COLUMNS - width)} of 3072 elements)"
        in finding.message
    )


def test_a_tail_that_data_copy_drops() -> None:
    """data_copy moves whole blocks of 32 bytes: three of 67 elements stay behind."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        asc.data_copy(local(A, 72), window(x), 67)
        hand_over(E.MTE2_MTE3)
        asc.data_copy(window(z), local(A, 72), 67)  # here

    run = toy_run(kernel, ramp(67), zeros(67))
    found = {(finding.kind, finding.code) for finding in run.findings}
    assert found == {("LAYOUT", "copy-tail-dropped"), ("COVERAGE", "output-not-written")}
    assert run.coverage["z"] == [(256, 268)]


def test_an_output_that_nothing_writes_is_no_output() -> None:
    """Nobody can tell it from an input; an operator names its outputs itself."""

    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        copy(z, 0, x, 0, 64)

    run = toy_run(kernel, ramp(64), zeros(64))
    assert run.coverage == {"z": []}
    assert list(run.outputs.keys()) == ["z"]


def test_a_tensor_that_is_read_as_well_may_keep_its_rest() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        copy(z, 0, z, 64, 64)

    run = toy_run(kernel, ramp(128))
    assert run.findings == []
    assert run.coverage == {"z": [(256, 512)]}


def test_outputs_that_the_caller_looks_over_itself() -> None:
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        copy(z, 0, x, 0, 64)

    run = toy_run(kernel, ramp(64), zeros(128), outputs=["z"])
    assert run.findings == []
    assert run.coverage == {"z": [(256, 512)]}
