"""`import ascend_sim.pyasc` at the top of a program: from there on `import asc` is this simulator.

The lines after it are pyasc's own, `import asc` and `import asc.runtime.config as config`, and the program runs
with plain Python. `ascend-sim run program.py` needs no such line. What a launch has findings of goes to standard
error, once for each place, unless somebody else listens to the launches; the program's exit code stays its own.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from ascend_sim.stand_in import install

if TYPE_CHECKING:
    from ascend_sim.run import Run

_told: set[str] = set()


def _tell(run: Run) -> None:
    """Print a run's findings that have not been printed yet."""
    if len(_listeners) > 1:
        return
    for finding in run.findings:
        place = f" at {finding.file}:{finding.line}" if finding.file else ""
        text = f"ascend-sim: {finding.kind} {finding.code}{place}: {finding.message}"
        if finding.kind not in ("INFO", "PERF") and text not in _told:
            _told.add(text)
            print(text, file=sys.stderr)


install()
_listeners = import_module("ascend_sim.launch").on_run
_listeners.append(_tell)
