"""The summary on a terminal: one golden text, and what must not get lost at any width."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from synthetic import add_log, item

from ascend_sim.config import load_chip
from ascend_sim.errors import Finding
from ascend_sim.report.summary import build_summary
from ascend_sim.report.text import print_findings, print_summary
from ascend_sim.trace import CoreLog, Kind, Log
from isa.types import CoreKind, Pipe

TOY = load_chip("toy")
RACE = Finding(
    "RACE", "race", "add reads UB[0:24576] while data_copy may still write it", "kernel.py", 8,
    "core0.aiv0", "V",
)  # fmt: skip
INFO = Finding("INFO", "not-the-adjoint", "the operator is not the adjoint of RoPE")
NUMERICS = {
    "reference": "library", "max_abs_error": 0.0, "max_rel_error": 0.0, "mismatches": 0,
    "bit_exact": True, "adjoint": {"max_abs_error": 2.5, "max_rel_error": 12.0, "mismatches": 1234},
}  # fmt: skip
GOLDEN = """\
rope_grad on toy, 1 block, L2 cold
  time     0.420 us (420 cycles, 110 of them launch)
  bound    not below 0.410 us with this work in any order, set by core0.aiv0.S:
           the run takes 1.02 times that
           not below 0.414 us as written, by its dependences: 1.01 times that
  GM       8 KiB read, 4 KiB written, 29.3 GB/s over the whole run
  overlap  several pipes occupied 0 % of the cores' time, one alone 88 %, none
           12 %
  numbers  library: bit-exact
           adjoint: 1,234 elements differ, by up to 2.5 (relative 12)

Pipes of core0.aiv0
  Pipe  Where its time went             Busy  Waits mostly for
  S     █████████████████████qllllllll  71 %  queue_full 2 %
  V     ██fffffffffffffssllllllll·····   7 %  flag 41 %, scalar 8 %
  MTE2  ████mmmmmmmmmsllllllll········  14 %  memory 29 %, scalar 5 %
  MTE3  ████bbbbbbbbbbbbbbbssllllllll·  14 %  buffer 48 %, scalar 10 %

  █ busy   m memory   f flag   b free buffer   q queue full
  s scalar: nothing issued   l launch   · idle

1 finding and 1 remark
  RACE race  kernel.py:8, core0.aiv0.V
    add reads UB[0:24576] while data_copy may still write it
  INFO not-the-adjoint
    the operator is not the adjoint of RoPE

-> MTE3 waits 65 % of the kernel's time for a free buffer. One more buffer in
   each queue (BUFFER_NUM 2, with tiles that still fit) lets copy in, compute
   and copy out of different tiles overlap; MTE2 alone needs 19 % of it, so
   overlap can win at most 81 %.

Files: runs/rope_grad-1: report.html (a browser), trace.json (MindStudio
       Insight), trace.perfetto.json (ui.perfetto.dev), tables
