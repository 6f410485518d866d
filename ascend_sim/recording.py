"""What a kernel issued, without the kernel: recorded once, replayed on other chips.

A recording holds for each block and core the items in program order: which instruction with which operands, which
flag, which barrier. It holds no data, no Python of the kernel and no time. Most items of a kernel repeat
others, so they are numbers of a short table of steps; a move to or from GM has its address beside it.

What a kernel issues must not depend on what it computes or on the time. Values that the host has put in GM and
nobody writes (tiling data) are constants of the recording.
"""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Iterator, MutableSequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ascend_sim.errors import ConfigError, UnsupportedError
from ascend_sim.mailbox import Letter
from ascend_sim.messages import place
from ascend_sim.placement import KernelType, vector_only
from ascend_sim.soft_flags import SoftSet
from ascend_sim.trace import Cause, CoreLog, Item, Kind, Log, Site
from isa.access import Access
from isa.instruction import Call
from isa.types import CoreKind, HardEvent, Pipe, Space

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascend_sim.config import Chip
    from ascend_sim.run import Run
    from isa.tensor import GmBuffer

FORMAT = 1
"""Version of saved recordings."""


@dataclass(slots=True)
class Origin:
    """What a run must remember besides its log so that it can be recorded.

    `buffers` are the GM allocations by number, `written` the numbers of those that the kernel wrote, `reserved` the
    bytes that a TPipe handed out at most, by memory. A replay knows its `recording`, and so does a long run, whose
    items went to disk: it may know the `refusal` instead, why it cannot be recorded.
    """

    kernel_type: KernelType
    buffers: dict[int, GmBuffer]
    written: set[int]
    reserved: dict[str, int]
    recording: Recording | None = None
    refusal: str | None = None


class Region:
    """A GM allocation without its bytes. `scratch` is the memory system's, for one replay."""

    __slots__ = ("index", "name", "nbytes", "scratch")

    def __init__(self, name: str, nbytes: int, index: int) -> None:
        self.name = name
        self.nbytes = nbytes
        self.index = index
        self.scratch: Any = None


class Scalar(NamedTuple):
    """What the scalar unit itself does: an access to one element, or some fixed cycles (see `ScalarCall`).

    `acts` says that it does something when its time has come, in phase `phase` of the cycle; `wanted` that the kernel
    waited for a value, which was `value`.
    """

    name: str
    access: Access | None
    spent: float | str | None
    line: tuple[Region, int] | None
    acts: bool
    phase: int
    wanted: bool
    value: int | float | None
    text: str


class Step(NamedTuple):
    """All that an item is before it gets its times: `call` numbers `Recording.calls`, -1 without one."""

    pipe: Pipe
    kind: Kind
    name: str
    site: int
    phase: int
    event: HardEvent | None
    event_id: int
    flag: int
    mode: int
    cause: Cause
    inserted: bool
    call: int


@dataclass(slots=True)
class Part:
    """What one core did for one block: numbers of steps in program order, GM addresses of the moves among them."""

    block: int
    kind: CoreKind
    sub_block: int
    steps: NDArray[np.uint32]
    addresses: NDArray[np.int64]


