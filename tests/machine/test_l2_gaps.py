"""What L2 holds behind trips that were left out, against all trips made."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest

from ascend_sim.config import load_chip
from ascend_sim.l2 import L2
from ascend_sim.l2_gaps import Gaps
from ascend_sim.trips import START, WARM, chosen
from isa.access import Access
from isa.tensor import GlobalAddress, GlobalTensor, GmBuffer
from isa.types import uint8

SECTOR = load_chip("ascend910b1").gm.sector
CAPACITY = 3000
PIECE = 48
"""Sectors that each trip reads and writes."""
HOT = 200
"""Sectors that every other trip uses."""
HEAD = 5
"""Trips that read the same sectors of another tensor."""
LOOP = (0, 0)

Moved = tuple[int, int, int]


@dataclass
class Work:
    """Trips that read and write a piece each and use one of two places again; then all that was written is read."""

    trips: int
    backwards: bool = False
    many: int = 0
    l2: L2 = field(init=False)
    tensors: dict[str, GlobalTensor] = field(init=False)

    def __post_init__(self) -> None:
        chip = load_chip("ascend910b1")
        l2 = chip.l2.model_copy(update={"bytes": CAPACITY * SECTOR})
        self.l2 = L2(chip.model_copy(update={"l2": l2}))
        sizes = {"x": self.trips * PIECE, "z": self.trips * PIECE, "hot": 2 * HOT}
        sizes["heads"] = self.many * (self.trips // HEAD + 1)
        self.tensors = {name: _tensor(name, size) for name, size in sizes.items()}

    def touch(self, name: str, first: int, count: int, *, write: bool) -> np.ndarray:
        access = Access(self.tensors[name], first * SECTOR, (count * SECTOR,), (1,), uint8)
        return (
            np.array(self.l2.touch(self.l2.bursts(access), access.base, SECTOR, write=write))
            // SECTOR
        )

    def trip(self, trip: int) -> np.ndarray:
        place = (self.trips - 1 - trip if self.backwards else trip) * PIECE
        moved = self.touch("x", place, PIECE, write=False)
        moved += self.touch("hot", trip % 2 * HOT, HOT, write=True)
        if self.many:
            moved += self.touch("heads", trip // HEAD * self.many, self.many, write=False)
        return moved + self.touch("z", place, PIECE, write=True)

    def read_back(self) -> np.ndarray:
        return sum(self.touch("z", trip * PIECE, PIECE, write=False) for trip in range(self.trips))


def _tensor(name: str, sectors: int) -> GlobalTensor:
    tensor = GlobalTensor()
    data = np.zeros(sectors * SECTOR, np.uint8)
    tensor.set_global_buffer(GlobalAddress(GmBuffer(name, data), uint8))
    return tensor


@pytest.mark.parametrize("trips", [56, 70, 100, 400])
@pytest.mark.parametrize("backwards", [False, True])
def test_l2_is_as_if_all_trips_had_been_made(trips: int, backwards: bool) -> None:
    whole = Work(trips, backwards)
    expected = [whole.trip(trip) for trip in range(trips)]
    work = Work(trips, backwards)
    gaps = Gaps(work.l2, [tensor.buffer for tensor in work.tensors.values()])
    gaps.begin(LOOP)
    made = chosen(trips)
    settled, moved = START, []
    for position, (before, trip) in enumerate(pairwise([-1, *made])):
        if trip != before + 1:
            gaps.leave_out(LOOP, position, range(before + 1, trip), settled)
            settled = position + WARM
        gaps.trip(LOOP, position, trip, position == settled)
        moved.append(work.trip(trip))
        seen = sum(moved), sum(expected[at] for at in made[: position + 1])
        assert seen[0].tolist() == pytest.approx(seen[1].tolist(), abs=PIECE)
    gaps.end(LOOP)
    full = next(trip for trip in range(trips) if expected[trip][2])
    assert gaps.full_from(LOOP) == pytest.approx(full + 1, abs=1)
    assert work.read_back().tolist() == pytest.approx(whole.read_back().tolist(), abs=2 * PIECE)


@pytest.mark.parametrize("trips", [56, 100])
@pytest.mark.parametrize("many", [30, 300])
def test_trips_that_fill_more_than_others(trips: int, many: int) -> None:
    """Some trips begin a head and read all of it. Behind the loop L2 has filled as much as with all trips."""
    whole, work = Work(trips, many=many), Work(trips, many=many)
    for trip in range(trips):
        whole.trip(trip)
    _leave_out(work)
    assert work.l2.fills == pytest.approx(whole.l2.fills, abs=2 * PIECE)
    assert work.read_back().tolist() == pytest.approx(whole.read_back().tolist(), abs=3 * PIECE)


def _leave_out(work: Work) -> None:
    gaps = Gaps(work.l2, [tensor.buffer for tensor in work.tensors.values()])
    gaps.begin(LOOP)
    settled = START
    for position, (before, trip) in enumerate(pairwise([-1, *chosen(work.trips)])):
        if trip != before + 1:
            gaps.leave_out(LOOP, position, range(before + 1, trip), settled)
            settled = position + WARM
        gaps.trip(LOOP, position, trip, position == settled)
        work.trip(trip)
    gaps.end(LOOP)
