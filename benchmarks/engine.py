"""How fast the simulator is: instructions a second, and what one item costs in raw SimPy events.

Host seconds mean little on another machine, so the cost of an item (an instruction, flag, wait or barrier) is
also given as a multiple of one raw SimPy event: a single process that yields timeouts. Both are measured in
turns in one process; figures are medians over the rounds. A run is timed from the launch to its end, so without
making its data and without writing files.

    python benchmarks/engine.py [--json] [--rounds N] [--only NAME] [--tiny]
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import runpy
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import simpy

import ascend_sim as sim
from ascend_sim.compiled import is_compiled
from ops.rope_grad.inputs import rope_tables
from ops.rope_grad.kernel import rope_grad
from ops.rope_grad.tiling import RECORD_BYTES, tile

ROOT = Path(__file__).resolve().parent.parent

MODES: dict[str, dict[str, str]] = {
    "timing only": {"numerics": "off", "checks": "off"},
    "all checks": {"numerics": "off", "checks": "collect"},
    "checks, numbers": {"numerics": "on", "checks": "collect"},
}
REPLAY = "replay"
"""A mode of its own: what a timing-only launch issued, recorded before, replayed for its cycles."""
CHECKS_RATIO = 2.0
"""How many times the seconds without checks a launch takes with all of them, at most."""
TARGETS = {"timing only": 5, "all checks": 10, REPLAY: 2.5}
"""Raw events an item may cost at most."""


@dataclass
class Workload:
    """A launch to repeat: `launches` times in one measurement, so that short ones are not all noise."""

    name: str
    launch: Callable[..., Any]
    launches: int = 1


def rope(name: str, lengths: Sequence[int], hidden: int, launches: int = 1) -> Workload:
    """Return the device kernel of rope_grad at some size, with the operator's own tiling."""
    rows = sum(lengths)
    some = np.random.default_rng(0).normal(size=1 << 16).astype(np.float16)
    gradients = [np.resize(some, (rows, hidden)), np.resize(some[::-1], (rows, hidden))]
    tables = rope_tables(max(lengths), 128)
    outputs = [np.zeros((rows, hidden), np.float16) for _ in range(2)]
    shapes = [array.shape for array in (*gradients, *tables)]
    tiling = tile(shapes, lengths, 12288, 48)
    record = np.frombuffer(tiling.record, np.uint8).copy()
    arguments = (
        *gradients,
        *tables,
        *outputs,
        record[:RECORD_BYTES].view(np.int64),
        record[RECORD_BYTES:].view(np.int32),
        12288,
        1,
    )
    return Workload(
        name,
        lambda **mode: sim.launch(rope_grad, *arguments, cores=tiling.block_dim, **mode),
        launches,
    )


def vector_add(launches: int = 5) -> Workload:
    """Return the kernel of examples/01 at the example's size, two buffers a queue."""
    example = runpy.run_path(str(ROOT / "examples" / "01_vector_add.py"))
    blocks, tiles, size = example["BLOCKS"], example["TILES"], example["TILE"]
    generator = np.random.default_rng(1)
    x, y = generator.normal(size=(2, blocks * tiles * size)).astype(np.float16)
    arguments = (example["vector_add"], x, y, np.zeros_like(x), tiles, size, 2)
    return Workload(
        "examples/01", lambda **mode: sim.launch(*arguments, cores=blocks, **mode), launches
    )


def workloads(*, tiny: bool) -> list[Workload]:
    """Return what is measured; `tiny` for a trial run."""
    if tiny:
        return [rope("rope_grad tiny", [200], 256), vector_add(1)]
    return [
        rope("rope_grad default", [2048, 1024, 37, 1], 1280, 3),
        rope("rope_grad 16 x 2048", [2048] * 16, 1280),
        vector_add(),
    ]


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the time of a call and its result, with the garbage collector at rest."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    result = work()
    took = time.process_time() - start
    gc.enable()
    return took, result


def raw_event(count: int) -> float:
    """Return the seconds of one SimPy event, of a process that yields timeouts."""
    environment = simpy.Environment()

    def process() -> Any:
        for _ in range(count):
            yield environment.timeout(1)

    environment.process(process())
    return seconds_of(environment.run)[0] / count


