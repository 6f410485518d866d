"""The studies of docs/tuning.md, made anew: what each found goes into studies.json, from which the document is made.

    python benchmarks/studies.py map tuned rounds sampled    # any of them
    python docs/generate.py

`map` takes some minutes, `tuned` and `rounds` one each, `sampled` an hour and more (`--only NAME` takes the shapes
whose name contains a word and keeps the others' rows).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ascend_sim as sim
from ops import Context, find_operator

sys.path.insert(0, str(Path(__file__).resolve().parent))

FILE = Path(__file__).resolve().with_suffix(".json")

SIZES = (1024, 2048, 3072, 4096, 6144, 7424, 8192, 10240, 12288, 14016)
SAMPLES = ("128", "2048,1024,37,1", "2048,2048,2048,2048")
CHIPS = ("ascend910b1", "ascend910b2", "ascend910b3", "ascend910b4")
LARGE = {"seq": ",".join(["2048"] * 16), "hidden": "1280"}
ROUNDS = {"2": (4, 8, 16, 32), "6": (8, 16, 32)}
"""Blocks a round that are tried, by the number of heads."""

Found = list[dict[str, Any]]


def rope_map(_: str) -> Found:
    """Return the time of `rope_grad` for each setting, sample and chip; None where it does not fit."""
    axes = {
        "MAX_PROCESS_NUM": list(SIZES),
        "BUFFER_NUM": [1, 2],
        "seq": list(SAMPLES),
        "chip": list(CHIPS),
    }
    with tempfile.TemporaryDirectory() as folder:
        frame = sim.sweep("rope_grad", axes, fixed={"hidden": "1280"}, out=Path(folder) / "map")
    return [
        {
            **{name: row[name] for name in axes},
            "time_us": round(row["time_us"], 1) if row["status"] == "ok" else None,
        }
        for row in frame.to_dict("records")
    ]


def tuned(_: str) -> Found:
    """Return the library's kernel and the rewritten ones on 16 samples of 2048, with their lower bounds."""
    context = Context(numerics="off", checks="off")
    found = []
    for variant in ("library", "tuned", "adjoint"):
        run = find_operator("rope_grad").run({"variant": variant, **LARGE}, context)
        bound = run.summary["bound"]
        found.append(
            {
                "variant": variant, "time_us": round(run.time_us, 1), "cycles": run.cycles,
                "bound_cycles": bound["lower_bound_cycles"], "limit": bound["limit"],
            }
        )  # fmt: skip
    return found


def rounds(_: str) -> Found:
    """Return the time of `laser_attention_grad` by blocks a core and round."""
    from rounds import measure  # noqa: PLC0415  beside this file

    return [
        {"heads": int(heads), **measure(blocks, {"heads": heads, "seq": "2048"}, "ascend910b1")}
        for heads, numbers in ROUNDS.items()
        for blocks in numbers
    ]


def sampled(only: str) -> Found:
    """Return how far sampled runs are from full ones; rows of shapes that are not asked for stay."""
    from sampled import CASES, compare  # noqa: PLC0415  beside this file

    known = {row["case"]: row for row in load().get("sampled", [])}
    for case in CASES:
        if only in case.name:
            known[case.name] = compare(case)
            print(case.name, file=sys.stderr)
            _save({"sampled": list(known.values())})
    return [known[case.name] for case in CASES if case.name in known]


STUDIES: dict[str, Callable[[str], Found]] = {
    "map": rope_map, "tuned": tuned, "rounds": rounds, "sampled": sampled,
}  # fmt: skip


def load() -> dict[str, Found]:
    """Return what the studies found."""
    found: dict[str, Found] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    return found


def _save(found: dict[str, Found]) -> None:
    lines = []
    for name, rows in sorted({**load(), **found}.items()):
        body = ",\n".join("  " + json.dumps(row) for row in rows)
        lines.append(f" {json.dumps(name)}: [\n{body}\n ]")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("studies", nargs="+", choices=sorted(STUDIES))
    parser.add_argument(
        "--only", metavar="NAME", default="", help="of `sampled`: shapes whose name contains this"
    )
    given = parser.parse_args(words)
    for name in given.studies:
        _save({name: STUDIES[name](given.only)})
    print(f"{FILE.name} is new; now: python docs/generate.py")


if __name__ == "__main__":
    main()
