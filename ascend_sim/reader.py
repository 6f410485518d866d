"""How a recording is made: items become steps, and bound instructions what they are without data."""

from __future__ import annotations

import copy
from collections.abc import Iterator, MutableSequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.errors import UnsupportedError
from ascend_sim.mailbox import Letter
from ascend_sim.messages import place
from ascend_sim.placement import vector_only
from ascend_sim.recording import Origin, Part, Recording, Region, Scalar, Step, gm_side
from ascend_sim.soft_flags import SoftSet
from ascend_sim.trace import CoreLog, Item, Log, Site
from isa.access import Access
from isa.instruction import Call
from isa.types import CoreKind, Space

if TYPE_CHECKING:
    from ascend_sim.run import Run

_MANY = 1 << 16


def record_run(run: Run) -> Recording:
    """Return what the kernel of a finished run issued.

    Raises UnsupportedError where that depends on what it computed or on the time, and for a run that was cut short.
    """
    if run.origin is None:
        raise UnsupportedError(
            f"{run.op}: the run was cut short, so there is nothing whole to record"
        )
    if run.origin.recording is not None:
        return run.origin.recording
    if run.origin.refusal is not None:
        raise UnsupportedError(run.origin.refusal)
    return record_log(run.op, run.blocks, run.log, run.origin)


def record_log(op: str, blocks: int, log: Log, origin: Origin) -> Recording:
    """Return what a log says that a kernel issued. Raises UnsupportedError as `record_run` does."""
    reader = Reader(origin, log.sites)
    parts = [part for core in log.cores for part in _parts(core, reader)]
    return reader.recording(op, blocks, log.phases, parts)


def _parts(core: CoreLog, reader: Reader) -> Iterator[Part]:
    sub_block = reader.sub_block(core)
    ends = [*core.firsts[1:], len(core.items)]
    for (block, _, _), first, end in zip(core.blocks, core.firsts, ends, strict=True):
        addresses: list[int] = []
        steps = [reader.step(item, addresses) for item in core.items[first:end]]
        yield Part(
            block,
            core.kind,
            sub_block,
            np.array(steps, np.uint32),
            np.array(addresses, np.int64),
        )


