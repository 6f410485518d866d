"""What tests of the doctor share: a kernel written into a file, and what is found in a run of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from ascend_sim.doctor.search import Doctor
from ascend_sim.errors import Finding, KernelError
from ascend_sim.run import Run
from ascend_sim.stage import rehearsing


def load(text: str, path: Path) -> ModuleType:
    """Write a module and import it."""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def found_by(doctor: Doctor | None, run: Callable[[], Run]) -> list[Finding]:
    """Return the findings of a launch that the doctor, if there is one, listens to."""
    with rehearsing(*([] if doctor is None else [doctor.rehearse])):
        try:
            return run().findings
        except KernelError as error:
            return error.run.findings
