"""Reports of runs that the machine made: they tile, strict readers take them, equal runs give equal bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.report.folder import FILES, write_run_folder
from ascend_sim.report.ledger import build_ledger
from ascend_sim.trace import Kind
from isa.types import PIPES_OF, Pipe
from tests.exports import check_exports, read_chrome, read_perfetto


@asc.jit(auto_sync=False)
def add_tiles(
    x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress, n: int, tile: int, num: int
) -> None:
    block = asc.get_block_idx()
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + block * n)
    y_gm = asc.GlobalTensor()
    y_gm.set_global_buffer(y + block * n)
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z + block * n)
    pipe = asc.TPipe()
    in_x = asc.TQue(asc.TPosition.VECIN, 1)
    in_y = asc.TQue(asc.TPosition.VECIN, 1)
    out = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=in_x, num=num, len=tile * 2)
    pipe.init_buffer(que=in_y, num=num, len=tile * 2)
    pipe.init_buffer(que=out, num=num, len=tile * 2)
    for i in range(n // tile):
        a = in_x.alloc_tensor(x.dtype)
        asc.data_copy(a, x_gm[i * tile :], tile)
        in_x.enque(a)
        b = in_y.alloc_tensor(x.dtype)
        asc.data_copy(b, y_gm[i * tile :], tile)
        in_y.enque(b)
        a = in_x.deque(x.dtype)
        b = in_y.deque(x.dtype)
        c = out.alloc_tensor(x.dtype)
        asc.add(c, a, b, tile)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.muls(c, c, 2.0, tile)
        out.enque(c)
        in_x.free_tensor(a)
        in_y.free_tensor(b)
        c = out.deque(x.dtype)
        asc.data_copy(z_gm[i * tile :], c, tile)
        out.free_tensor(c)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)


def launch(blocks: int = 6, tiles: int = 5, num: int = 1, **options: Any) -> sim.Run:
    tile = 1024
    n = tile * tiles
    x = np.ones(n * blocks, np.float16)
    return sim.launch(
        add_tiles, x, x.copy(), np.empty_like(x), n, tile, num, cores=blocks, **options
    )


@pytest.mark.parametrize(
    "options",
    [
        {"chip": "toy"},
        {"chip": "toy", "num": 2, "l2": "warm"},
        {"chip": "toy", "blocks": 1, "tiles": 1},
        {"chip": "toy", "auto_sync": True, "numerics": "off"},
        {"chip": "ascend910b1", "num": 2, "blocks": 50},
        {"chip": "ascend910b4", "physical_cores": 2},
    ],
)  # fmt: skip
def test_a_run_tiles_and_strict_readers_take_its_traces(
    options: dict[str, Any], tmp_path: Path
) -> None:
    run = launch(**options)
    for entry in build_ledger(run.log):
        assert list(entry.pipes) == list(PIPES_OF[entry.core.kind])
    summary = run.summary
    for core in summary["pipes"].values():
        for pipe in core.values():
            assert pipe["busy"] + pipe["wait"] + pipe["idle"] == run.cycles
    blocks, tiles = options.get("blocks", 6), options.get("tiles", 5)
    assert summary["instructions"]["aiv"]["V"] == blocks * tiles * 2
    assert summary["bytes"]["gm_read"] == blocks * tiles * 1024 * 2 * 2
    assert 0 < summary["bound"]["lower_bound_cycles"] <= run.cycles
    folder = write_run_folder(run, tmp_path / "run")
    read_chrome((folder / "trace.json").read_text(encoding="utf-8"))
    read_perfetto((folder / "trace.perfetto.json").read_text(encoding="utf-8"))
    check_exports(run)


def test_equal_runs_leave_equal_bytes(tmp_path: Path) -> None:
    first = write_run_folder(launch(chip="toy"), tmp_path / "first")
    second = write_run_folder(launch(chip="toy", shuffle=7), tmp_path / "second")
    for name in FILES:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_the_advice_on_buffers_comes_true() -> None:
    one = launch(chip="toy", tiles=20)
    two = launch(chip="toy", tiles=20, num=2)
    (text,) = [text for text in one.summary["advice"] if "BUFFER_NUM 2" in text]
    assert two.cycles < one.cycles
    promised = int(text.rpartition("at most ")[2].rstrip(" %.")) / 100
    assert 1 - two.cycles / one.cycles <= promised + 0.01
    assert not [text for text in two.summary["advice"] if "BUFFER_NUM 2" in text]


def test_sums_that_differ_from_the_table_are_found(tmp_path: Path) -> None:
    run = launch(chip="toy", num=2, blocks=3)
    check_exports(run)
    item = [i for i in run.log.cores[0].items if i.pipe is Pipe.V and i.kind is Kind.INSTRUCTION][
        -1
    ]
    item.end += 3  # behind the ledger's back
    with pytest.raises(AssertionError):
        check_exports(run)
