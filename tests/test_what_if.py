"""What-if: a gain is that of a real run on a chip, or of a kernel, that has the resource."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.config import load_chip
from ascend_sim.errors import ConfigError, UnsupportedError
from ascend_sim.ideals import IDEALS, PLENTY
from ascend_sim.run import Run

TILE = 1024


@asc.jit(auto_sync=False)
def tiles(
    x: asc.GlobalAddress, z: asc.GlobalAddress, count: int, num: int, barrier: int, shift: int
) -> None:
    start = asc.get_block_idx() * count * TILE
    x_gm, z_gm = asc.GlobalTensor(), asc.GlobalTensor()
    x_gm.set_global_buffer(x + start)
    z_gm.set_global_buffer(z + start)
    pipe = asc.TPipe()
    source, target = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=source, num=num, len=TILE * 2)
    pipe.init_buffer(que=target, num=num, len=TILE * 2)
    other = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, 0x18000 + shift, TILE)
    for i in range(count):
        a = source.alloc_tensor(x.dtype)
        asc.data_copy(a, x_gm[i * TILE :], TILE)
        source.enque(a)
        a = source.deque(x.dtype)
        b = target.alloc_tensor(x.dtype)
        asc.adds(b, a, 1.0, TILE)
        if barrier:
            asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.add(b, a, other, TILE)
        target.enque(b)
        source.free_tensor(a)
        b = target.deque(x.dtype)
        asc.data_copy(z_gm[i * TILE :], b, TILE)
        target.free_tensor(b)


def launch(
    chip: Any = "toy", count: int = 8, num: int = 1, barrier: int = 1, shift: int = 0,
    blocks: int = 4, **options: Any,
) -> Run:  # fmt: skip
    x = np.zeros(blocks * count * TILE, np.float16)
    options = {"numerics": "off", "checks": "off", **options}
    return sim.launch(
        tiles, x, x.copy(), count, num, barrier, shift, cores=blocks, chip=chip, **options
    )


def gain(run: Run, name: str) -> int:
    (row,) = run.what_if([name]).rows
    assert row.gain == run.cycles - row.cycles
    return row.cycles


def on_chip(tmp_path: Path, changes: dict[str, dict[str, float]], base: str, **options: Any) -> int:
    """Run on a chip file that extends another one."""
    sources = {section: {"source": "a test", "confidence": "L"} for section in changes}
    file = tmp_path / "ideal.yaml"
    file.write_text(
        yaml.safe_dump({"extends": base, "name": "ideal", **changes, "sources": sources})
    )
    return launch(str(file), **options).cycles


TOY = load_chip("toy")
FILES: dict[str, dict[str, dict[str, float]]] = {
    "mte2": {
        "gm": {
            "read_port_aiv": 128.0, "read_port_aic": 256.0, "window_core": 131072, "window_aiv": 65536,
            "read_write_sum_aiv": 256.0,
        },
    },
    "mte3": {
        "gm": {"write_port_aiv": 128.0, "write_port_aic": 128.0, "read_write_sum_aiv": 256.0},
    },
    "sync": {
        "sync": {
            "set": 0.0, "visible": 0.0, "cross_core": 0.0, "sync_all_us": 0.0,
            "sync_all_soft_us": 0.0,
        },
        "scalar": {"flag_issue": 0.0},
    },
    "scalar": {
        "scalar": {
            "vector_issue": 0.0, "move_issue": 0.0, "cube_issue": 0.0, "flag_issue": 0.0,
            "barrier_issue": 0.0, "ub_access": 0.0, "gm_hit": 0.0, "gm_miss": 0.0, "pipe_init": 0.0,
        },
        "icache": {"miss": 0.0},
    },
    "l2": {
        "gm": {
            "latency_hbm": 100.0, "window_core": 65536 * PLENTY, "window_aiv": 32768 * PLENTY,
        },
        "hbm": {"gbps": 500.0 * PLENTY},
    },
    "launch": {"launch": {"base_us": 0.0, "per_core_us": 0.0}},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.parametrize("num", [1, 2])
def test_a_gain_is_that_of_a_chip_file_with_that_resource_changed(
    tmp_path: Path, name: str, num: int
) -> None:
    run = launch(num=num)
    assert gain(run, name) == on_chip(tmp_path, FILES[name], "toy", num=num)


def test_one_more_buffer_is_what_one_more_buffer_gives() -> None:
    run = launch(num=1, count=12)
    assert gain(run, "buffer") == launch(num=2, count=12).cycles < run.cycles
    two = launch(num=2, count=12)
    assert gain(two, "buffer") == launch(num=3, count=12).cycles


def test_no_barriers_is_the_kernel_without_them() -> None:
    run = launch()
    assert gain(run, "barrier") == launch(barrier=0).cycles < run.cycles


def test_no_bank_conflicts_is_the_kernel_with_its_operands_elsewhere() -> None:
    conflicts = launch(shift=0)
    assert conflicts.pipes["core0.aiv0"]["V"]["causes"].get("bank_conflict", 0) > 0
    free = [launch(shift=shift) for shift in range(0, 512, 32)]
    best = min(free, key=lambda run: run.cycles)
    assert "bank_conflict" not in best.pipes["core0.aiv0"]["V"]["causes"]
    assert gain(conflicts, "banks") == best.cycles


def test_more_cores_are_what_more_cores_give() -> None:
    run = launch(blocks=8, physical_cores=2)
    assert gain(run, "cores") == launch(blocks=8, physical_cores=4).cycles


def test_all_of_them_are_ranked_and_pairs_add_up_to_more() -> None:
    run = launch(num=1, count=12)
    found = run.what_if()
    gains = [row.gain for row in found.rows]
    assert gains == sorted(gains, reverse=True)
    assert {row.ideals[0] for row in found.rows} <= {*IDEALS, "balance"}
    assert not {("cube",), ("mte1",), ("cores",)} & {row.ideals for row in found.rows}
    single = {row.ideals[0]: row.gain for row in found.rows}
    for pair in found.pairs:
        assert pair.gain > sum(max(single[name], 0) for name in pair.ideals)
    bound = run.summary["bound"]
    assert bound["lower_bound_cycles"] <= run.cycles
    path = {row.ideals[0]: row.path for row in found.rows}
    assert path["launch"] == sum(
        row["cycles"] for row in run.critical_path().rows() if row["what"] == "launch"
    )
    json_rows = found.as_dict()["ideals"]
    assert [row["gain"] for row in json_rows] == gains


def test_a_saved_run_answers_as_the_live_one_does(tmp_path: Path) -> None:
    run = launch(num=1)
    saved = Run.load(run.save(tmp_path / "run"))
    asked = ["buffer", "mte2", "mte2+buffer", "banks"]
    assert saved.what_if(asked).as_dict() == run.what_if(asked).as_dict()


def test_what_cannot_be_asked() -> None:
    with pytest.raises(ConfigError, match="did you mean 'mte2'"):
        launch().what_if(["mte22"])

    def timed(x: asc.GlobalAddress) -> None:
        asc.get_system_cycle()

    with pytest.raises(UnsupportedError, match="depend on the time"):
        sim.launch(timed, np.zeros(8, np.float16), chip="toy").what_if()