@dataclass(slots=True)
class Recording:
    """A recorded kernel. `parts` has one entry for each block and core; `blocks` and the arguments are fixed.

    `needs` says how many bytes of each on-chip memory the kernel uses, `reserved` how many of them its TPipe hands
    out; a chip that has less is refused. `frees` says for each part which sets of a queue's free event were waited for
    (see `ascend_sim.ideals`). One replay of a recording runs at a time.
    """

    op: str
    blocks: int
    kernel_type: KernelType
    sites: list[Site]
    phases: list[str]
    regions: list[Region]
    calls: list[Call | Scalar | SoftSet]
    steps: list[Step]
    parts: list[Part]
    needs: dict[str, int]
    reserved: dict[str, int]
    frees: list[list[tuple[int, int, int]]] = field(default_factory=list)
    places: dict[tuple[int, int], Access] = field(default_factory=dict, repr=False, compare=False)

    @property
    def items(self) -> int:
        """How many items were recorded, on all cores."""
        return sum(len(part.steps) for part in self.parts)

    def replay(
        self,
        chip: str | os.PathLike[str] | Chip = "ascend910b1",
        *,
        l2: str = "cold",
        physical_cores: int | None = None,
    ) -> Run:
        """Return the run of the recorded kernel on a chip: times and reports, no numbers, no findings.

        It equals, to the cycle, a live run there of the same blocks and arguments. `chip` is a name, a path or a
        `Chip`; `l2` "cold" or "warm"; `physical_cores` how many cores there are (the chip's where None).

        Raises ConfigError for a bad option, CapacityError where the kernel does not fit the chip's memories,
        DeadlockError where the number of cores makes the kernel hang.
        """
        from ascend_sim.replayed import replay  # noqa: PLC0415  the machine is loaded when it is needed

        return replay(self, chip, l2=l2, physical_cores=physical_cores)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to a file."""
        with Path(path).open("wb") as stream:
            pickle.dump((FORMAT, replace(self, places={})), stream, protocol=5)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Recording:
        """Read a recording from a file that `save` wrote. Load only files that you trust: they are pickles.

        Raises ConfigError for another kind of file or another version.
        """
        try:
            with Path(path).open("rb") as stream:
                version, recording = pickle.load(stream)
        except OSError as error:
            raise ConfigError(f"cannot read the recording {path}: {error.strerror}") from error
        except Exception as error:  # what pickle and the classes' own code raise
            raise ConfigError(
                f"{path} is no recording, or one of another version of the simulator ({error}): record again"
            ) from error
        if version != FORMAT or not isinstance(recording, Recording):
            raise ConfigError(
                f"{path} is a recording of version {version}, this simulator has version {FORMAT}: record again"
            )
        return recording

    def __repr__(self) -> str:
        return f"<Recording {self.op}: {self.blocks} blocks, {self.items} items in {len(self.steps)} steps>"


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
        self._known: dict[
            tuple[int, str | None], int
        ] = {}  # by id of a call, which the log keeps alive
        self._alike: dict[Any, int] = {}
        self._quick: dict[tuple[Any, ...], int] = {}

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
        number = -1
        if call is not None:
            if isinstance(call, Letter):
                raise UnsupportedError(
                    f"messages between cores cannot be recorded: which one comes first is known while the kernel runs "
                    f"only{self._at(item)}"
                )
            if isinstance(call, Call):
                number = self._call(call)
                gm = gm_side(call)
                if gm is not None:
                    addresses.append(gm.base)
            elif isinstance(call, SoftSet):
                number = self._alike.setdefault((call.group, call.index), len(self.calls))
                if number == len(self.calls):
                    self.calls.append(call)
            else:
                number = self._scalar(item)
        key = (
            item.pipe, item.kind, item.site, item.phase, item.flag, number, item.cause, item.mode,
            item.inserted,
        )  # fmt: skip
        known = self._quick.get(key)
        if known is None:
            step = Step(
                item.pipe, item.kind, item.name, item.site, item.phase, item.event, item.event_id, item.flag,
                item.mode, item.cause, item.inserted, number,
            )  # fmt: skip
            known = self._quick[key] = self.steps.setdefault(step, len(self.steps))
        return known

    def _call(self, call: Call) -> int:
        template = call.template
        number = self._known.get((id(template), call.atomic))
        if number is None:
            key = (
                template.name, template.pipe, template.cost, template.work, template.bytes, template.geometry,
                template.extra, template.cache_mode, getattr(template, "unit_flag", 0), _shape_key(template.reads),
                _shape_key(template.writes), call.atomic,
            )  # fmt: skip
            number = self._alike.get(key)
            if number is None:
                number = self._alike[key] = len(self.calls)
                self.calls.append(self._bare(call))
            self._known[id(template), call.atomic] = number
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


def gm_side(call: Call) -> Access | None:
    """Return the operand of a move that lies in GM, if one does."""
    for access in (*call.writes, *call.reads):
        if access.space is Space.GM:
            return access
    return None


def _shape_key(accesses: tuple[Access, ...]) -> tuple[Any, ...]:
    """Return all of some operands but for where in GM they lie."""
    return tuple(
        (
            access.place, access.base if access.space is not Space.GM else -1, access.shape, access.strides,
            access.dtype.name, None if access.lanes is None else access.lanes.tobytes(), access.name,
        )
        for access in accesses
    )  # fmt: skip