"""


def printed(summary: dict[str, Any], width: int = 80, folder: Path | None = None) -> str:
    stream = io.StringIO()
    print_summary(summary, Console(file=stream, width=width), folder)
    return "".join(line.rstrip() + "\n" for line in stream.getvalue().splitlines())


def summary_of(log: Log, *findings: Finding, **extra: Any) -> dict[str, Any]:
    return build_summary(
        log, TOY, findings, extra.pop("numerics", None), {"op": "rope_grad", **extra}
    )


def test_the_summary_reads_well_at_80_columns_without_colour() -> None:
    summary = summary_of(add_log(), INFO, RACE, numerics=NUMERICS)
    assert printed(summary, folder=Path.cwd() / "runs" / "rope_grad-1") == GOLDEN


def test_a_saved_summary_prints_as_the_live_one() -> None:
    summary = summary_of(add_log(), RACE, numerics=NUMERICS)
    assert printed(json.loads(json.dumps(summary))) == printed(summary)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = printed(summary_of(add_log(), RACE, INFO, numerics=NUMERICS), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert ("Instructions" in text) == (width >= 100)


def many_cores(*ends: int) -> Log:
    log = Log("toy", 1000.0, cycles=max(ends))
    for number, end in enumerate(ends):
        core = CoreLog(f"core{number // 2}.aiv{number % 2}", CoreKind.AIV, start=0, end=end)
        core.blocks = [(number, 0, end)]
        item(core, Pipe.V, Kind.INSTRUCTION, 0, end)
        log.cores.append(core)
    return log


def test_many_cores_are_shown_as_their_mean_and_the_slowest() -> None:
    text = printed(summary_of(many_cores(100, 100, 200, 100)))
    assert "Pipes of aiv, mean of 4 cores" in text
    assert "Pipes of core1.aiv0, the slowest" in text
    mean = next(line for line in text.splitlines() if line.startswith("  V "))
    assert " 62 %  tail 38 %" in mean


def test_the_slowest_core_is_left_out_where_all_end_together() -> None:
    text = printed(summary_of(many_cores(200, 200, 199, 200)))
    assert "mean of 4 cores" in text
    assert "the slowest" not in text


def test_phases_have_a_table() -> None:
    log = add_log()
    log.phases = ["", "main"]
    for entry in log.cores[0].items:
        entry.step.phase = 1
    # Issued from cycle 0 on: the synthetic items do not say when, but for two.
    lines = printed(summary_of(log)).splitlines()
    row = lines[next(i for i, line in enumerate(lines) if line.startswith("  Phase")) + 1]
    assert row.split() == ["main", "0.400", "us", "400", "3", "8", "KiB", "4", "KiB"]


@pytest.mark.parametrize(
    ("numerics", "line"),
    [
        (None, "numbers  not compared"),
        ({"mismatches": 1, "max_abs_error": 0.5, "max_rel_error": None, "reference": "numpy"},
         "numbers  numpy: 1 element differs, by up to 0.5 (relative no finite number)"),
        ({"mismatches": 0, "max_abs_error": 1e-4, "max_rel_error": 2e-3},
         "numbers  reference: equal within tolerance, off by up to 0.0001 (relative 0.002)"),
    ],
)  # fmt: skip
def test_numerics_in_words(numerics: dict[str, Any] | None, line: str) -> None:
    assert line in printed(summary_of(add_log(), numerics=numerics), width=120)


def test_elements_that_nothing_wrote_are_mentioned() -> None:
    numerics = {**NUMERICS, "not_written": 4096}
    assert "4,096 elements were never written" in printed(summary_of(add_log(), numerics=numerics))


def test_markup_in_messages_is_text_and_failures_come_first() -> None:
    stream = io.StringIO()
    odd = {"kind": "INFO", "code": "odd", "message": "x[bold] and [/red]", "file": "", "line": 0,
           "core": "", "pipe": ""}  # fmt: skip
    print_findings([odd, {**odd, "kind": "BOUNDS"}], Console(file=stream, width=80))
    text = stream.getvalue()
    assert text.count("x[bold] and [/red]") == 2
    assert text.index("BOUNDS") < text.index("INFO")


def test_long_lists_of_findings_end_with_a_count() -> None:
    stream = io.StringIO()
    entry = {"kind": "RACE", "code": "race", "message": "m", "file": "a.py", "line": 1, "core": "",
             "pipe": ""}  # fmt: skip
    print_findings([entry] * 14, Console(file=stream, width=80))
    assert "14 findings" in stream.getvalue()
    assert "and 4 more: see findings.json" in stream.getvalue()
    assert stream.getvalue().count("a.py:1") == 10


def test_bars_are_plain_letters_where_the_terminal_knows_no_others() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    print_summary(summary_of(add_log()), Console(file=stream, width=80))
    stream.flush()
    stream.seek(0)
    assert "##fffffffffffffssllllllll....." in stream.read()
