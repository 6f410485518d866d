"""How far `--sampled` is from a full simulation, what it costs, and how the cost grows with the shape.

Each figure comes from a process of its own: its CPU seconds and its largest resident size. Shapes whose full simulation
takes too long have no error here, only a cost. Full runs tell the time only and drop their logs trip by trip, as
sampled ones do.

    python benchmarks/sampled.py [--json] [--only NAME] [--tiny]

All of it takes about half an hour of one core; --only takes the cases whose name contains a word.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from unittest.mock import patch

from ascend_sim.cli.operators import sample_operator
from ascend_sim.cli.request import Request
from ascend_sim.recorder import Recordings
from ascend_sim.tuning.task import replacing
from ops import Context, find_operator

TARGET_ERROR, TARGET_SECONDS, TARGET_MB = 0.01, 60, 1000


@dataclass(frozen=True)
class Case:
    """One shape of an operator. `full`: whether it is simulated in full, too."""

    name: str
    operator: str
    options: dict[str, str] = field(default_factory=dict)
    chip: str = "ascend910b1"
    full: bool = True


def _attention(name: str, *, full: bool = True, chip: str = "ascend910b1", **options: str) -> Case:
    given = {key.replace("_", "-"): value for key, value in options.items()}
    return Case(name, "laser_attention_grad", given, chip, full)


CASES = [
    _attention(
        "batch=2 heads=20 seq=4096 mask=none", batch="2", heads="20", seq="4096", mask="none"
    ),
    _attention("batch=1 heads=32 seq=4096 mask=none", heads="32", seq="4096", mask="none"),
    _attention("batch=1 heads=64 seq=4096 mask=none", heads="64", seq="4096", mask="none"),
    _attention(
        "batch=2 heads=64 seq=2048 mask=none", batch="2", heads="64", seq="2048", mask="none"
    ),
    _attention("batch=1 heads=16 seq=6144 mask=none", heads="16", seq="6144", mask="none"),
    _attention(
        "batch=1 heads=18 seq=6144 mask=none kv-heads=3",
        heads="18",
        seq="6144",
        mask="none",
        kv_heads="3",
    ),
    _attention("batch=1 heads=8 seq=8192 mask=none", heads="8", seq="8192", mask="none"),
    _attention("batch=1 heads=12 seq=8192 mask=none", heads="12", seq="8192", mask="none"),
    _attention(
        "batch=1 heads=12 seq=4096 mask=none kv-seq=8192",
        heads="12",
        seq="4096",
        mask="none",
        kv_seq="8192",
    ),
    _attention(
        "batch=1 heads=8 seq=8192 mask=none kv-heads=1",
        heads="8",
        seq="8192",
        mask="none",
        kv_heads="1",
    ),
    _attention(
        "batch=1 heads=40 seq=4096 head-dim=192 mask=none",
        heads="40",
        seq="4096",
        head_dim="192",
        mask="none",
    ),
    _attention(
        "batch=2 heads=40 seq=4096 mask=none", batch="2", heads="40", seq="4096", mask="none"
    ),
    _attention(
        "batch=2 heads=32 seq=4096 mask=none kv-heads=16",
        batch="2",
        heads="32",
        seq="4096",
        mask="none",
        kv_heads="16",
    ),
    _attention(
        "batch=2 heads=32 seq=4096 mask=none", batch="2", heads="32", seq="4096", mask="none"
    ),
    _attention("triangle", heads="24", seq="4096"),
    _attention("triangle, 20 cores", heads="20", seq="4096", chip="ascend910b4"),
    _attention("window of 256", heads="40", seq="16384", pre_tokens="256"),
    _attention("head dim 192", heads="24", seq="4096", head_dim="192"),
    _attention("SBH", batch="2", heads="12", seq="4096", layout="SBH"),
    Case("rope_grad, 32 of 2048", "rope_grad", {"seq": ",".join(["2048"] * 32), "hidden": "1280"}),
    _attention("S = 4096", heads="40", seq="4096", full=False),
    _attention("S = 8192", heads="40", seq="8192", full=False),
    _attention("S = 16384", heads="40", seq="16384", full=False),
    _attention("largest: S = 32768", heads="40", seq="32768", mask="none", full=False),
]
TINY = [
    Case("tiny", "laser_attention_grad", {"heads": "1", "seq": "256"}),
    Case("tiny rope", "rope_grad", {"seq": "64", "hidden": "128"}, full=False),
]


def sampled(case: Case) -> dict[str, Any]:
    """Return the estimate of a case."""
    options = {f"--{name}": value for name, value in case.options.items()}
    found, _ = sample_operator(Request(case.operator, chip=case.chip, operator_options=options))
    return {
        "cycles": found.cycles,
        "bound": found.error_share,
        "simulated": sum(part.number for part in found.parts),
        "of": sum(part.total for part in found.parts),
    }


def whole(case: Case) -> dict[str, Any]:
    """Return the cycles of a case, all of it simulated."""
    if case.operator == "rope_grad":  # its samples are smaller sizes
        context = Context(chip=case.chip, numerics="off", checks="off")
        with replacing(Recordings().launch):
            return {"cycles": find_operator(case.operator).run(case.options, context).cycles}
    with every_trip():
        return {"cycles": sampled(case)["cycles"]}


@contextmanager
def every_trip() -> Iterator[None]:
    """Let sampled runs make all trips of their loops."""
    trips = import_module("ascend_sim.trips")  # the package's own name for it is a function

    def made(sampler: Any, program: Any, count: int, features: Any) -> Iterable[int]:
        if not count or program in sampler._inside:
            return range(count)
        found: Iterable[int] = sampler._walk(program, count, features, "every trip")
        return found

    with (
        patch.object(trips, "chosen", lambda count, scale=1: list(range(count))),
        patch.object(trips.Sampler, "trips", made),
    ):
        yield


def measure(case: Case, how: str) -> dict[str, Any]:
    """Return what a process of its own finds, with its CPU seconds and peak size."""
    command = [sys.executable, __file__, "--one", case.name, how]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def _one(case: Case, how: str) -> dict[str, Any]:
    began = time.process_time()
    found = sampled(case) if how == "sampled" else whole(case)
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    return {**found, "seconds": time.process_time() - began, "peak_mb": peak}


def compare(case: Case) -> dict[str, Any]:
    """Return a row of the table."""
    estimate = measure(case, "sampled")
    row = {"case": case.name, "operator": case.operator, "options": case.options, **estimate}
    good = estimate["seconds"] < TARGET_SECONDS and estimate["peak_mb"] < TARGET_MB
    if case.full:
        full = measure(case, "whole")
        error = estimate["cycles"] / full["cycles"] - 1
        row |= {"full_cycles": full["cycles"], "full_seconds": full["seconds"], "error": error}
        good = good and abs(error) <= TARGET_ERROR
    return {**row, "good": good}


HEAD = "| case | simulated | estimate, cycles | bound | in full | error | CPU s | in full | MB |"


def line(row: dict[str, Any]) -> str:
    """Return a row for people, in Markdown."""
    share = f"{row['simulated'] / row['of']:.1%}" if row["of"] else "all"
    full, error, seconds = "–", "–", "–"
    if "error" in row:
        full, error = f"{row['full_cycles']:,}", f"{row['error']:+.2%}"
        seconds = f"{row['full_seconds']:.0f}"
    missed = "" if row["good"] else " missed"
    return (
        f"| {row['case']} | {share} | {row['cycles']:,} | {row['bound']:.2%} | {full} | {error} | "
        f"{row['seconds']:.0f} | {seconds} | {row['peak_mb']:.0f} |{missed}"
    )


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--only", metavar="NAME", help="cases whose name contains this")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the program")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "HOW"), help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.one:
        name, how = options.one
        case = next(case for case in (*CASES, *TINY) if case.name == name)
        print(json.dumps(_one(case, how)))
        return
    cases = [c for c in (TINY if options.tiny else CASES) if (options.only or "") in c.name]
    if not cases:
        parser.error(f"no case's name contains {options.only!r}")
    if not options.json:
        print(HEAD, "|---|---:|---:|---:|---:|---:|---:|---:|---:|", sep="\n")
    rows = []
    for case in cases:
        rows.append(compare(case))
        if not options.json:
            print(line(rows[-1]), flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
