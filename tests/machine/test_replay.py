"""A replay equals a live run to the cycle, on every chip; what depends on data or time is refused."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.run import Run
from tests.machine.kit import ALL, E, V, hand_over, local, variant, window
from tests.machine.programs import Generator, arrays, compiled

ROOT = Path(__file__).resolve().parents[2]
CHIPS = ("toy", "ascend910b1", "ascend910b4")


def check_equal(replayed: Run, live: Run) -> None:
    assert replayed.cycles == live.cycles
    assert replayed.pipes == live.pipes
    assert replayed.memory == live.memory
    for key in ("stalls", "phases", "instructions", "bytes", "work", "bound", "overlap"):
        assert replayed.summary[key] == live.summary[key], key


def check(kernel: Callable[..., Any], *args: Any, **options: Any) -> sim.Recording:
    """Record on one chip, replay on all of them, each beside a live run."""
    recording = sim.record(kernel, *args, chip="ascend910b3", **options)
    kind = {key: value for key, value in options.items() if key == "physical_cores"}
    for chip in CHIPS:
        for l2 in ("cold", "warm"):
            live = sim.launch(kernel, *args, chip=chip, l2=l2, **options)
            check_equal(recording.replay(chip, l2=l2, **kind), live)
    return recording


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


def test_queues() -> None:
    values = example("01_vector_add")
    x = np.zeros(values["BLOCKS"] * values["TILES"] * values["TILE"], np.float16)
    recording = check(
        values["vector_add"], x, x.copy(), x.copy(), values["TILES"], values["TILE"], 2,
        cores=values["BLOCKS"],
    )  # fmt: skip
    assert len(recording.steps) < recording.items / 20


def tiled(x: asc.GlobalAddress, z: asc.GlobalAddress, sizes: asc.GlobalAddress) -> None:
    """A loop whose number of trips the host has put in GM; phases, flags, barriers, scalar stores."""
    source, target, host = window(x), window(z), window(sizes)
    trips, size = host.get_value(0), host.get_value(1)
    start = asc.get_block_idx() * trips * size
    for trip in range(trips):
        sim.phase("even" if trip % 2 == 0 else "odd")
        asc.data_copy(local(0, size), source[start + trip * size :], count=size)
        hand_over(E.MTE2_V)
        asc.muls(local(0x8000, size), local(0, size), 2.0, count=size)
        asc.pipe_barrier(V)
        asc.adds(local(0x8000, size), local(0x8000, size), 1.0, count=size)
        hand_over(E.V_MTE3)
        asc.data_copy(target[start + trip * size :], local(0x8000, size), count=size)
        asc.pipe_barrier(ALL)
        local(0x20000, 8).set_value(trip % 8, 1.0)


def tiled_arguments(blocks: int, trips: int = 3, size: int = 1024) -> tuple[Any, ...]:
    x = np.zeros(blocks * trips * size, np.float32)
    return x, x.copy(), np.array([trips, size], np.int32)


@pytest.mark.parametrize(("blocks", "cores"), [(1, 1), (6, 6), (9, 2)])
def test_blocks_in_waves(blocks: int, cores: int) -> None:
    recording = check(tiled, *tiled_arguments(blocks), cores=blocks, physical_cores=cores)
    other = recording.replay("toy", physical_cores=3)
    live = sim.launch(tiled, *tiled_arguments(blocks), cores=blocks, physical_cores=3, chip="toy")
    check_equal(other, live)


def test_cube_and_vector_cores() -> None:
    def kernel(z: asc.GlobalAddress) -> None:
        if asc.ascend_is_aiv():
            asc.data_copy(window(z)[asc.get_block_idx() * 64 :], local(0, 64), count=64)
            asc.cross_core_set_flag(3, 2, asc.PipeID.PIPE_MTE3)
            asc.cross_core_wait_flag(4)
        else:
            asc.cross_core_wait_flag(3)
            asc.cross_core_set_flag(4, 2, asc.PipeID.PIPE_MTE2)
        asc.sync_all(False)

    z = np.zeros(64 * 6, np.float32)
    check(kernel, z, cores=2, kernel_type="MIX_AIC_1_2")
    three = sim.record(kernel, z, cores=3, kernel_type="MIX_AIC_1_2")
    with pytest.raises(sim.DeadlockError, match="waits at"):  # the chip has two
        three.replay("toy")


@pytest.mark.parametrize("seed", range(6000, 6012))
def test_random_programs(seed: int) -> None:
    kernel, _ = compiled(Generator(seed).make(40).elements, f"program {seed}")
    check(kernel, *arrays(seed))


@pytest.mark.parametrize("buffers", [1, 2])
@pytest.mark.parametrize(
    ("gbps", "l2"), [(25, "dirty"), (60, "cold"), (150, "cold"), (150, "dirty")]
)
def test_where_hbm_has_too_little_for_all(tmp_path: Path, gbps: int, l2: Any, buffers: int) -> None:
    """Loads that let a store of their core go first are that in a replay, too."""
    values = example("01_vector_add")
    x = np.zeros(16 * 12 * 1024, np.float16)
    chip = variant(tmp_path, f"hbm: {{gbps: {gbps}}}", "ascend910b4")
    live = sim.launch(
        values["vector_add"], x, x.copy(), x.copy(), 12, 1024, buffers,
        cores=16, chip=chip, numerics="off", checks="off", l2=l2,
    )  # fmt: skip
    check_equal(live.recording().replay(chip, l2=l2), live)


def test_operators() -> None:
    from ops import Context, find_operator

    spec = find_operator("rope_grad")
    options = {"seq": "200,37", "hidden": "512"}
    recording = spec.run(options, Context(chip="ascend910b1"), 0, None).recording()
    for chip in CHIPS:
        live = spec.run(options, Context(chip=chip, numerics="off", checks="off"), 0, None)
        check_equal(recording.replay(chip), live)


def test_saved(tmp_path: Path) -> None:
    recording = sim.record(tiled, *tiled_arguments(4, trips=50), cores=4)
    recording.save(tmp_path / "tiled.rec")
    again = sim.Recording.load(tmp_path / "tiled.rec")
    check_equal(again.replay("toy"), recording.replay("toy"))
    size = (tmp_path / "tiled.rec").stat().st_size
    assert size < 8 * recording.items + 20_000  # no data, no text for each item


def test_a_replay_can_be_repeated_and_recorded() -> None:
    recording = sim.record(tiled, *tiled_arguments(2), cores=2)
    first = recording.replay("ascend910b2", l2="warm")
    check_equal(recording.replay("ascend910b2", l2="warm"), first)
    check_equal(first.recording().replay("toy"), recording.replay("toy"))


def test_data_dependent_kernels_are_refused() -> None:
    def computed(z: asc.GlobalAddress) -> None:
        asc.duplicate(local(0, 64), 1.0, count=64)
        hand_over(E.V_S)
        if local(0, 64).get_value(3) > 0:
            asc.duplicate(local(0, 64), 2.0, count=64)

    def written(z: asc.GlobalAddress) -> None:
        window(z).set_value(0, 1.0)
        window(z).get_value(0)

    def timed() -> None:
        asc.get_system_cycle()

    z = np.zeros(64, np.float32)
    run = sim.launch(computed, z, chip="toy")
    with pytest.raises(
        sim.UnsupportedError, match=r"get_value reads UB\S* in UB, .*\n  at \S*test_replay"
    ):
        run.recording()
    with pytest.raises(sim.UnsupportedError, match="numerics off there is no value"):
        sim.record(computed, z)
    run = sim.launch(written, z, chip="toy")
    with pytest.raises(
        sim.UnsupportedError, match=r"get_value reads z in GM, which the kernel comp"
    ):
        run.recording()
    with pytest.raises(sim.UnsupportedError, match="depend on the time"):
        sim.record(timed)


def test_a_run_that_was_cut_short_is_refused() -> None:
    def kernel() -> None:
        asc.wait_flag(E.MTE2_V, 0)

    with pytest.raises(sim.DeadlockError) as caught:
        sim.launch(kernel, chip="toy")
    assert caught.value.run is not None
    with pytest.raises(sim.UnsupportedError, match="cut short"):
        caught.value.run.recording()


def test_a_chip_without_room_is_refused() -> None:
    def kernel() -> None:
        asc.duplicate(local(0x20000, 64), 1.0, count=64)

    recording = sim.record(kernel)
    toy = sim.load_chip("toy")
    memories = toy.memories.model_copy(
        update={"UB": toy.memories.UB.model_copy(update={"bytes": 0x20000})}
    )
    small = toy.model_copy(update={"memories": memories})
    with pytest.raises(sim.CapacityError, match="uses 131328 bytes of UB, toy has 131072: 256 too"):
        recording.replay(small)


def test_bad_options(tmp_path: Path) -> None:
    recording = sim.record(tiled, *tiled_arguments(1), cores=1)
    with pytest.raises(sim.ConfigError, match="l2 is 'hot'"):
        recording.replay("toy", l2="hot")
    with pytest.raises(sim.ConfigError, match="physical_cores is 0"):
        recording.replay("toy", physical_cores=0)
    (tmp_path / "x").write_bytes(b"nothing")
    with pytest.raises(
        sim.ConfigError, match=r"x is no recording, or one of another version .* record again"
    ):
        sim.Recording.load(tmp_path / "x")
    with pytest.raises(sim.ConfigError, match="cannot read the recording"):
        sim.Recording.load(tmp_path / "y")


def test_issuing_alone_records_what_a_run_does() -> None:
    arguments = tiled_arguments(5)
    alone = sim.record(tiled, *arguments, cores=5, physical_cores=2)
    ran = sim.launch(tiled, *arguments, cores=5, physical_cores=2, numerics="off").recording()
    assert [(step.pipe, step.kind, step.name, step.flag) for step in alone.steps] == [
        (step.pipe, step.kind, step.name, step.flag) for step in ran.steps
    ]
    for mine, theirs in zip(
        sorted(alone.parts, key=lambda part: part.block),
        sorted(ran.parts, key=lambda part: part.block),
        strict=True,
    ):
        assert mine.block == theirs.block
        assert np.array_equal(mine.steps, theirs.steps)
        assert np.array_equal(mine.addresses, theirs.addresses)


def test_a_launch_is_replaced_only_where_its_recording_still_holds() -> None:
    from ascend_sim.launch import substitutes
    from ascend_sim.recorder import Recordings

    x, z, sizes = tiled_arguments(2)
    more = np.array([2, 1024], np.int32)
    recordings = Recordings()
    timing = {"numerics": "off", "checks": "off", "cores": 2}
    live = [
        sim.launch(tiled, x, z, host, chip=chip, **timing)
        for host in (sizes, more, sizes)
        for chip in CHIPS
    ]
    substitutes.append(recordings.launch)
    try:
        replaced = [
            sim.launch(tiled, x, z, host, chip=chip, **timing)
            for host in (sizes, more, sizes)
            for chip in CHIPS
        ]
        assert sim.launch(tiled, x, z, sizes, cores=2).options.get("replayed") is None
    finally:
        substitutes.remove(recordings.launch)
    for mine, theirs in zip(replaced, live, strict=True):
        assert mine.options["replayed"]
        check_equal(mine, theirs)
