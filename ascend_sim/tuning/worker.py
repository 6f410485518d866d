"""A worker of a sweep: a process that reads jobs as lines of JSON and writes a row for each.

Run as `python -m ascend_sim.tuning.worker`. What the points themselves print goes nowhere: standard output carries
the rows and nothing else.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Work until standard input ends."""
    rows = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    from ascend_sim.tuning.task import (  # noqa: PLC0415  after standard output is safe
        Task,
        evaluate,
        new_recordings,
    )

    recordings = new_recordings()
    for line in sys.stdin:
        job = json.loads(line)
        row = evaluate(Task.of(job["task"]), job["point"], recordings, job["front"])
        rows.write(json.dumps(row) + "\n")
        rows.flush()


if __name__ == "__main__":
    main()
