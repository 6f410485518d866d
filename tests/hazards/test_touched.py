"""What a run did to its tensors in GM, against a count of every byte by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import ConfigError
from tests.machine.kit import E, hand_over, local, window

WIDTH = 64


def move(x: Any, z: Any, parts: list[tuple[int, int, int]], atomic: bool) -> None:
    """Each block loads its parts (first row, rows, columns from 0) of x and stores them at the same place of z."""
    x_gm, z_gm = window(x), window(z)
    tile = local(0, 16 * WIDTH)
    if atomic:
        asc.set_atomic_add(asc.float32)
    for row, rows, columns in parts[asc.get_block_idx() :: asc.get_block_num()]:
        gap = (WIDTH - columns) // 8
        asc.data_copy(tile, x_gm[row * WIDTH :], asc.DataCopyParams(rows, columns // 8, gap, 0))
        hand_over(E.MTE2_MTE3)
        asc.data_copy(z_gm[row * WIDTH :], tile, asc.DataCopyParams(rows, columns // 8, 0, gap))
        hand_over(E.MTE3_MTE2)
    asc.set_atomic_none()


def launch(
    parts: list[tuple[int, int, int]], *, cores: int = 1, rows: int = 16, atomic: bool = False
) -> dict[str, Any]:
    x, z = (np.zeros((rows, WIDTH), np.float32) for _ in range(2))
    run = sim.launch(
        lambda a, b: move(a, b, parts, atomic), x, z, names=["x", "z"], cores=cores, chip="toy"
    )
    return {one.name: one for one in run.touched()}


def test_rows_and_columns_by_core() -> None:
    found = launch([(0, 4, 64), (8, 8, 32)], cores=2)
    x, z = found["x"], found["z"]
    assert (x.written.text, z.read.text, x.written_twice.text) == ("", "", "")
    assert x.by_core["core0.aiv0"][0].text == "rows 0 to 3"
    assert z.by_core["core0.aiv0"][1].text == "rows 0 to 3"
    assert z.by_core["core0.aiv1"][1].elements == 8 * 32
    assert z.never_written.elements == 16 * 64 - 4 * 64 - 8 * 32
    assert x.never_read.elements == z.never_written.elements


def test_columns_that_nothing_reads() -> None:
    x = launch([(0, 16, 40)])["x"]
    assert x.read.text == "columns 0 to 39 of every row"
    assert x.never_read.text == "columns 40 to 63 of every row"


def test_every_second_row() -> None:
    z = launch([(row, 1, 64) for row in range(0, 16, 2)])["z"]
    assert z.never_written.text == "every second row from row 1"


def test_written_twice_but_for_atomic_stores() -> None:
    parts = [(0, 4, 64), (2, 4, 64)]
    assert launch(parts)["z"].written_twice.text == "rows 2 to 3"
    assert launch(parts, atomic=True)["z"].written_twice.text == ""
    assert launch(parts)["z"].written.text == "rows 0 to 5"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(1, 8), st.integers(1, 8).map(lambda n: n * 8)),
        max_size=6,
    )
)
def test_all_of_it_against_a_count(parts: list[tuple[int, int, int]]) -> None:
    counts = np.zeros((16, WIDTH), int)
    for row, rows, columns in parts:
        counts[row : row + rows, :columns] += 1
    z = launch(parts)["z"]
    for part, expected in (
        (z.written, counts > 0),
        (z.never_written, counts == 0),
        (z.written_twice, counts > 1),
    ):
        given_bytes = np.zeros(16 * WIDTH * 4, bool)
        for low, high in part.ranges:
            given_bytes[low:high] = True
        np.testing.assert_array_equal(
            given_bytes.reshape(16, WIDTH, 4), np.repeat(expected[:, :, None], 4, axis=2)
        )


def test_without_checks_nobody_knows() -> None:
    run = sim.launch(lambda x: None, np.zeros(8, np.float32), names=["x"], checks="off")
    with pytest.raises(ConfigError, match="checks='collect'"):
        run.touched()