class Reader:
    """Turns items into steps, and calls into calls that hold no data."""

    def __init__(self, origin: Origin, sites: list[Site]) -> None:
        self.kernel_type = origin.kernel_type
        self.origin = origin
        self.sites = sites
        self._constants: dict[int, str] = {}  # what was read of each allocation, and where
        self.regions = [
            Region(buffer.name, buffer.nbytes, index) for index, buffer in origin.buffers.items()
        ]
        self.calls: list[Call | Scalar | SoftSet] = []
        self.steps: dict[Step, int] = {}
        self.needs: dict[str, int] = {}
        self._region = dict(zip(origin.buffers, self.regions, strict=True))
        self._known: dict[tuple[int, str | None], tuple[int, Call]] = {}  # by id of a call
        self._alike: dict[Any, int] = {}
        self._quick: dict[tuple[Any, int], int] = {}  # by an item's own step and call
        self._in_gm: dict[int, bool] = {}  # by number of a call

    def sub_block(self, core: CoreLog) -> int:
        """Return which of a block's vector cores one is; 0 where a block has one core."""
        shared = core.kind is CoreKind.AIV and not vector_only(self.kernel_type)
        return int(core.name[-1]) if shared else 0

    def recording(self, op: str, blocks: int, phases: list[str], parts: list[Part]) -> Recording:
        """Return the recording of what was read. Raises UnsupportedError where the kernel reads what it computes."""
        for index, refusal in self._constants.items():
            if index in self.origin.written:
                raise UnsupportedError(refusal)
        return Recording(
            op,
            blocks,
            self.kernel_type,
            list(self.sites),
            list(phases),
            self.regions,
            self.calls,
            list(self.steps),
            parts,
            self.needs,
            dict(self.origin.reserved),
        )

    def step(self, item: Item, addresses: MutableSequence[int]) -> int:
        """Return the number of an item's step; append its GM address to `addresses` if it is a move."""
        call = item.call
        if call is None:
            return self._number(item, -1)
        if isinstance(call, Letter):
            raise UnsupportedError(
                f"messages between cores cannot be recorded: which one comes first is known while the kernel runs "
                f"only{self._at(item)}"
            )
        if isinstance(call, Call):
            number = self._call(call)
            if self._in_gm[number]:
                gm = gm_side(call)
                assert gm is not None
                addresses.append(gm.base)
        elif isinstance(call, SoftSet):
            number = self._alike.setdefault((call.group, call.index), len(self.calls))
            if number == len(self.calls):
                self.calls.append(call)
        else:
            number = self._scalar(item)
        return self._number(item, number)

    def _number(self, item: Item, number: int) -> int:
        key = item.step, number
        known = self._quick.get(key)
        if known is None:
            step = Step(
                item.pipe, item.kind, item.name, item.site, item.phase, item.event, item.event_id, item.flag,
                item.mode, item.cause, item.inserted, number,
            )  # fmt: skip
            if len(self._quick) >= _MANY:  # some items have steps of their own
                self._quick.clear()
            known = self._quick[key] = self.steps.setdefault(step, len(self.steps))
        return known

    def _call(self, call: Call) -> int:
        template = call.template
        known = self._known.get((id(template), call.atomic))
        number = None if known is None else known[0]
        if number is None:
            key = (
                template.name, template.pipe, template.cost, template.work, template.bytes, template.geometry,
                template.extra, template.cache_mode, getattr(template, "unit_flag", 0), _shape_key(template.reads),
                _shape_key(template.writes), call.atomic,
            )  # fmt: skip
            number = self._alike.get(key)
            if number is None:
                number = self._alike[key] = len(self.calls)
                self._in_gm[number] = gm_side(call) is not None
                self.calls.append(self._bare(call))
            self._known[id(template), call.atomic] = number, template
        return number

    def _bare(self, call: Call) -> Call:
        bare = copy.copy(call)
        bare.scratch = None
        bare.instruction = bare.meaning = bare.undefined_for = None  # type: ignore[assignment]
        bare.lint, bare.mask, bare.undefined, bare.template, bare.base = None, None, (), bare, -1
        bare.reads = tuple(self._bare_access(access) for access in call.reads)
        bare.writes = tuple(self._bare_access(access) for access in call.writes)
        return bare

    def _bare_access(self, access: Access) -> Access:
        bare = Access.__new__(Access)
        for name in Access.__slots__:
            setattr(bare, name, getattr(access, name, None))
        bare.owner = bare.ranges_cache = None
        bare.origin = bare
        if access.buffer is not None:
            bare.buffer = self._region[access.buffer.index]  # type: ignore[assignment]
        elif access.space is not Space.GM:
            name = access.space.name
            self.needs[name] = max(self.needs.get(name, 0), access.high)
        return bare

    def _scalar(self, item: Item) -> int:
        call = item.call
        access = call.access
        if call.wanted:
            self._check_constant(item, access)
        elif access is None and call.spent is None:
            raise UnsupportedError(
                f"{call.name} cannot be recorded: what it costs is known while the kernel runs only{self._at(item)}"
            )
        line = None if call.line is None else (self._region[call.line[0].index], call.line[1])
        place = None if access is None else (access.place, access.base, access.dtype)
        key = (call.name, place, call.spent, line, call.action is None)
        number = self._alike.get(key)
        if number is None:
            number = self._alike[key] = len(self.calls)
            bare = None if access is None else self._bare_access(access)
            value = access.view(access.buffer.data)[0].item() if call.wanted else None
            self.calls.append(
                Scalar(
                    call.name, bare, call.spent, line, call.action is not None, call.phase, call.wanted, value,
                    call.text,
                )
            )  # fmt: skip
        return number

    def _check_constant(self, item: Item, access: Access | None) -> None:
        if access is None:
            raise UnsupportedError(
                f"{item.name} makes the kernel depend on the time, so it cannot be recorded: run it live on each "
                f"chip{self._at(item)}"
            )
        refusal = (
            f"{item.name} reads {access.name} in {access.space.name}, which the kernel computes: what it issues "
            f"may depend on data, so it cannot be recorded. Run it live on each chip{self._at(item)}"
        )
        if access.buffer is None:
            raise UnsupportedError(refusal)
        self._constants.setdefault(access.buffer.index, refusal)  # unless it is written somewhere

    def _at(self, item: Item) -> str:
        return f"\n  at {place(self.sites[item.site])}"


def _shape_key(accesses: tuple[Access, ...]) -> tuple[Any, ...]:
    """Return all of some operands but for where in GM they lie."""
    return tuple(
        (
            access.place, access.base if access.space is not Space.GM else -1, access.shape, access.strides,
            access.dtype.name, None if access.lanes is None else access.lanes.tobytes(), access.name,
        )
        for access in accesses
    )  # fmt: skip
