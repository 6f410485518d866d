"""A case is one real problem as a kernel, faulty and repaired, with what is to be said of the faulty one.

Score of a case: 2 where every expected finding comes with the right kind, place and names, 1 where it comes without
them, 0 where nothing does or something else is blamed, -1 where the repaired kernel is blamed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import Finding
from ascend_sim.run import Run

E = asc.HardEvent
V, MTE2, MTE3, ALL = (
    asc.PipeID.PIPE_V, asc.PipeID.PIPE_MTE2, asc.PipeID.PIPE_MTE3, asc.PipeID.PIPE_ALL,
)  # fmt: skip
F16, F32, I32, U32, U8 = asc.float16, asc.float32, asc.int32, asc.uint32, asc.uint8
MIX = {"kernel_type": "MIX_AIC_1_2"}
SEEDS = (None, 7)
"""Orders of simultaneous events in which the faulty kernel runs: the findings are the same in each."""


@dataclass(frozen=True)
class Want:
    """A finding that the faulty kernel has to get.

    `line` is the comment that marks its line; `says` are parts of its message; `bytes` its byte range. PERF of
    code "advice" is a sentence of the summary's advice.
    """

    kind: str
    code: str = ""
    line: str = ""
    tensor: str = ""
    bytes: tuple[int, int] | None = None
    says: tuple[str, ...] = ()


@dataclass
class Told:
    """What a run said."""

    findings: list[Finding] = field(default_factory=list)
    run: Run | None = None

    @property
    def cycles(self) -> int:
        """The cycles of the run."""
        assert self.run is not None
        return self.run.cycles


@dataclass
class Case:
    """One problem: `tell(wrong)` runs its kernel, faulty or repaired."""

    name: str
    tell: Callable[..., Told]
    wants: tuple[Want, ...]
    beside: tuple[str, ...]
    slower: tuple[float, float] | None


CASES: dict[str, Case] = {}


def case(
    name: str,
    *wants: Want,
    beside: tuple[str, ...] = (),
    slower: tuple[float, float] | None = None,
) -> Callable[[Callable[..., Told]], Callable[..., Told]]:
    """Enter a case; `beside` are codes of findings that also follow from its fault.

    `slower` bounds the cycles of the faulty kernel over those of the repaired one.
    """

    def enter(tell: Callable[..., Told]) -> Callable[..., Told]:
        assert name not in CASES, name
        CASES[name] = Case(name, tell, wants, beside, slower)
        return tell

    return enter


def told(
    kernel: Any,
    *args: Any,
    advice: bool = False,
    whole: tuple[str, ...] = (),
    **options: Any,
) -> Told:
    """Launch on the chip of round numbers and return what is said.

    With `advice` its sentences count as findings of kind PERF; what `run.touched()` says was never read of the tensors
    in `whole` counts as one of kind COVERAGE.
    """
    try:
        run = sim.launch(kernel, *args, **{"chip": "toy", **_order, **options})
    except sim.KernelError as error:
        return Told(error.run.findings if error.run is not None else [error.finding], error.run)
    findings = list(run.findings)
    if advice:
        findings += [Finding("PERF", "advice", text) for text in run.summary["advice"]]
    for tensor in run.touched() if whole else ():
        rest = tensor.never_read.text
        if tensor.name in whole and rest:
            text = f"{tensor.name}: {rest} never read"
            findings.append(Finding("COVERAGE", "input-not-read", text, tensor=tensor.name))
    return Told(findings, run)


def score(one: Case) -> tuple[int, list[str]]:
    """Return the points of a case, and what is missing."""
    faulty = [_run(one, True, seed) for seed in SEEDS] if one.wants else []
    repaired = _run(one, False, None)
    if repaired.findings:
        return -1, [f"repaired: {_short(finding)}" for finding in repaired.findings]
    if not faulty:
        return 2, []
    if any(_essence(other) != _essence(faulty[0]) for other in faulty[1:]):
        return 0, ["what is found depends on the order of simultaneous events"]
    lacks = [lack for want in one.wants for lack in _lacks(one, want, faulty[0].findings)]
    found = [any(_is(want, finding) for finding in faulty[0].findings) for want in one.wants]
    expected = {want.code for want in one.wants} | set(one.beside)
    others = [finding for finding in faulty[0].findings if finding.code not in expected]
    lacks += [f"beside the point: {_short(finding)}" for finding in others]
    if one.slower is not None:
        ratio = faulty[0].cycles / repaired.cycles
        if not one.slower[0] <= ratio <= one.slower[1]:
            lacks.append(f"the faulty kernel takes {ratio:.2f} times as long")
    if not found[0]:
        return 0, lacks
    return (1 if lacks else 2), lacks


def _run(one: Case, wrong: bool, seed: int | None) -> Told:
    _order["shuffle"] = seed
    return one.tell(wrong)


_order: dict[str, int | None] = {"shuffle": None}
"""How launches order simultaneous events."""


def _essence(what: Told) -> list[tuple[Any, ...]]:
    return [(f.kind, f.code, f.file, f.line, f.tensor, f.bytes, f.message) for f in what.findings]


def _is(want: Want, finding: Finding) -> bool:
    return finding.kind == want.kind and want.code in ("", finding.code)


def _lacks(one: Case, want: Want, findings: list[Finding]) -> list[str]:
    """Return what is missing from the best of the findings that a wish is about."""
    candidates = [finding for finding in findings if _is(want, finding)]
    if not candidates:
        return [f"no {want.kind} {want.code}"]
    return min((_missing(one, want, finding) for finding in candidates), key=len)


def _missing(one: Case, want: Want, finding: Finding) -> list[str]:
    message = " ".join(finding.message.split())
    lacks = [f"{want.code} does not say {part!r}" for part in want.says if part not in message]
    if want.line and finding.line != line_of(one.tell, f"# {want.line}"):
        lacks.append(f"{want.code} is at line {finding.line}, not at {want.line!r}")
    if want.tensor and want.tensor != finding.tensor and want.tensor not in message:
        lacks.append(f"{want.code} does not name {want.tensor}")
    if want.bytes is not None and want.bytes != finding.bytes:
        lacks.append(f"{want.code} has bytes {finding.bytes}")
    if want.line and not finding.core:
        lacks.append(f"{want.code} names no core")
    return [*lacks, *([finding.message] if lacks else [])]


def _short(finding: Finding) -> str:
    return f"{finding.kind} {finding.code} at line {finding.line}: {finding.message}"


def line_of(function: Any, text: str) -> int:
    """Return the line of a function's source that ends with a text."""
    lines, first = inspect.getsourcelines(function)
    return next(first + n for n, line in enumerate(lines) if line.rstrip().endswith(text))


# ---- what kernels are written with -----------------------------------------------------------


def ub(dtype: asc.DataType, count: int, at: int) -> asc.LocalTensor:
    """A tensor of `count` elements at a byte of UB."""
    return asc.LocalTensor(dtype, asc.TPosition.VECCALC, at, count)


def window(address: Any) -> asc.GlobalTensor:
    """A GlobalTensor on a kernel argument."""
    tensor = asc.GlobalTensor()
    tensor.set_global_buffer(address)
    return tensor


def flag(event: asc.HardEvent, event_id: int = 0) -> None:
    """Set a flag and wait for it at once."""
    asc.set_flag(event, event_id)
    asc.wait_flag(event, event_id)


def fill(*tensors: asc.LocalTensor) -> None:
    """Fill tensors with ones, and wait."""
    for tensor in tensors:
        asc.duplicate(tensor, 1, tensor.get_size())
    asc.pipe_barrier(ALL)


def ramp(count: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """1, 2, 3, …"""
    return (np.arange(count) + 1).astype(dtype)


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """An array of zeros."""
    return np.zeros(shape, dtype)
