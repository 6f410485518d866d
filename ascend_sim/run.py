"""The result of a launch: outputs, cycles, findings, and the summary that reports are made of."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_sim.errors import ConfigError, Finding, exit_code

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from ascend_sim.config import Chip
    from ascend_sim.recording import Origin, Recording
    from ascend_sim.report.critical_path import CriticalPath
    from ascend_sim.report.diff import Difference
    from ascend_sim.report.ledger import Ledger
    from ascend_sim.touched import Touched
    from ascend_sim.trace import Log
    from ascend_sim.what_if import WhatIf


class Outputs(list[Any]):
    """The arrays that a kernel wrote, in argument order; `outputs["z"]` finds one by its parameter's name."""

    def __init__(self, named: dict[str, Any]) -> None:
        super().__init__(named.values())
        self.named = named

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self.named[key]
        return super().__getitem__(key)

    def keys(self) -> list[str]:
        """Return the names."""
        return list(self.named)


class Run:
    """One finished launch (or, on `KernelError.run`, one that was cut short)."""

    def __init__(
        self,
        op: str,
        chip: Chip,
        log: Log,
        findings: list[Finding],
        outputs: Outputs,
        *,
        blocks: int,
        options: dict[str, Any],
        coverage: dict[str, list[tuple[int, int]]],
        memory: dict[str, int],
        origin: Origin | None = None,
    ) -> None:
        self.op = op
        self.chip = chip
        self.log = log
        self.findings = findings
        self.outputs = outputs
        self.blocks = blocks
        self.options = options
        self.coverage = coverage
        self.memory = memory
        self.origin = origin  # None where the run was cut short
        self.uses: list[Any] = []  # all accesses to GM, as the checks noted them
        self.addresses: dict[str, Any] = {}  # of the tensors that the kernel got
        self.allowed: list[
            tuple[Finding, str]
        ] = []  # findings that the source allows, with its reasons
        self.numerics: dict[str, Any] | None = None
        self.extra: dict[str, Any] = {}
        self.folder: Path | None = None  # of a run that was read from disk

    @property
    def cycles(self) -> int:
        """Cycles from the launch to the last core's end, launch cost included."""
        return self.log.cycles

    @property
    def time_us(self) -> float:
        """The same in microseconds."""
        return self.chip.us(self.log.cycles)

    @property
    def exit_code(self) -> int:
        """The exit code that belongs to the findings."""
        return exit_code(self.findings)

    @cached_property
    def pipes(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Busy, wait and idle cycles, counts and bytes of each pipe of each core."""
        from ascend_sim.report.ledger import pipe_totals  # noqa: PLC0415  reports are made on demand

        return pipe_totals(self.log, self.ledger)

    @cached_property
    def ledger(self) -> Ledger:
        """Where every cycle of every pipe went; what the reports are made of."""
        from ascend_sim.report.ledger import build_ledger  # noqa: PLC0415  reports are made on demand

        return build_ledger(self.log)

    def touched(self) -> list[Touched]:
        """Return for each tensor what was read, written, written twice and left out, along its axes and by core.

        Raises `ConfigError` for a run without checks, or one that was read from disk: nobody noted its accesses.
        """
        from ascend_sim.touched import touched  # noqa: PLC0415  made on demand

        if not self.addresses or self.options.get("checks") == "off":
            raise ConfigError(
                "what a run touched is known right after it, with checks on: launch with checks='collect'"
            )
        return touched(self.uses, self.addresses, [core.name for core in self.log.cores])

    def stalls(self, by: Iterable[str] | None = None) -> Any:
        """Return cycles by cause, summed over pipes and cores; busy is among them.

        With `by`, some of `core`, `pipe`, `cause`, `sub_cause`, `line`, `name`, `set_pipe`, `set_line`, `late`,
        `trip`, `phase`: a list of rows with these keys, `cycles` and `count`, the largest first. They add up
        to the cycles of all pipes. Raises `ConfigError` for a key that there is not.
        """
        from ascend_sim.report.ledger import stall_totals  # noqa: PLC0415  reports are made on demand
        from ascend_sim.report.stalls import stall_table  # noqa: PLC0415

        return stall_totals(self.pipes) if by is None else stall_table(self.ledger, by)

    def critical_path(self) -> CriticalPath:
        """Return the chain of instructions and waits that makes the run as long as it is."""
        return self._critical_path

    @cached_property
    def _critical_path(self) -> CriticalPath:
        from ascend_sim.report.critical_path import (  # noqa: PLC0415  reports are made on demand
            critical_path,
        )

        return critical_path(self.ledger, self.chip)

    def set_numerics(self, numerics: dict[str, Any]) -> None:
        """Attach the comparison with a reference."""
        self.numerics = numerics
        self.__dict__.pop("summary", None)

    def add_finding(self, finding: Finding) -> None:
        """Attach a finding of the operator's own."""
        self.findings.append(finding)
        self.__dict__.pop("summary", None)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What summary.json holds."""
        from ascend_sim.report.summary import build_summary  # noqa: PLC0415  reports are made on demand
        from ascend_sim.report.trust import trust  # noqa: PLC0415

        extra = {
            "op": self.op,
            "block_dim": self.blocks,
            "options": self.options,
            "memory": self.memory,
            "trust": trust(self.critical_path(), self.chip),
            **self.extra,
        }
        return build_summary(self.log, self.chip, self.findings, self.numerics, extra, self.ledger)

    def recording(self) -> Recording:
        """Return what the kernel issued, to be replayed on other chips without the kernel.

        Raises UnsupportedError where that depends on what the kernel itself computed, by the line.
        """
        from ascend_sim.ideals import note_frees  # noqa: PLC0415  made on demand
        from ascend_sim.reader import record_run  # noqa: PLC0415
        from ascend_sim.recording import Recording  # noqa: PLC0415

        if self.folder is not None and (self.folder / "recording.bin").is_file():
            return Recording.load(self.folder / "recording.bin")
        recording = record_run(self)
        if not recording.frees:
            note_frees(recording, self.log)
        return recording

    def what_if(self, ideal: Iterable[str] | None = None, *, pairs: bool = True) -> WhatIf:
        """Return what the run would gain with resources ideal, simulated again: see `ascend_sim.what_if`.

        `ideal` are names of `ascend_sim.ideals.IDEALS`, `a+b` for two together; all that matter where None, and the
        pairs of them that help only together. Raises ConfigError for an unknown name, UnsupportedError where
        the kernel cannot be replayed.
        """
        from ascend_sim.what_if import what_if  # noqa: PLC0415  made on demand

        return what_if(self, ideal, pairs=pairs)

    def interval(self) -> dict[str, Any]:
        """Return `low` and `high`, the run's cycles with the chip's figures at the ends of their ranges, replayed.

        Raises UnsupportedError where the kernel cannot be replayed: see `ascend_sim.interval`.
        """
        from ascend_sim.interval import interval  # noqa: PLC0415  made on demand

        return interval(self)

    def diff(self, other: Run) -> Difference:
        """Return where another run differs from this one, by pipe, line and cause."""
        from ascend_sim.report.diff import diff  # noqa: PLC0415  reports are made on demand

        return diff(self, other)

    def explain(self, line: str) -> dict[str, Any]:
        """Return why a line (`file.py:41`) is slow: figures, and `text`, sentences made of them.

        Raises `ConfigError` for a line on which the run did nothing.
        """
        from ascend_sim.chip_file import nearest  # noqa: PLC0415
        from ascend_sim.report.explain import explain_line  # noqa: PLC0415

        return explain_line(self, line, nearest)

    @cached_property
    def sources(self) -> dict[str, str]:
        """The text of the kernel's files, by their short paths."""
        from ascend_sim.report.sources import source_texts  # noqa: PLC0415

        return source_texts(self.log.sites)

    @property
    def about(self) -> dict[str, Any]:
        """What the log does not say, as plain JSON: how the run was launched, what it was compared with."""
        from ascend_sim.report.summary import plain  # noqa: PLC0415  reports are made on demand

        return {
            "op": self.op,
            "chip": self.chip.model_dump(mode="json"),
            "blocks": self.blocks,
            "options": plain(self.options),
            "memory": plain(self.memory),
            "coverage": plain(self.coverage),
            "numerics": plain(self.numerics),
            "extra": plain(self.extra),
            "sources": self.sources,
        }

    def attach(self, folder: Path) -> None:
        """Write the recording of the kernel into the run folder, if it can be recorded."""
        from ascend_sim.errors import UnsupportedError  # noqa: PLC0415

        saved = self.folder / "recording.bin" if self.folder is not None else None
        if saved is not None and saved.is_file():
            shutil.copyfile(saved, folder / "recording.bin")
            return
        with suppress(UnsupportedError):
            self.recording().save(folder / "recording.bin")

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> Run:
        """Return the run that was saved in a folder: all that a live one says, but for its arrays.

        Raises `ConfigError` where the folder holds no run, or one that another version wrote.
        """
        from ascend_sim.config import Chip  # noqa: PLC0415
        from ascend_sim.report.folder import read_finding  # noqa: PLC0415
        from ascend_sim.report.store import read_events  # noqa: PLC0415

        path = Path(folder)
        log, about = read_events(path / "events.npz")
        run = Run(
            about["op"], Chip.model_validate(about["chip"], strict=False), log,
            [read_finding(entry) for entry in about["findings"]], Outputs({}), blocks=about["blocks"],
            options=about["options"], coverage=about["coverage"], memory=about["memory"],
        )  # fmt: skip
        run.numerics, run.extra, run.folder = about["numerics"], about["extra"], path
        run.sources = about["sources"]
        return run

    def save(self, directory: str | os.PathLike[str] | None = None) -> Path:
        """Write the run folder and return its path."""
        from ascend_sim.report.folder import write_run_folder  # noqa: PLC0415  reports are made on demand

        return write_run_folder(self, directory)

    def _repr_html_(self) -> str:
        """Show the run in a notebook."""
        from ascend_sim.report.notebook import run_html  # noqa: PLC0415  made on demand

        return run_html(self.summary)

    def __repr__(self) -> str:
        kinds = ", ".join(sorted({finding.kind for finding in self.findings})) or "no findings"
        return f"<Run {self.op} on {self.chip.name}: {self.cycles} cycles, {self.time_us:.2f} us, {kinds}>"


def as_ranges(ranges: np.ndarray[Any, np.dtype[np.int64]]) -> list[tuple[int, int]]:
    """Return byte ranges as a list of (first, past last)."""
    return [(int(low), int(high)) for low, high in ranges]
