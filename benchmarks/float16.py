"""What the simulator's float16 arithmetic costs beside numpy's own, and that both agree bit for bit.

Five instructions on one buffer of rope_grad (12,288 elements). Both sides run in turns; a figure is the median
over the rounds.

    python benchmarks/float16.py [--json] [--rounds N] [--tiny]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ascend_sim  # noqa: F401  fills the registry
from isa.instruction import REGISTRY

ELEMENTS = 12288
PAIRS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
}


def operands(count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return two arrays of random bit patterns: every class of float16 is among them, NaN too."""
    bits = np.random.default_rng(0).integers(0, 1 << 16, size=(2, count), dtype=np.uint16)
    return bits[0].view(np.float16), bits[1].view(np.float16)


def same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Return whether two results agree in every bit; any NaN equals any other."""
    nan = np.isnan(a) & np.isnan(b)
    return a.dtype == b.dtype and bool(np.all(nan | (a.view(np.uint16) == b.view(np.uint16))))


def seconds_of(work: Callable[..., Any], a: Any, b: Any, calls: int) -> float:
    """Return the seconds of one call."""
    start = time.process_time()
    for _ in range(calls):
        work(a, b)
    return (time.process_time() - start) / calls


def compare(rounds: int, calls: int) -> list[dict[str, Any]]:
    """Return one row an instruction."""
    agree_on = operands(1 << 20)
    generator = np.random.default_rng(1)
    a, b = generator.normal(size=(2, ELEMENTS)).astype(np.float16)
    rows = []
    for name, theirs in PAIRS.items():
        ours = REGISTRY[name].meaning
        pairs = [
            (seconds_of(ours, a, b, calls), seconds_of(theirs, a, b, calls)) for _ in range(rounds)
        ]
        rows.append(
            {
                "instruction": name,
                "us": 1e6 * statistics.median(pair[0] for pair in pairs),
                "numpy_us": 1e6 * statistics.median(pair[1] for pair in pairs),
                "ratio": statistics.median(pair[0] / pair[1] for pair in pairs),
                "bit_identical": same(ours(*agree_on), theirs(*agree_on)),
            }
        )
    return rows


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--rounds", type=int, default=21, help="measurements of each figure")
    parser.add_argument("--tiny", action="store_true", help="few calls, to try the program")
    options = parser.parse_args(words)
    with np.errstate(all="ignore"):
        rows = compare(options.rounds, 2 if options.tiny else 50)
    if options.json:
        print(json.dumps({"elements": ELEMENTS, "rounds": options.rounds, "rows": rows}, indent=2))
        return
    print(f"float16, {ELEMENTS:,} elements; medians of {options.rounds} rounds")
    print("instruction   us/call  numpy us  ratio  bit-identical")
    for row in rows:
        print(
            f"{row['instruction']:<12} {row['us']:>8.1f} {row['numpy_us']:>9.1f} {row['ratio']:>6.2f}"
            f"  {'yes' if row['bit_identical'] else 'NO'}"
        )


if __name__ == "__main__":
    main()
