"""The run folder: everything that a run leaves on disk, written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol, TextIO

from ascend_sim.config import Chip
from ascend_sim.errors import ConfigError, Finding
from ascend_sim.report.chrome import write_chrome_trace
from ascend_sim.report.critical_path import CriticalPath, write_critical_path
from ascend_sim.report.html import has_bokeh, write_html
from ascend_sim.report.ledger import Ledger
from ascend_sim.report.perfetto import write_perfetto_trace
from ascend_sim.report.slack import slack
from ascend_sim.report.store import write_events
from ascend_sim.report.summary import finding_entry
from ascend_sim.report.tables import write_instructions, write_pipes, write_stalls
from ascend_sim.report.vendor import write_vendor_files
from ascend_sim.trace import Log

FILES = (
    "summary.json", "trace.json", "trace.perfetto.json", "instructions.csv", "pipes.csv", "stalls.csv",
    "findings.json", "critical_path.csv", "events.npz", "recording.bin",
    "report.html",
)  # fmt: skip
LATER = ("what_if.json", "simulator", "PipeUtilization.csv")
"""What other commands put into a run's folder."""
_RUNS = "runs"


class Reportable(Protocol):
    """What a run folder is made of; a finished run is one, and so is a run that was cut short."""

    @property
    def log(self) -> Log:
        """All that happened."""
        ...

    @property
    def chip(self) -> Chip:
        """Where it happened."""
        ...

    @property
    def findings(self) -> Sequence[Finding]:
        """What there is to tell the user."""
        ...

    @property
    def ledger(self) -> Ledger:
        """Where every cycle of every pipe went."""
        ...

    @property
    def sources(self) -> Mapping[str, str]:
        """The text of the kernel's files."""
        ...

    def critical_path(self) -> CriticalPath:
        """The chain that makes the run as long as it is."""
        ...

    @property
    def about(self) -> Mapping[str, Any]:
        """What else there is to know of the run, as plain JSON: kept beside its log."""
        ...

    def attach(self, folder: Path) -> None:
        """Write what is not a report into the folder."""
        ...

    @property
    def summary(self) -> Mapping[str, Any]:
        """What `build_summary` returned for it."""
        ...


