"""What the tests of the machine share: short names, looking things up in a log, checks that hold for every run."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.launch import on_run
from ascend_sim.report.chain import longest_chain
from ascend_sim.report.critical_path import MOVE, SET, WAY, WORK
from ascend_sim.report.ledger import build_ledger, pipe_totals
from ascend_sim.report.slack import slack
from ascend_sim.run import Run
from ascend_sim.trace import Item, Kind, Log
from isa.types import PIPES_OF, DType, Pipe
from tests import exports

E = asc.HardEvent
V, MTE2, MTE3 = asc.PipeID.PIPE_V, asc.PipeID.PIPE_MTE2, asc.PipeID.PIPE_MTE3
ALL = asc.PipeID.PIPE_ALL

# Three UB places of 32 KiB whose use by one instruction meets no bank conflict: the sources differ by half a
# row of the bank groups, the destination is in the groups of the first but in other banks.
A, B, C = 0, 0x8100, 0x12000


def local(
    address: int, count: int, dtype: DType = asc.float32, position: Any = asc.TPosition.VECCALC
) -> asc.LocalTensor:
    """A tensor at a fixed UB address, `count` elements."""
    return asc.LocalTensor(dtype, position, address, count)


def window(address: Any) -> asc.GlobalTensor:
    """A GlobalTensor on a kernel argument."""
    tensor = asc.GlobalTensor()
    tensor.set_global_buffer(address)
    return tensor


def hand_over(event: asc.HardEvent, event_id: int = 0) -> None:
    """Set a flag and wait for it at once."""
    asc.set_flag(event, event_id)
    asc.wait_flag(event, event_id)


def toy_run(kernel: Callable[..., None], *args: Any, **options: Any) -> Run:
    """Launch on the chip of round numbers; one array where the kernel needs none."""
    return sim.launch(kernel, *args, **{"chip": "toy", **options})


def items(run: Run, pipe: str | None = None, name: str | None = None, core: int = 0) -> list[Item]:
    """The items of one core in program order, of one pipe and name if given."""
    return [
        item
        for item in run.log.cores[core].items
        if (pipe is None or item.pipe.name == pipe) and (name is None or item.name == name)
    ]


def instructions(run: Run, pipe: str, core: int = 0) -> list[Item]:
    """The instructions of one pipe of one core."""
    return [item for item in items(run, pipe, core=core) if item.kind is Kind.INSTRUCTION]


def times(found: list[Item]) -> list[tuple[int, int]]:
    """Start and end of each."""
    return [(item.start, item.end) for item in found]


def line_of(function: Any, text: str, occurrence: int = 0) -> int:
    """The line of a kernel's source that contains a text: the first one, or a later one."""
    lines, first = inspect.getsourcelines(getattr(function, "function", function))
    return [first + number for number, line in enumerate(lines) if text in line][occurrence]


def kinds(run: Run) -> list[tuple[str, str]]:
    """Kind and code of every finding."""
    return [(finding.kind, finding.code) for finding in run.findings]


def everything(run: Run) -> Any:
    """All that a run says, for comparing two runs."""
    log = [
        (
            core.name,
            core.start,
            core.end,
            tuple(core.blocks),
            tuple(
                (i.pipe, i.kind, i.name, i.issue, i.head, i.start, i.accept, i.end, i.parts)
                for i in core.items
            ),
            tuple((s.start, s.end, s.cause, s.detail) for s in core.stalls),
        )
        for core in run.log.cores
    ]
    findings = [
        (
            f.kind,
            f.code,
            f.message,
            f.file,
            f.line,
            f.core,
            f.pipe,
            f.tensor,
            f.bytes,
            f.struck,
            f.hits,
        )
        for f in run.findings
    ]
    outputs = [np.asarray(array).tobytes() for array in run.outputs]
    return run.cycles, log, findings, outputs


def check_run(run: Run) -> None:
    """Check what must hold for every run, whole or cut short."""
    check_tiling(run.log)
    check_order(run.log)
    check_path(run)
    check_bounds(run)


def check_tiling(log: Log) -> None:
    """Every pipe's causes add up to the run; instructions and items are all counted."""
    ledger = build_ledger(log)
    totals = pipe_totals(log, ledger)
    for core in log.cores:
        count = Counter(item.pipe for item in core.items)
        assert list(totals[core.name]) == [pipe.name for pipe in PIPES_OF[core.kind]]
        for pipe in PIPES_OF[core.kind]:
            entry = totals[core.name][pipe.name]
            assert sum(entry["causes"].values()) == log.cycles, (core.name, pipe, entry)
            assert entry["busy"] + entry["wait"] + entry["idle"] == log.cycles
            assert entry["items"] == count[pipe]
            assert sum(entry["memory"].values()) == entry["causes"].get("memory", 0)


def check_path(run: Run) -> None:
    """The critical path tiles the run; nobody's slack is negative; what works on the path has none."""
    path = run.critical_path()
    position = 0
    for step in path.steps:
        assert step.start == position < step.end
        position = step.end
    assert position == run.cycles
    if run.origin is None:
        return  # cut short: what was under way has no end of its own
    spare = slack(run.ledger, run.chip)
    assert all(int(one.min(initial=0)) >= 0 for one in spare)
    for step in path.steps:
        if step.what in (WORK, MOVE, WAY, SET):
            assert spare[step.core][step.row] == 0, (step, run.log.cores[step.core].items[step.row])


def check_bounds(run: Run) -> None:
    """No bound is above what the simulation took."""
    if run.origin is None:
        return  # cut short: not all of the work was done
    exports.check_bounds(run.summary)
    assert longest_chain(run.ledger, run.chip) <= run.cycles


def check_order(log: Log) -> None:
    """Pipes are in order: items are issued, handled and retired one after the other, never before their issue."""
    for core in log.cores:
        last: dict[Pipe, tuple[int, int, int]] = {}
        for item in core.items:
            if item.start < 0 or item.pipe is Pipe.S:
                continue
            issue, start, end = last.get(item.pipe, (0, 0, 0))
            assert item.issue >= issue
            assert item.start >= max(item.issue, start), item
            if item.kind is Kind.INSTRUCTION and item.end >= 0:
                assert item.end >= max(end, item.start), item
                end = item.end
            last[item.pipe] = item.issue, item.start, end


@pytest.fixture(autouse=True)
def every_run_is_checked() -> Iterator[None]:
    """Look over each run that a test makes, failed ones included."""
    on_run.append(check_run)
    yield
    on_run.remove(check_run)


def variant(tmp_path: Path, text: str, base: str = "toy") -> Path:
    """Write a chip file that differs from a chip in what `text` (YAML) says."""
    path = tmp_path / "variant.yaml"
    sections = [line.partition(":")[0] for line in text.splitlines()]
    sources = "".join(f"  {name}: {{source: for this test, confidence: L}}\n" for name in sections)
    head = f"extends: {base}\nname: variant\nsoc: Variant\n"
    path.write_text(f"{head}{text}\nsources:\n{sources}", encoding="utf-8")
    return path
