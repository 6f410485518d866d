"""A launch that is bound and checked: what performs it, once or again on the same data.

A rehearsal performs a launch again, under other timings or with a changed kernel, on copies of what stood in GM
before. Nothing of it is left when it is over.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from ascend_sim import messages
from ascend_sim.allowed import apply as allowed_of
from ascend_sim.compiled import FILES
from ascend_sim.coverage import ONE, axis_text, unwritten
from ascend_sim.errors import Finding, KernelError, host_error
from ascend_sim.garbage import no_collection
from ascend_sim.gm_order import conflicts
from ascend_sim.recording import Origin
from ascend_sim.report.spool import Spool
from ascend_sim.run import Outputs, Run, as_ranges
from ascend_sim.session import Session
from ascend_sim.tape import Tape
from ascend_sim.threads import one_thread

if TYPE_CHECKING:
    from ascend_sim.recorder import Asked
    from ascend_sim.trace import Log
    from isa.tensor import GlobalAddress

Data = dict[int, np.ndarray[Any, np.dtype[np.uint8]]]
"""The bytes of allocations in GM, by their index."""


class Stage:
    """One launch and all it needs: the machine's settings, the options as reports name them, the arrays in GM.

    `looked_over` are the arguments in which unwritten places are no finding.
    """

    def __init__(
        self,
        asked: Asked,
        settings: dict[str, Any],
        options: dict[str, Any],
        arrays: dict[str, Any],
        looked_over: list[str],
    ) -> None:
        self.asked = asked
        self.settings = settings
        self.options = options
        self.arrays = arrays
        self.looked_over = looked_over
        self.buffers = {a.buffer.index: a.buffer for a in asked.addresses.values()}

    def perform(self, make: Callable[..., Session] = Session, **changes: Any) -> Run:
        """Run the launch on a machine that `make` builds, with some of its settings changed.

        Raises KernelError for a kernel that cannot go on, with the run so far, and what the kernel's Python raises.
        """
        with no_collection():
            return self._perform(make, changes)

    def _perform(self, make: Callable[..., Session], changes: dict[str, Any]) -> Run:
        asked = self.asked
        settings = {**self.settings, **changes}
        session = make(
            asked.chip,
            blocks=asked.blocks,
            physical_cores=asked.physical_cores,
            kernel_type=asked.kernel_type,
            library=asked.library,
            **settings,
        )
        session.memory.l2.start(asked.l2, self.buffers.values())
        origin = Origin(asked.kernel_type, self.buffers, session.written_buffers, session.reserved)
        keep = _Keep(session, origin)
        coverage: dict[str, list[tuple[int, int]]] = {}
        try:
            with one_thread():
                session.run(asked.body)
            if settings["checks"] != "off":
                coverage |= _look_over(session, asked.addresses, self.looked_over)
                _look_for_rebound(session, asked)
            return self._finished(session, coverage, keep)
        except KernelError as error:
            if session.log.cycles == 0:
                session.abort()
            if all(known is not error.finding for known in session.findings.values()):
                session.findings["stopped"] = error.finding
            error.run = self._finished(session, coverage, keep, stopped=error.finding)
            error.args = (error.args[0], error.finding, error.run)
            raise error.with_traceback(kernel_frames(error, asked.library)) from None
        except Exception as error:
            kept = [n for n, a in asked.addresses.items() if not a.buffer.data.flags.writeable]
            if kept and isinstance(error, ValueError) and "read-only" in str(error):
                raise host_error(
                    "argument-read-only",
                    f"{asked.label} writes into an array that numpy holds read-only ({', '.join(kept)}): pass a copy",
                ) from None
            raise error.with_traceback(kernel_frames(error, asked.library))  # noqa: B904  the kernel's own lines
        finally:
            session.close()

    def _finished(
        self,
        session: Session,
        coverage: dict[str, list[tuple[int, int]]],
        keep: _Keep,
        stopped: Finding | None = None,
    ) -> Run:
        memory, asked = session.memory.l2, self.asked
        log = keep.finish(asked, session)
        written = {
            key: self.arrays[key]
            for key, address in asked.addresses.items()
            if address.buffer.index in session.written_buffers
        }
        findings, allowed = allowed_of(session.finish(), session.log.sites, stopped)
        run = Run(
            asked.label,
            asked.chip,
            log,
            findings,
            Outputs(written),
            blocks=asked.blocks,
            options=self.options,
            coverage=coverage,
            memory={
                "l2_hit_bytes": memory.hit_bytes,
                "l2_miss_bytes": memory.miss_bytes,
                "write_back_bytes": memory.write_back_bytes,
            },
            origin=keep.origin if stopped is None else None,
        )
        run.allowed = allowed
        run.uses, run.addresses = session.gm_uses, asked.addresses
        return run

    def data(self) -> Data:
        """Return a copy of what stands in GM."""
        return {index: buffer.data.copy() for index, buffer in self.buffers.items()}

    def restore(self, data: Data) -> None:
        """Put back into GM what stood there."""
        for index, bytes_ in data.items():
            target = self.buffers[index].data
            if target.flags.writeable:
                target[:] = bytes_


class _Keep:
    """What stays of a session's items: the log, and what a recording needs where they went to disk."""

    def __init__(self, session: Session, origin: Origin) -> None:
        self.origin = origin
        self._tape = Tape(origin, session.sites)
        self._spool = Spool(self._tape.take)
        session.spill, session.spill_above = (
            self._spool.spill,
            self._spool.share(session.cores_at_once),
        )

    def finish(self, asked: Asked, session: Session) -> Log:
        """Return the log of a session that is over."""
        log = self._spool.finish(session.log)
        if self._spool.used:
            self.origin.recording = self._tape.recording(asked.label, asked.blocks, session.log)
            self.origin.refusal = self._tape.refusal
        return log


