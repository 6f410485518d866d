"""Which instruction made the numbers wrong: every result is looked at as it is written.

A launch under watch finds, in the order in which results come: the first NaN that came of numbers, the first infinity
that came of finite ones, sums that stand still because what is added is below half their spacing, and, beside a
reference of the stages in between, the first one that departs. Of what reaches GM it finds where it departs from the
same launch in float32 (`shadow`), and, beside a reference of the outputs, what wrong elements come through (`lineage`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.departed import differences, losses
from ascend_sim.errors import Finding
from ascend_sim.launch import launch
from ascend_sim.lineage import Lineage
from ascend_sim.messages import place
from ascend_sim.shadow import Before, Shadow
from ascend_sim.stage import Rehearsal, rehearsing
from ascend_sim.watched import WatchedSession

if TYPE_CHECKING:
    from ascend_sim.run import Run
    from ascend_sim.session import Session
    from ascend_sim.trace import Item
    from ascend_sim.watched import Bytes

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
    reference: Mapping[str, Any] | None = None,
    rtol: float = 1e-3,
    **options: Any,
) -> Blame:
    """Launch a kernel and look at every result of its vector and cube instructions.

    `stages` are results of block 0 in program order, as (instruction, values): each is compared, within `rtol`, with
    the next instruction of that name. `reference` has right values of outputs by the names of their parameters: what
    is further off than `rtol` of the largest of them, or `shadow.UNITS` roundings of it, is wrong. `options` are those
    of `ascend_sim.launch`, whose errors are raised; a ConfigError for a reference that fits no output.

    Findings: `nan-born`, `infinity-born`, `accumulator-stalls`, `first-difference`; of what reaches GM
    `cast-overflow`, `cast-underflow`, `half-accumulation`, `precision-loss`; `output-differs`. A NaN or an infinity
    that reaches no output is INFO.
    """
    watches: list[Watch] = []

    def rehearse(rehearsal: Rehearsal) -> None:
        watches.append(watch(rehearsal, stages, reference, rtol))

    with rehearsing(rehearse):
        run = launch(kernel, *args, **options)
    return Blame(run, watches[-1].findings)


def watch(
    rehearsal: Rehearsal,
    stages: Sequence[tuple[str, Any]] = (),
    reference: Mapping[str, Any] | None = None,
    rtol: float = 1e-3,
) -> Watch:
    """Perform a launch again under watch, and return what was seen; the arguments are those of `blame`."""
    found = Watch(stages, rtol)

    def make(*settings: Any, **changes: Any) -> Session:
        return WatchedSession(found, *settings, **changes)

    trial = rehearsal.again(make)
    if trial.run is not None:
        found.look_back(trial.run, reference or {})
    return found


class Watch:
    """Looks at results as they are written."""

    def __init__(self, stages: Sequence[tuple[str, Any]], rtol: float) -> None:
        self.findings: list[Finding] = []
        self.shadow = Shadow()
        self.lineage = Lineage()
        self._stages = deque(stages)
        self._rtol = rtol
        self._still: dict[int, int] = {}  # additions in a row without effect, by place
        self._counts: dict[int, int] = {}
        self._told: set[str] = set()
        self._open: dict[Item, tuple[Before, tuple[int, ...]]] = {}  # has read, has not written

    def before(self, session: Session, item: Item, memories: Bytes) -> None:
        """Remember what an instruction reads."""
        reads = item.call.reads
        self._open[item] = (
            self.shadow.read(item.core, reads, memories),
            self.lineage.read(item.core, reads, memories),
        )

    def after(self, session: Session, item: Item, memories: Bytes) -> None:
        """Look at what an instruction made of it."""
        before, parents = self._open.pop(item)
        known = len(self.shadow.departures)
        self.shadow.write(item, before, memories)
        for departure in self.shadow.departures[known:]:
            departure.made_of = parents
        self.lineage.write(item, parents, memories)
        if item.call.writes:
            access = item.call.writes[0]
            made = np.array(access.view(memories(access)))
            self.look(session, item, before.values, made)

    def look_back(self, run: Run, reference: Mapping[str, Any]) -> None:
        """Say what has come to the outputs of a run that is over."""
        self.tell_spread(run)
        known = {(one.file, one.line) for one in self.findings if one.kind != "INFO"}
        for loss in losses(run, self.shadow, self.lineage):
            if (loss.file, loss.line) not in known:  # it has been said in other words
                self.findings.append(loss)
        self.findings += differences(run, self.shadow, self.lineage, reference, self._rtol)

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
        """Say of a NaN or an infinity how far it has come: one that has come nowhere is no mistake."""
        outputs = {
            name: np.asarray(array).astype(np.float64)
            for name, array in run.outputs.named.items()
            if np.asarray(array).dtype.kind not in "iub"
        }
        for finding in self.findings:
            test = {"nan-born": np.isnan, "infinity-born": np.isinf}.get(finding.code)
            if test is None:
                continue
            counts = {name: int(np.count_nonzero(test(array))) for name, array in outputs.items()}
            spread = [
                f"{count} of {outputs[name].size} elements of {name}"
                for name, count in counts.items()
                if count
            ]
            what = "NaN" if finding.code == "nan-born" else "infinite"
            finding.message += (
                f"\n  in the end {what} are {', '.join(spread) or 'none of the outputs'}"
            )
            if not any(np.any(~np.isfinite(array)) for array in outputs.values()):
                finding.kind = "INFO"


def _target(item: Item) -> str:
    return str(item.call.writes[0].name)


def _at(inputs: list[Array], wide: Array, element: int) -> str:
    """Return what the operands hold at an element of the result, where they have its shape."""
    same = [_number(one.reshape(-1)[element]) for one in inputs if one.size == wide.size]
    return " and ".join(same) or "operands of another shape"


def _number(value: Any) -> str:
    return f"{float(value):.8g}"
