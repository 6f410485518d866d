"""The critical path and slack: they tile, a chain by hand, and what slack promises comes true."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from synthetic import logs

import ascend_sim as sim
from ascend_sim import asc, pipes
from ascend_sim.config import load_chip
from ascend_sim.cost import price
from ascend_sim.report.critical_path import COLUMNS, critical_path, write_critical_path
from ascend_sim.report.ledger import build_ledger
from ascend_sim.report.slack import slack
from ascend_sim.trace import Kind, Log

TOY = load_chip("toy")


@given(logs())
@settings(max_examples=80, deadline=None)
def test_whatever_the_log_says_the_path_tiles_it(log: Log) -> None:
    ledger = build_ledger(log)
    position = 0
    for step in critical_path(ledger, TOY).steps:
        assert step.start == position < step.end
        position = step.end
    assert position == log.cycles
    rows = list(critical_path(ledger, TOY).rows())
    assert sum(row["cycles"] for row in rows) == log.cycles
    slack(ledger, TOY)


@asc.jit(auto_sync=False)
def chain(x: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
    source, target = asc.GlobalTensor(), asc.GlobalTensor()
    source.set_global_buffer(x)
    target.set_global_buffer(y)
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, 0, 1024)
    b = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, 0x8100, 1024)
    c = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, 0x12000, 4096)
    asc.data_copy(a, source, 1024)
    asc.duplicate(c, 1.0, 4096)  # beside the load: has slack
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)
    asc.adds(b, a, 1.0, 1024)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    asc.muls(c, c, 2.0, 2048)  # beside the store: has slack
    asc.data_copy(target, b, 1024)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)


def slower(monkeypatch: pytest.MonkeyPatch, name: str, cycles: int) -> sim.Run:
    """Run `chain` with every `name` instruction taking some cycles longer."""

    def dearer(call: Any, chip: Any) -> Any:
        cost = price(call, chip)
        if call.name == name:
            cost.interval += cycles
            cost.duration += cycles
        return cost

    with monkeypatch.context() as patch:
        patch.setattr(pipes, "price", dearer)
        x = np.ones(1024, np.float32)
        return sim.launch(chain, x, np.zeros_like(x), chip="toy")


@pytest.mark.parametrize("name", ["duplicate", "adds", "muls"])
def test_an_instruction_may_take_its_slack_longer_and_not_a_cycle_more(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    plain = slower(monkeypatch, name, 0)
    spare = slack(plain.ledger, plain.chip)[0]
    (row,) = [row for row, item in enumerate(plain.log.cores[0].items) if item.name == name]
    own = int(spare[row])
    assert (own == 0) == (name == "adds")
    assert slower(monkeypatch, name, own).cycles == plain.cycles
    assert slower(monkeypatch, name, own + 7).cycles == plain.cycles + 7


def test_the_path_leads_through_the_load_the_add_and_the_store() -> None:
    x = np.ones(1024, np.float32)
    run = sim.launch(chain, x, np.zeros_like(x), chip="toy")
    path = run.critical_path()
    names = [row["name"] for row in path.rows() if row["what"] == "work"]
    assert list(dict.fromkeys(names)) == ["data_copy", "adds"]
    assert {row["pipe"] for row in path.rows() if row["what"] == "work"} == {"MTE2", "V", "MTE3"}
    stream = io.StringIO()
    spare = slack(run.ledger, run.chip)
    write_critical_path(path, lambda core, row: int(spare[core][row]), stream)
    header, *rows = stream.getvalue().splitlines()
    assert header == ",".join(COLUMNS)
    assert sum(int(row.split(",")[2]) for row in rows) == run.cycles


def test_a_path_goes_from_core_to_core() -> None:
    def kernel() -> None:
        t = asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, 0, 2048)
        if asc.ascend_is_aic():
            return
        if asc.get_sub_block_idx() == 1:
            asc.div(t, t, t, 1024)
            asc.cross_core_set_flag(5, 1, asc.PipeID.PIPE_V)
            asc.cross_core_wait_flag(5)
        else:
            asc.cross_core_set_flag(5, 1, asc.PipeID.PIPE_V)
            asc.cross_core_wait_flag(5)
            asc.div(t, t, t, 2048)

    run = sim.launch(kernel, chip="toy", checks="off", kernel_type="MIX_AIC_1_2")
    path = run.critical_path()
    working = [(row["core"], row["name"]) for row in path.rows() if row["what"] == "work"]
    assert working == [("core0.aiv1", "div"), ("core0.aiv0", "div")]
    first, second = slack(run.ledger, run.chip)[1:]
    assert run.log.cores[1].items[0].kind is Kind.SET_FLAG
    assert first[0] > 0
    assert second[0] == 0
