"""Loops of which a sampled run leaves trips out: the whole is as long, and what cannot be sampled is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.steady import left_out
from ascend_sim.trace import Item
from ascend_sim.trips import FILLING, PERIOD, Stretch, chosen
from isa.types import CoreKind

TILE = 512
Numbers = np.ndarray[Any, np.dtype[np.float32]]


@given(st.integers(0, 5000), st.integers(1, 4))
def test_chosen_trips_are_in_order_and_gaps_keep_turns(count: int, scale: int) -> None:
    trips = chosen(count, scale)
    assert trips == sorted(set(trips))
    assert set(trips) <= set(range(count))
    assert len(trips) == count or len(trips) < count / 1.2
    if count:
        assert (trips[0], trips[-1]) == (0, count - 1)
    assert all((b - a - 1) % PERIOD == 0 for a, b in pairwise(trips))


def _tile(x: Any, z: Any, first: int, turn: int, repeats: int = 1) -> None:
    """Load a tile, add to it, store it, with two buffers in turn."""
    place = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, turn * 4 * TILE, TILE)
    asc.wait_flag(asc.HardEvent.MTE3_MTE2, turn)
    asc.data_copy(place, x[first:], TILE)
    asc.set_flag(asc.HardEvent.MTE2_V, turn)
    asc.wait_flag(asc.HardEvent.MTE2_V, turn)
    for _ in range(repeats):
        asc.adds(place, place, 1.0, TILE)
    asc.set_flag(asc.HardEvent.V_MTE3, turn)
    asc.wait_flag(asc.HardEvent.V_MTE3, turn)
    asc.data_copy(z[first:], place, TILE)
    asc.set_flag(asc.HardEvent.MTE3_MTE2, turn)


def _tensors(x: Any, z: Any) -> tuple[Any, Any]:
    source, target = asc.GlobalTensor(), asc.GlobalTensor()
    source.set_global_buffer(x)
    target.set_global_buffer(z)
    for turn in range(2):
        asc.set_flag(asc.HardEvent.MTE3_MTE2, turn)
    return source, target


def _done() -> None:
    for turn in range(2):
        asc.wait_flag(asc.HardEvent.MTE3_MTE2, turn)


def stream(x: asc.GlobalAddress, z: asc.GlobalAddress, tiles: int) -> None:
    source, target = _tensors(x, z)
    start = asc.get_block_idx() * tiles
    for tile in asc.range(start, start + tiles):
        _tile(source, target, tile * TILE, tile % 2)
    _done()


def uneven(x: asc.GlobalAddress, z: asc.GlobalAddress, tiles: int) -> None:
    """Every third tile is five times the work, and block 1 has more of them."""
    source, target = _tensors(x, z)
    block = asc.get_block_idx()

    def repeats(tile: int) -> int:
        return 20 if tile % 3 <= block else 4

    for tile in sim.trips(tiles, repeats):
        _tile(source, target, (block * tiles + tile) * TILE, tile % 2, repeats(tile))
    _done()


def growing(x: asc.GlobalAddress, z: asc.GlobalAddress, tiles: int) -> None:
    """Later tiles are more work, and nothing says so."""
    source, target = _tensors(x, z)
    for tile in asc.range(tiles):
        _tile(source, target, tile * TILE, tile % 2, 60 + tile // 10)
    _done()


def rows(x: asc.GlobalAddress, z: asc.GlobalAddress, tiles: int) -> None:
    """A short loop around a long one."""
    source, target = _tensors(x, z)
    for row in asc.range(4):
        for tile in asc.range(tiles // 4):
            _tile(source, target, (row * tiles // 4 + tile) * TILE, tile % 2)
    _done()


def _arrays(tiles: int, blocks: int) -> tuple[Numbers, Numbers]:
    x = np.zeros(tiles * blocks * TILE, np.float32)
    return x, x.copy()


@pytest.mark.parametrize(
    ("kernel", "tiles", "blocks"),
    [(stream, 400, 3), (uneven, 400, 2), (growing, 400, 1), (rows, 1600, 1)],
)
def test_the_whole_is_as_long(kernel: Any, tiles: int, blocks: int) -> None:
    x, z = _arrays(tiles, blocks)
    whole = sim.launch(kernel, x, z, tiles, cores=blocks, chip="toy", numerics="off", checks="off")
    found = sim.sample(kernel, x, z, tiles, cores=blocks, chip="toy")
    assert not found.exact
    assert found.parts[0].total == tiles * blocks
    assert found.parts[0].number < 0.6 * tiles * blocks
    assert found.cycles == pytest.approx(whole.cycles, rel=0.01)
    assert abs(found.cycles - whole.cycles) <= found.error
    vector = whole.summary["instructions"]["aiv"]
    for pipe in ("V", "MTE2", "MTE3"):
        assert found.counts["instructions", "aiv", pipe] == pytest.approx(vector[pipe], rel=0.02)
    assert found.counts["bytes", "aiv", "MTE2"] == x.nbytes


def _stretch(count: int, takes: Callable[[int], float]) -> tuple[Stretch, float]:
    """Return a loop of which trips are left out, and what those take."""
    trips = chosen(count)
    stretch = Stretch("k.py:1", 0, 0, CoreKind.AIC, 1, count, 1, None, trips)
    time = 0.0
    for trip in trips:
        stretch.marks.append(cast("Item", SimpleNamespace(issue=round(time))))
        stretch.counts.append(Counter())
        time += takes(trip)
    stretch.marks.append(cast("Item", SimpleNamespace(issue=round(time))))
    return stretch, sum(takes(trip) for trip in set(range(count)) - set(trips))


@pytest.mark.parametrize(
    ("count", "stays"), [(60, 0.9), (60, 0.97), (200, 0.95), (3000, 0.9), (80, 1.0)]
)
def test_trips_of_a_gap_settle_as_cores_draw_level(count: int, stays: float) -> None:
    """Trips are 3000 cycles shorter at first, and each leaves `stays` of that; or they grow by 10 cycles each."""

    def takes(trip: int) -> float:
        return 65_000 - 3_000 * stays**trip if stays < 1 else 65_000 + 10 * trip

    stretch, missing = _stretch(count, takes)
    stretch.settling = [stays] * len(stretch.gaps)
    (found,) = left_out([stretch])
    assert found.trips == count - len(stretch.trips) > 0
    assert found.cycles == pytest.approx(missing, rel=0.001)
    assert abs(found.cycles - missing) <= found.error


@pytest.mark.parametrize(
    ("count", "full_from"), [(60, 5), (60, 15), (60, 40), (60, 56), (200, 30), (3000, 50)]
)
def test_trips_of_a_gap_are_on_their_side_of_a_full_l2(count: int, full_from: int) -> None:
    """Trips are slower once dirty sectors leave L2; the two when that begins are slower still."""

    def takes(trip: int) -> float:
        begins = 0 <= trip + 1 - full_from < FILLING
        return 90_000 if begins else 78_000 if trip < full_from else 98_000

    stretch, missing = _stretch(count, takes)
    stretch.full_from = full_from
    (found,) = left_out([stretch])
    unseen = {full_from - 1, full_from} - set(stretch.trips)
    assert abs(found.cycles - missing) <= 12_000 * len(unseen) + 10


def test_a_run_that_is_not_sampled_makes_all_trips() -> None:
    x, z = _arrays(60, 1)
    sim.launch(stream, x, z, 60, chip="toy")
    assert np.array_equal(z, x + 1)


def test_short_loops_are_simulated_whole() -> None:
    x, z = _arrays(20, 1)
    found = sim.sample(stream, x, z, 20, chip="toy")
    whole = sim.launch(stream, x, z, 20, chip="toy", numerics="off", checks="off")
    assert (found.exact, found.cycles, found.error, found.parts) == (True, whole.cycles, 0, ())


def test_a_loop_that_ends_early_is_refused() -> None:
    def early(x: asc.GlobalAddress, z: asc.GlobalAddress, tiles: int) -> None:
        source, target = _tensors(x, z)
        for tile in asc.range(tiles):
            _tile(source, target, tile * TILE, tile % 2)
            if tile == tiles - 2:
                break
        _done()

    x, z = _arrays(400, 1)
    with pytest.raises(sim.UnsupportedError, match=r"the loop at .*test_trips.py:\d+ ends early"):
        sim.sample(early, x, z, 400, chip="toy")


def test_cores_that_make_other_trips_are_refused() -> None:
    """The vector cores wait for every trip of the cube core, in a loop that leaves none out."""

    def apart(tiles: int) -> None:
        if asc.ascend_is_aic():
            for _ in asc.range(tiles):
                asc.cross_core_set_flag(2, 2, asc.PipeID.PIPE_FIX)
        else:
            for _ in range(tiles):
                asc.cross_core_wait_flag(2, 2)

    with pytest.raises(sim.UnsupportedError, match="do not make the same ones: run it without"):
        sim.sample(apart, 400, chip="toy", kernel_type="MIX_AIC_1_2")
