"""How long laser_attention_grad takes with other numbers of blocks a core and round; the library always has 16.

A block is 128 x 128 scores: two tiles of that size fill L0A or L0B, two results L0C. So only the round is free to vary.

    python benchmarks/rounds.py [--json] [--heads N] [--seq S] [--blocks 4,8,16,32] [--chip NAME] [--tiny]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from ops import Context, find_operator

USERS = ("plan", "tiling", "arguments")
"""Modules that know the library's constant."""


def measure(blocks: int, options: dict[str, str], chip: str) -> dict[str, Any]:
    """Return cycles and microseconds of a run whose cores take `blocks` blocks a round."""
    patches = [patch(f"ops.laser_attention_grad.{user}.SLOTS", blocks) for user in USERS]
    for one in patches:
        one.start()
    try:
        context = Context(chip=chip, numerics="off", checks="off")
        run = find_operator("laser_attention_grad").run(options, context)
    finally:
        for one in patches:
            one.stop()
    return {"blocks": blocks, "cycles": run.cycles, "time_us": run.time_us}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--heads", default="2", help="query heads")
    parser.add_argument("--seq", default="2048", help="queries")
    parser.add_argument("--blocks", default="4,8,16,32", help="blocks a core and round, even")
    parser.add_argument("--chip", default="ascend910b1")
    parser.add_argument("--tiny", action="store_true", help="a small size, to try the program")
    given = parser.parse_args(words)
    options = {"heads": given.heads, "seq": given.seq}
    blocks = given.blocks
    if given.tiny:
        options, blocks = {"heads": "1", "seq": "256"}, "2,16"
    rows = [measure(int(number), options, given.chip) for number in blocks.split(",")]
    if given.json:
        print(json.dumps({"options": options, "chip": given.chip, "rows": rows}))
        return
    print(", ".join(f"{name} {value}" for name, value in options.items()), "on", given.chip)
    for row in rows:
        print(
            f"{row['blocks']:>3} blocks a round: {row['time_us']:8.2f} us, {row['cycles']:,} cycles"
        )


if __name__ == "__main__":
    main()
