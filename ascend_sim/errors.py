"""Every error of the simulator, one parent for each consequence for the reader.

Constructors take positional arguments that round-trip through `args`, so that an error survives
SimPy's re-raising and pickling with its message whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Finding:
    """One thing to tell the user. `kind` is one of the words of `KINDS`; `code` is a stable identifier.

    `bytes` is the (first, past-last) byte range inside `tensor`, or None. `struck` says whether the
    fault changed anything in this run (None: not known, or not a question for this kind). `edit` is a change of the
    kernel with which a run was clean, in words ("": none was sought or found).
    """

    kind: str
    code: str
    message: str
    file: str = ""
    line: int = 0
    core: str = ""
    pipe: str = ""
    tensor: str = ""
    bytes: tuple[int, int] | None = None
    struck: bool | None = None
    hits: int = 1
    related: list[dict[str, Any]] = field(default_factory=list)
    edit: str = ""


KINDS = (
    "BOUNDS", "UNINIT", "ALIAS", "LAYOUT", "ALIGNMENT", "ILLEGAL_PARAM", "CAPACITY", "RACE", "COHERENCE",
    "FLAG_BALANCE", "DEADLOCK", "QUEUE", "STATE", "NUMERIC", "COVERAGE", "PERF", "HOST", "INFO",
)  # fmt: skip

EXIT_CODE: dict[str, int] = {
    **dict.fromkeys(KINDS, 2),
    **dict.fromkeys(("CAPACITY", "BOUNDS", "ALIGNMENT", "ILLEGAL_PARAM"), 4),
    "DEADLOCK": 3,
    "HOST": 1,
    "PERF": 0,
    "INFO": 0,
}


def exit_code(findings: list[Finding]) -> int:
    """Return the process exit code that a run with these findings has: the highest of 4, 3, 2, 1, 0."""
    return max((EXIT_CODE[finding.kind] for finding in findings), default=0)


class AscendSimError(Exception):
    """Parent of all errors of the simulator."""


class ConfigError(AscendSimError):
    """A chip file, an option or a name is wrong; the message names the file and the key path."""


class UnsupportedError(AscendSimError):
    """Real hardware can do this, the simulator cannot (yet)."""


class ExportError(AscendSimError):
    """A kernel is outside what pyasc's front end translates; the message names line and construct."""


class SimulatorBug(AscendSimError):
    """An invariant of the simulator broke; please report it with the kernel that shows it."""


class KernelError(AscendSimError):
    """The kernel is wrong and cannot go on. `finding` says what and where; `run` is the state so far."""

    default_kind = "ILLEGAL_PARAM"
    default_code = "illegal-parameter"

    def __init__(self, message: str, finding: Finding | None = None, run: Any = None) -> None:
        super().__init__(message, finding, run)
        self.finding = finding or Finding(self.default_kind, self.default_code, message)
        self.run = run

    def __str__(self) -> str:
        return str(self.args[0])


class OperandError(KernelError):
    """An operand or parameter that the instruction does not take."""


class AlignmentError(OperandError):
    """An operand that does not start on the border that its pipe needs."""

    default_kind, default_code = "ALIGNMENT", "misaligned-operand"


class BoundsError(KernelError):
    """An access past a tensor, a buffer, a memory or a GM allocation."""

    default_kind, default_code = "BOUNDS", "out-of-bounds"


class CapacityError(KernelError):
    """Buffers that do not fit a memory."""

    default_kind, default_code = "CAPACITY", "memory-overflow"


class UninitializedRead(KernelError):
    """A read of bytes that nothing wrote."""

    default_kind, default_code = "UNINIT", "uninitialised-read"


class SyncError(KernelError):
    """A flag or barrier used wrongly."""

    default_kind, default_code = "FLAG_BALANCE", "flag-misuse"


class RaceError(KernelError):
    """Two accesses to the same bytes that nothing orders."""

    default_kind, default_code = "RACE", "race"


class DeadlockError(KernelError):
    """Nothing can move any more."""

    default_kind, default_code = "DEADLOCK", "deadlock"


class QueueError(KernelError):
    """A TQue, TBuf or TPipe used against its life cycle."""

    default_kind, default_code = "QUEUE", "queue-misuse"


class HostError(KernelError):
    """A launch or its arguments are wrong."""

    default_kind, default_code = "HOST", "launch"


def host_error(code: str, message: str) -> HostError:
    """Return the error for a launch or arguments that are wrong."""
    return HostError(message, Finding("HOST", code, message))
