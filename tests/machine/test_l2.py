"""Which sectors L2 holds, against a table of single sectors."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ascend_sim.config import load_chip
from ascend_sim.l2 import L2
from isa.access import Access
from isa.tensor import GlobalAddress, GlobalTensor, GmBuffer
from isa.types import uint8

SECTOR = load_chip("ascend910b1").gm.sector
CAPACITY = 24
ROWS, PITCH = 12, 8  # sectors of the allocation: rows and their distance


class Table:
    """L2 as its definition says: a sector stays until CAPACITY sectors have been filled since its last use."""

    def __init__(self) -> None:
        self.fills = 0
        self.used: dict[int, int] = {}
        self.dirty: set[int] = set()

    def held(self, sector: int) -> bool:
        return sector in self.used and self.fills - self.used[sector] < CAPACITY

    def touch(self, sectors: set[int], *, write: bool) -> tuple[int, int, int]:
        hits = sum(self.held(sector) for sector in sectors)
        self.fills += len(sectors) - hits
        self.used.update(dict.fromkeys(sectors, self.fills))
        left = {sector for sector in self.dirty if not self.held(sector)}
        self.dirty -= left
        if write:
            self.dirty |= sectors
        return hits * SECTOR, (len(sectors) - hits) * SECTOR, len(left) * SECTOR


def _cache() -> tuple[L2, GlobalTensor]:
    chip = load_chip("ascend910b1")
    chip = chip.model_copy(update={"l2": chip.l2.model_copy(update={"bytes": CAPACITY * SECTOR})})
    tensor = GlobalTensor()
    data = np.zeros(ROWS * PITCH * SECTOR, np.uint8)
    tensor.set_global_buffer(GlobalAddress(GmBuffer("x", data), uint8))
    return L2(chip), tensor


# (first row, rows, first column, columns, write) in sectors; of one grid, of several, and side by side.
_flag = st.booleans()
_grid = st.tuples(
    st.integers(0, ROWS - 1), st.integers(1, 6), st.sampled_from([0, 2, 4, 6]), st.just(2), _flag
)
_any = st.tuples(
    st.integers(0, ROWS - 1), st.integers(1, 6), st.integers(0, PITCH - 1), st.integers(1, 4), _flag
)
_row = st.tuples(st.just(0), st.just(1), st.integers(0, 80), st.integers(1, 20), _flag)


@given(
    st.one_of(
        st.lists(_grid, max_size=40),
        st.lists(_row, max_size=40),
        st.lists(st.one_of(_grid, _row), max_size=30),
        st.lists(_any, max_size=30),
    ),
    st.integers(0, SECTOR - 1),
    st.sampled_from([1, 2]),
)
def test_runs_of_rows_answer_as_single_sectors_do(
    uses: list[tuple[int, int, int, int, bool]], odd: int, many: int
) -> None:
    """`many` sectors are fetched together."""
    granule = many * SECTOR
    l2, tensor = _cache()
    table = Table()
    for number, (row, rows, column, columns, write) in enumerate(uses):
        rows = min(rows, ROWS - row)
        columns = min(columns, PITCH - column) if rows > 1 else columns
        low = (row * PITCH + column) * SECTOR
        length = columns * SECTOR
        if number % 7 == 6 and length > SECTOR:  # not on the borders of sectors
            low, length = low + odd, length - SECTOR
        shape, strides = ((rows, length), (PITCH * SECTOR, 1)) if rows > 1 else ((length,), (1,))
        end = low + (rows - 1) * PITCH * SECTOR + length
        if end > ROWS * PITCH * SECTOR:
            continue
        touched = {
            sector
            for step in range(rows)
            for sector in range(
                (low + step * PITCH * SECTOR) // granule * many,
                -(-(low + step * PITCH * SECTOR + length) // granule) * many,
            )
        }
        access = Access(tensor, low, shape, strides, uint8)
        assert l2.touch(l2.bursts(access), access.base, granule, write=write) == table.touch(
            touched, write=write
        )


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=40))
def test_the_scalar_unit_and_copies_see_the_same_sectors(uses: list[tuple[int, bool]]) -> None:
    l2, tensor = _cache()
    table = Table()
    for row, scalar in uses:
        low = row * PITCH * SECTOR
        if scalar:
            missed = table.touch({row * PITCH}, write=False)[1]
            assert l2.touch_line(tensor.buffer, low) == (missed == 0)
        else:
            access = Access(tensor, low, (PITCH * SECTOR,), (1,), uint8)
            sectors = set(range(row * PITCH, (row + 1) * PITCH))
            assert l2.touch(l2.bursts(access), low, SECTOR, write=False) == table.touch(
                sectors, write=False
            )
