"""Which instruction made the numbers wrong: every result is looked at as it is written.

A launch under watch finds, in the order in which results come: the first NaN that came of numbers, the first infinity
that came of finite ones, sums that stand still because what is added is below half their spacing, and, beside a
reference of the stages in between, the first one that departs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.core import Core
from ascend_sim.errors import Finding
from ascend_sim.launch import launch
from ascend_sim.messages import place
from ascend_sim.pipes import ComputePipe, MatrixPipe
from ascend_sim.session import Session
from ascend_sim.stage import Rehearsal, rehearsals

if TYPE_CHECKING:
    from ascend_sim.run import Run
    from ascend_sim.trace import Item

Array = np.ndarray[Any, Any]
STALLED = 64
"""Additions in a row that change nothing before a sum counts as standing still."""
_ADDITIONS = ("add", "axpy", "mul_add_dst", "fused_mul_add")


@dataclass(slots=True)
class Blame:
    """What a watched launch found: `run`, and findings of kind NUMERIC in the order in which results came."""

    run: Run
    findings: list[Finding] = field(default_factory=list)


def blame(
    kernel: Callable[..., Any],
    *args: Any,
    stages: Sequence[tuple[str, Any]] = (),
    rtol: float = 1e-3,
    **options: Any,
) -> Blame:
    """Launch a kernel and look at every result of its vector and cube instructions.

    `stages` are results of block 0 in program order, as (instruction, values): each is compared, within `rtol`, with
    the next instruction of that name. `options` are those of `ascend_sim.launch`, whose errors are raised.

    Findings: `nan-born`, `infinity-born`, `accumulator-stalls`, `first-difference`.
    """
    found: list[Watch] = []

    def rehearse(rehearsal: Rehearsal) -> None:
        watch = Watch(stages, rtol)

        def make(*settings: Any, **changes: Any) -> Session:
            return _WatchedSession(watch, *settings, **changes)

        rehearsal.again(make)
        found.append(watch)

    rehearsals.append(rehearse)
    try:
        run = launch(kernel, *args, **options)
    finally:
        rehearsals.remove(rehearse)
    watch = found[-1]
    watch.tell_spread(run)
    return Blame(run, watch.findings)


class Watch:
    """Looks at results as they are written."""

    def __init__(self, stages: Sequence[tuple[str, Any]], rtol: float) -> None:
        self.findings: list[Finding] = []
        self._stages = deque(stages)
        self._rtol = rtol
        self._still: dict[int, int] = {}  # additions in a row without effect, by place
        self._counts: dict[int, int] = {}
        self._told: set[str] = set()

    def look(self, session: Session, item: Item, operands: list[Array], result: Any) -> None:
        """Take the result of an instruction that read `operands`."""
        values = np.asarray(result)
        if values.dtype.kind in "iub" or not values.size:
            return
        with np.errstate(all="ignore"):
            wide = values.astype(np.float64)
            inputs = [one.astype(np.float64) for one in operands if one.dtype.kind not in "b"]
            nan_in = any(np.isnan(one).any() for one in inputs)
            if not nan_in and np.isnan(wide).any():
                self._born(session, item, inputs, wide, np.isnan(wide), "nan-born", "NaN")
            elif inputs and np.isinf(wide).any() and all(np.isfinite(i).all() for i in inputs):
                self._born(session, item, inputs, wide, np.isinf(wide), "infinity-born", "infinity")
            if item.name.startswith(_ADDITIONS):
                self._stands_still(session, item, inputs, wide)
            if self._stages and item.core == 0 and item.name == self._stages[0][0]:
                self._compare(session, item, inputs, wide, np.asarray(self._stages.popleft()[1]))

    def _born(
        self, session: Session, item: Item, inputs: list[Array], wide: Array, hit: Array,
        code: str, what: str,
    ) -> None:  # fmt: skip
        if code in self._told:
            return
        self._told.add(code)
        first = int(np.flatnonzero(hit.reshape(-1))[0])
        self._report(
            session, item, code,
            f"{item.name} makes the first {what}, element {first} of {_target(item)} and {int(hit.sum())} in all: it "
            f"read {_at(inputs, wide, first)}",
        )  # fmt: skip

    def _stands_still(self, session: Session, item: Item, inputs: list[Array], wide: Array) -> None:
        """Count additions in place whose result is what was there, though something was to be added."""
        self._counts[item.site] = self._counts.get(item.site, 0) + 1
        old = next(
            (one for one in inputs if one.shape == wide.shape and np.array_equal(one, wide)), None
        )
        target = item.call.writes[0]
        in_place = any(access.low == target.low for access in item.call.reads)
        added = [one for one in inputs if one is not old]
        if old is None or not in_place or not added or not all(one.all() for one in added):
            self._still[item.site] = 0
            return
        self._still[item.site] = self._still.get(item.site, 0) + 1
        if self._still[item.site] == STALLED:
            count = self._counts[item.site] - STALLED
            self._report(
                session, item, "accumulator-stalls",
                f"{item.name} into {_target(item)} changes nothing any more since it ran {count} times: the sum is "
                f"{_number(wide.reshape(-1)[0])} in {target.dtype}, and {_number(added[0].reshape(-1)[0])} is not "
                f"above half a spacing there. Accumulate in float32, or add partial sums",
            )  # fmt: skip

    def _compare(
        self, session: Session, item: Item, inputs: list[Array], wide: Array, reference: Array
    ) -> None:
        flat = wide.reshape(-1)[: reference.size]
        wanted = reference.astype(np.float64).reshape(-1)
        wrong = ~np.isclose(flat, wanted, rtol=self._rtol, atol=0, equal_nan=True)
        if not wrong.any():
            return
        first = int(np.flatnonzero(wrong)[0])
        self._report(
            session, item, "first-difference",
            f"{item.name} is the first stage that departs from the reference, in {int(wrong.sum())} of {wanted.size} "
            f"elements: element {first} is {_number(flat[first])}, the reference {_number(wanted[first])}; it read "
            f"{_at(inputs, wide, first)}",
        )  # fmt: skip
        self._stages.clear()

    def _report(self, session: Session, item: Item, code: str, message: str) -> None:
        site = session.sites[item.site]
        self.findings.append(
            Finding(
                "NUMERIC", code, f"{message}\n  {item.name} at {place(site)}", site.file, site.line,
                session.log.cores[item.core].name, item.pipe.name, _target(item), struck=True,
            )
        )  # fmt: skip

    def tell_spread(self, run: Run) -> None:
        """Say of a NaN how far it has come."""
        for finding in self.findings:
            if finding.code == "nan-born":
                spread = [
                    f"{int(np.isnan(np.asarray(array, np.float64)).sum())} of {np.size(array)} elements of {name}"
                    for name, array in run.outputs.named.items()
                    if np.asarray(array).dtype.kind not in "iub"
                ]
                finding.message += (
                    f"\n  in the end NaN are {', '.join(spread) or 'none of the outputs'}"
                )


def _target(item: Item) -> str:
    return str(item.call.writes[0].name)


def _at(inputs: list[Array], wide: Array, element: int) -> str:
    """Return what the operands hold at an element of the result, where they have its shape."""
    same = [_number(one.reshape(-1)[element]) for one in inputs if one.size == wide.size]
    return " and ".join(same) or "operands of another shape"


def _number(value: Any) -> str:
    return f"{float(value):.8g}"


class _Watching(ComputePipe):
    """Shows results to the watch."""

    __slots__ = ()

    def _read(self, item: Item) -> None:
        _remember(self.core, item)
        super()._read(item)

    def _write(self, item: Item) -> None:
        result = self.results[item]
        super()._write(item)
        _show(self.core, item, result)


class _WatchedMatrix(_Watching, MatrixPipe):
    """The same for M."""

    __slots__ = ()


def _remember(core: Any, item: Item) -> None:
    """Keep what an instruction reads until its result is written."""
    core.seen[item] = [np.array(access.view(core.bytes(access))) for access in item.call.reads]


def _show(core: Any, item: Item, result: Any) -> None:
    core.watch.look(core.session, item, core.seen.pop(item), result)


class _WatchedCore(Core):
    """A core whose results are looked at."""

    compute_pipe = _Watching
    matrix_pipe = _WatchedMatrix
    seen: dict[Item, list[Array]]
    watch: Watch
    session: Session


class _WatchedSession(Session):
    """A machine whose results are looked at."""

    core_type = _WatchedCore

    def __init__(self, watch: Watch, *args: Any, **settings: Any) -> None:
        self._watch = watch
        super().__init__(*args, **settings)

    def _make_cores(self, place: int) -> list[Core]:
        cores = super()._make_cores(place)
        for core in cores:
            assert isinstance(core, _WatchedCore)
            core.seen, core.watch, core.session = {}, self._watch, self
        return cores
