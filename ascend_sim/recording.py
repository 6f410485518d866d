"""What a kernel issued, without the kernel: recorded once, replayed on other chips.

A recording holds for each block and core the items in program order: which instruction with which operands, which
flag, which barrier. It holds no data, no Python of the kernel and no time. Most items of a kernel repeat
others, so they are numbers of a short table of steps; a move to or from GM has its address beside it.

What a kernel issues must not depend on what it computes or on the time. Values that the host has put in GM and
nobody writes (tiling data) are constants of the recording.
"""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ascend_sim.errors import ConfigError
from ascend_sim.placement import KernelType
from ascend_sim.soft_flags import SoftSet
from ascend_sim.trace import Cause, Kind, Site
from isa.access import Access
from isa.instruction import Call
from isa.types import CoreKind, HardEvent, Pipe, Space

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ascend_sim.config import Chip
    from ascend_sim.run import Run
    from isa.tensor import GmBuffer

FORMAT = 2
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
        `Chip`; `l2` "cold", "warm" or "dirty"; `physical_cores` how many cores there are (the chip's where None).

        Raises ConfigError for a bad option, CapacityError where the kernel does not fit the chip's memories,
        DeadlockError where the number of cores makes the kernel hang.
        """
        from ascend_sim.replayed import replay  # noqa: PLC0415  the machine is loaded when it is needed

        return replay(self, chip, l2=l2, physical_cores=physical_cores)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to a file."""
        with Path(path).open("wb") as stream:
            pickle.dump((FORMAT, self), stream, protocol=5)

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


def gm_side(call: Call) -> Access | None:
    """Return the operand of a move that lies in GM, if one does."""
    for access in (*call.writes, *call.reads):
        if access.space is Space.GM:
            return access
    return None