def measure(work: Workload, mode: str, event: float) -> dict[str, float]:
    """Return one measurement: seconds a launch, counts, cost of an item in raw events."""
    launch = functools.partial(work.launch, **MODES[mode]) if mode != REPLAY else _replay(work)
    took, run = seconds_of(lambda: [launch() for _ in range(work.launches)][-1])
    took /= work.launches
    pipes = [pipe for core in run.pipes.values() for pipe in core.values()]
    items = sum(pipe["items"] for pipe in pipes)
    return {
        "seconds": took,
        "items": items,
        "instructions": sum(pipe["instructions"] for pipe in pipes),
        "events_per_item": took / items / event,
    }


def _replay(work: Workload) -> Callable[[], Any]:
    """Return a replay of what a workload issues; the first one has been made, so that what it keeps is there."""
    recording = work.launch(**MODES["timing only"]).recording()
    recording.replay()
    return recording.replay


def compare(works: list[Workload], rounds: int, events: int) -> dict[str, Any]:
    """Measure all workloads in all modes in turns, each beside the raw event, and return the medians."""
    samples: dict[tuple[str, str], list[dict[str, float]]] = {}
    raw = []
    for _ in range(rounds):
        for work in works:
            for mode in (*MODES, REPLAY):
                raw.append(raw_event(events))
                samples.setdefault((work.name, mode), []).append(measure(work, mode, raw[-1]))
    rows = [_row(name, mode, found) for (name, mode), found in samples.items()]
    ratios = {work.name: _ratio(samples, work.name) for work in works}
    return {
        "raw_event_us": 1e6 * statistics.median(raw),
        "rounds": rounds,
        "rows": rows,
        "checks_ratio": ratios,
    }


def _ratio(samples: dict[tuple[str, str], list[dict[str, float]]], name: str) -> float:
    """Return what a launch with all checks takes, in times of one without, both measured in the same rounds."""
    pairs = zip(samples[name, "all checks"], samples[name, "timing only"], strict=True)
    return statistics.median(
        checked["events_per_item"] / plain["events_per_item"] for checked, plain in pairs
    )


def _row(name: str, mode: str, found: list[dict[str, float]]) -> dict[str, Any]:
    seconds = statistics.median(one["seconds"] for one in found)
    items, instructions = int(found[0]["items"]), int(found[0]["instructions"])
    target = TARGETS.get(mode)
    events = statistics.median(one["events_per_item"] for one in found)
    return {
        "workload": name,
        "mode": mode,
        "items": items,
        "instructions": instructions,
        "seconds": seconds,
        "instructions_per_second": instructions / seconds,
        "us_per_item": 1e6 * seconds / items,
        "events_per_item": events,
        "target": target,
        "good": target is None or events <= target,
    }


def print_table(result: dict[str, Any]) -> None:
    """Print the medians as a table."""
    print(
        f"one raw SimPy event: {result['raw_event_us']:.2f} us; medians of {result['rounds']} rounds; "
        f"{'compiled' if is_compiled() else 'from source'}"
    )
    head = ("workload", "mode", "items", "instr/s", "us/item", "events/item", "target")
    print("{:<20} {:<15} {:>8} {:>9} {:>8} {:>11} {:>7}".format(*head))
    for row in result["rows"]:
        target = "-" if row["target"] is None else f"{row['target']}"
        print(
            f"{row['workload']:<20} {row['mode']:<15} {row['items']:>8,} "
            f"{row['instructions_per_second']:>9,.0f} {row['us_per_item']:>8.1f} "
            f"{row['events_per_item']:>11.1f} {target:>7}" + ("" if row["good"] else "  missed")
        )
    ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in result["checks_ratio"].items())
    print(f"with all checks, in times of a launch without: {ratios} (at most {CHECKS_RATIO})")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each figure")
    parser.add_argument("--only", metavar="NAME", help="workloads whose name contains this")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the program")
    options = parser.parse_args(words)
    works = [work for work in workloads(tiny=options.tiny) if (options.only or "") in work.name]
    if not works:
        parser.error(f"no workload's name contains {options.only!r}")
    result = compare(works, options.rounds, 2_000 if options.tiny else 200_000)
    print(json.dumps(result, indent=2)) if options.json else print_table(result)


if __name__ == "__main__":
    main()