def write_run_folder(run: Reportable, out: str | os.PathLike[str] | None = None) -> Path:
    """Write the run and return its folder.

    `out` is a new or empty directory, or a run folder, which is replaced; without it the folder is the
    first free `runs/<op>-<n>` below the current directory. Everything is written to a directory beside
    it, which is then renamed: a failure leaves nothing half-written and an old run as it was. Raises
    `ConfigError` where `out` holds anything that is no run, or cannot be written.
    """
    target = Path(out) if out is not None else None
    if target is not None:
        check_replaceable(target)
    parent = target.absolute().parent if target is not None else Path.cwd() / _RUNS
    try:
        parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".run-", dir=parent))
        folder = scratch / "new"
        folder.mkdir()  # unlike the directory around it, with the modes that the user's umask gives
    except OSError as error:
        raise ConfigError(f"cannot write a run folder in {parent}: {error.strerror}") from error
    try:
        _fill(folder, run)
        if target is None:
            return _claim(folder, parent, str(run.summary["op"]))
        _replace(folder, target)
    except OSError as error:
        raise ConfigError(f"cannot write the run folder: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def check_replaceable(target: Path) -> None:
    """Raise `ConfigError` unless `target` does not exist, is an empty directory or is a run folder."""
    if not target.exists() and not target.is_symlink():
        return
    if not target.is_dir() or target.is_symlink():
        raise ConfigError(f"--out {target} is no directory; name a new one or an old run's folder")
    names = {entry.name for entry in target.iterdir()}
    if not names:
        return
    if not _is_summary(target / "summary.json"):
        raise ConfigError(
            f"--out {target} exists and is no run folder (it has no summary.json of a run): nothing was "
            "overwritten; name a new directory or an old run's folder"
        )
    foreign = sorted(name for name in names if name not in (*FILES, *LATER))
    if foreign:
        raise ConfigError(
            f"--out {target} is a run folder that also holds {', '.join(foreign[:3])}: it is not replaced, "
            "so that these are not lost; move them, or name a new directory"
        )


def _is_summary(path: Path) -> bool:
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(summary, dict) and "schema_version" in summary


def _fill(folder: Path, run: Reportable) -> None:
    log, chip, ledger = run.log, run.chip, run.ledger
    keys = [field.name for field in fields(Finding)]
    entries = [finding_entry(finding, keys) for finding in run.findings]
    _write(folder / "summary.json", lambda stream: write_json(run.summary, stream))
    _write(folder / "findings.json", lambda stream: write_json(entries, stream))
    _write(folder / "trace.json", lambda stream: write_chrome_trace(log, chip, stream, ledger))
    _write(
        folder / "trace.perfetto.json",
        lambda stream: write_perfetto_trace(log, chip, stream, ledger),
    )
    _write(folder / "pipes.csv", lambda stream: write_pipes(log, chip, stream, ledger))
    _write(folder / "stalls.csv", lambda stream: write_stalls(log, chip, stream, ledger))
    path, spare = run.critical_path(), slack(ledger, chip)
    _write(
        folder / "critical_path.csv",
        lambda stream: write_critical_path(path, lambda core, row: int(spare[core][row]), stream),
    )
    _write(folder / "instructions.csv", lambda stream: write_instructions(log, chip, stream, spare))

    with (folder / "events.npz").open("wb") as stream:
        write_events(ledger, {**run.about, "findings": entries}, stream)
    run.attach(folder)
    if has_bokeh():
        write_report_page(run, folder)


def write_vendor(run: Reportable, folder: Path) -> None:
    """Write the vendor's other files: `simulator/` with a folder a core, `PipeUtilization.csv`."""
    shutil.rmtree(folder / "simulator", ignore_errors=True)
    write_vendor_files(run.ledger, run.chip, run.summary, run.sources, folder)
    for path in (folder / "PipeUtilization.csv", *(folder / "simulator").rglob("*")):
        if path.is_file():
            _close(path)


def write_report_page(run: Reportable, folder: Path) -> None:
    """Write report.html, with the table of `what-if` where the folder has one. Raises `ConfigError` without bokeh."""
    saved = folder / "what_if.json"
    found = json.loads(saved.read_text(encoding="utf-8")) if saved.is_file() else None
    _write(folder / "report.html", lambda stream: write_html(run, stream, found))


def read_finding(entry: Mapping[str, Any]) -> Finding:
    """Return the finding that was written as `entry`."""
    finding = Finding(**entry)
    if entry["bytes"] is not None:
        low, high = entry["bytes"]
        finding.bytes = low, high
    return finding


def write_json(value: Any, stream: TextIO) -> None:
    """Write indented JSON with a newline at its end."""
    json.dump(value, stream, indent=1, ensure_ascii=False, allow_nan=False)
    stream.write("\n")


def _write(path: Path, write: Callable[[TextIO], None]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        write(stream)
    _close(path)


def _close(path: Path) -> None:
    """Take the right to write from group and others: the vendor's importer refuses such a file."""
    path.chmod(stat.S_IMODE(path.stat().st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))


def _claim(folder: Path, parent: Path, op: str) -> Path:
    """Rename to the first free number; another process may take one at the same moment."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", op).strip("._") or "run"
    number = 1
    while True:
        target = parent / f"{name}-{number}"
        if not target.exists():
            try:
                folder.rename(target)
            except OSError:
                if not target.exists():
                    raise
            else:
                return target
        number += 1


def _replace(folder: Path, target: Path) -> None:
    """Put the new folder where the old one is; the old one comes back if that fails."""
    if not target.exists():
        folder.rename(target)
        return
    old = folder.with_name("old")
    target.rename(old)
    try:
        folder.rename(target)
    except OSError:
        old.rename(target)
        raise