@dataclass(slots=True)
class Trial:
    """What came of performing a launch again: the run (so far), the error that ended it, GM afterwards."""

    run: Run | None
    error: BaseException | None
    data: Data

    @property
    def findings(self) -> list[Finding]:
        """What counts as a mistake."""
        found = self.run.findings if self.run is not None else []
        return [finding for finding in found if finding.kind not in ("INFO", "PERF")]


@dataclass(slots=True)
class Rehearsal:
    """A launch that has just been performed and can be performed again. `before` and `after` are GM around it."""

    stage: Stage
    before: Data
    after: Data
    run: Run
    failure: KernelError | None

    def again(self, make: Callable[..., Session] = Session, **changes: Any) -> Trial:
        """Perform the launch again on the same data; nothing is raised. `changes` are settings of the machine."""
        self.stage.restore(self.before)
        run: Run | None = None
        error: BaseException | None = None
        try:
            run = self.stage.perform(make, **changes)
        except KernelError as raised:
            run, error = raised.run, raised
        except Exception as raised:  # the kernel's own Python
            error = raised
        return Trial(run, error, self.stage.data())


rehearsals: list[Callable[[Rehearsal], None]] = []
"""Called after each launch, before anybody hears of its run."""


@contextmanager
def rehearsing(*listeners: Callable[[Rehearsal], None]) -> Iterator[None]:
    """Let some listeners be called after each launch inside."""
    rehearsals.extend(listeners)
    try:
        yield
    finally:
        for listener in listeners:
            rehearsals.remove(listener)


def kernel_frames(error: BaseException, library: tuple[Path, ...]) -> TracebackType | None:
    """Return an error's traceback without the simulator's own frames: what is left are the kernel's lines."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    hidden = (*(str(path) for path in library), str(Path(simpy.__file__).parent), FILES)
    for trace in reversed(frames):
        if not trace.tb_frame.f_code.co_filename.startswith(hidden):
            kept = TracebackType(kept, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
    return kept if kept is not None else error.__traceback__


def _look_for_rebound(session: Session, asked: Asked) -> None:
    """Report arguments that the kernel never touches because it gives their names to something else."""
    used = {use[1].buffer.index for use in session.gm_uses}
    code = getattr(asked.function, "__code__", None)
    if code is None:
        return
    lines: dict[str, int] = {}
    for step in dis.get_instructions(code):
        place = step.positions.lineno if step.positions is not None else None
        if step.opname == "STORE_FAST":
            lines.setdefault(str(step.argval), place or code.co_firstlineno)
    for name, address in asked.addresses.items():
        if address.buffer.index not in used and name in lines:
            file = messages.short(code.co_filename)
            session.report(
                "COVERAGE",
                "output-rebound",
                f"{name} is never read or written: at {file}:{lines[name]} its name is rebound, given to something "
                f"else, which leaves the tensor as it was. Copy into it: data_copy to a GlobalTensor on {name}",
                0,
                tensor=name,
                struck=True,
            )


def _look_over(
    session: Session, addresses: dict[str, GlobalAddress], looked_over: list[str]
) -> dict[str, list[tuple[int, int]]]:
    """Report blocks that touch each other's bytes, and places of outputs that nothing wrote."""
    session.tensors = {a.buffer.index: a for a in addresses.values()}
    for conflict in conflicts(session.gm_uses):
        session.conflict(conflict)
    gaps = unwritten((use[1] for use in session.gm_uses if use[2]), addresses)
    read = {use[1].buffer.index for use in session.gm_uses if not use[2]}
    for name, ranges in gaps.items():
        address = addresses[name]
        if not len(ranges) or address.buffer.index in read or name in looked_over:
            continue  # a tensor that is also read is no plain output: the rest may be meant to stay
        size = address.dtype.size
        missing = int((ranges[:, 1] - ranges[:, 0]).sum())
        where = axis_text(ranges, address.shape, size)
        session.report(
            "COVERAGE",
            "output-not-written",
            f"{name}: {where} {'was' if where.startswith(ONE) else 'were'} never written ({missing // size} of "
            f"{address.length // size} elements). Check the number of blocks and how they split the work",
            0,
            tensor=f"{name}",
            byte_range=(int(ranges[0, 0]), int(ranges[-1, 1])),
            struck=True,
        )
    return {name: as_ranges(ranges) for name, ranges in gaps.items()}
