"""Run every record of a case file on its kernel and score it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from ascend_sim.accuracy import families
from ascend_sim.accuracy.cases import CaseFile, Record
from ascend_sim.accuracy.measure import TIMES
from ascend_sim.accuracy.score import pair_row, record_row, summary
from ascend_sim.config import load_chip

Progress = Callable[[int, int, str], None]


def run_cases(
    cases: CaseFile,
    *,
    family: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Simulate all records (of one family, where named) and return records, pairs, summary and chip revisions.

    `cpu_s` is the time that all records took together, on however many cores.

    A record that cannot be simulated has `error` with the reason instead of figures; nothing is left out.
    Records run in `workers` processes, as many as the machine has cores where None.
    """
    if family is not None:
        families.load_family(family)
    chosen = [one for one in cases.records if family is None or one.family == family]
    simulated = _simulate_all(chosen, workers or os.cpu_count() or 1, progress)
    rows: list[dict[str, Any]] = []
    cpu_s = 0.0
    for record in chosen:
        figures = simulated[record.id]
        cpu_s += figures.pop("cpu_s")
        row: dict[str, Any] = record_row(record, figures)
        if "error" in figures:
            row |= {"simulated": dict.fromkeys(TIMES), "error": figures["error"]}
        rows.append(row)
    good = {key: figures for key, figures in simulated.items() if "error" not in figures}
    gains = (pair_row(cases, pair, good) for pair in cases.pairs)
    pairs = [gain for gain in gains if gain is not None]
    names = sorted({record.config for record in chosen})
    return {
        "schema_version": 1,
        "chips": {name: load_chip(name).revision for name in names},
        "cpu_s": cpu_s,
        "records": rows,
        "pairs": pairs,
        "summary": summary(rows, pairs),
    }


def _simulate_all(
    records: list[Record], workers: int, progress: Progress | None
) -> dict[str, dict[str, Any]]:
    done: dict[str, dict[str, Any]] = {}
    if workers == 1 or len(records) < 2:
        for record in records:
            done[record.id] = _simulate(record)
            _tell(progress, len(done), len(records), record.id)
        return done
    with ProcessPoolExecutor(min(workers, len(records))) as pool:
        tasks = {pool.submit(_simulate, record): record for record in records}
        for task in as_completed(tasks):
            record = tasks[task]
            done[record.id] = task.result()
            _tell(progress, len(done), len(records), record.id)
    return done


def _tell(progress: Progress | None, done: int, total: int, name: str) -> None:
    if progress is not None:
        progress(done, total, name)


def _simulate(record: Record) -> dict[str, Any]:
    """Return a record's simulated figures, or why there are none, and the CPU seconds that it took."""
    begin = time.process_time()
    try:
        figures = families.simulate(record)
    except Exception as error:  # a kernel that fails is a row of the table, not the end of it
        text = str(error).splitlines()[0] if str(error) else ""
        figures = {"error": f"{type(error).__name__}: {text}"}
    return figures | {"cpu_s": time.process_time() - begin}
