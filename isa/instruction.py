"""The record of an instruction, the registry of all of them, and a bound call.

An `Instruction` says what exists: name, pipe, types, price class. A `Call` is one use of it with operands bound
and checked: which bytes it reads and writes, how much work it is, what it means. A `Call` knows no time; the
simulator may issue it many times.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isa.types import CacheMode, DType, Pipe, Space

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isa.access import Access
    from isa.memories import Memories

COMBINE = {"add": np.add, "max": np.maximum, "min": np.minimum}
"""What an atomic store does with what stands in GM and what arrives."""


@dataclass(frozen=True, eq=False, slots=True)
class Instruction:
    """One instruction of the 910B.

    `pipe` is None where it depends on the operands. `cost` names the price class in the chip file. `dtypes` are
    the element types that the hardware takes (sources and destination alike, but for `widening`, the (source,
    destination) pairs taken besides). `meaning` maps the sources' values to the destination's. `accumulates`
    says that dst may be a source too, `folds` for which types all repeats may gather in one block of dst.
    `undefined` tells from the sources' values for which lanes the hardware's result is not specified, None where
    every input has a result; `caution` is a word on the hardware's precision, "" where there is none to say.
    """

    name: str
    pipe: Pipe | None
    cost: str
    dtypes: tuple[DType, ...]
    meaning: Callable[..., Any]
    forms: str
    accumulates: bool = False
    folds: tuple[DType, ...] = ()
    widening: tuple[tuple[DType, DType], ...] = ()
    undefined: Callable[..., Any] | None = None
    caution: str = ""

    @property
    def doc(self) -> str:
        """What the instruction does: the meaning's docstring."""
        return inspect.cleandoc(self.meaning.__doc__ or "")


REGISTRY: dict[str, Instruction] = {}
"""Every instruction by name. Registering a name twice is an error."""


def register(instruction: Instruction) -> Instruction:
    """Add an instruction to the registry and return it. Raises `ValueError` for a name already taken."""
    if instruction.name in REGISTRY:
        raise ValueError(f"instruction {instruction.name!r} is registered twice")
    REGISTRY[instruction.name] = instruction
    return instruction


class Call:
    """One instruction with its operands bound.

    `reads` and `writes` are the bytes; `work` counts repeats (V) or fractal cycles (M), `bytes` the payload of a
    move; `geometry` lists for each vector operand (is a write, address, block stride, repeat stride, blocks),
    in bytes; `cost` is the price class and the type it is looked up with; `mask` the (low, high) words that the
    instruction leaves in the vector mask register, None where it does not touch it.
    """

    __slots__ = (
        "atomic", "base", "bytes", "cache_mode", "cost", "extra", "geometry", "instruction", "lint", "mask", "meaning",
        "name", "pipe", "reads", "scratch", "template", "undefined", "undefined_for", "work", "writes",
    )  # fmt: skip

    unit_flag = 0  # of the cube's fine-grained handshake: off

    def __init__(
        self,
        instruction: Instruction,
        pipe: Pipe,
        reads: tuple[Access, ...],
        writes: tuple[Access, ...],
        meaning: Callable[..., Any],
        *,
        work: int = 0,
        payload: int = 0,
        cost: tuple[str, str] | None = None,
        geometry: tuple[tuple[bool, int, int, int, int], ...] = (),
        extra: str = "",
    ) -> None:
        self.instruction = instruction
        self.name = instruction.name
        self.pipe = pipe
        self.reads = reads
        self.writes = writes
        self.meaning = meaning
        self.work = work
        self.bytes = payload
        self.cost = cost or (instruction.cost, "any")
        self.geometry = geometry
        self.extra = extra
        self.cache_mode = CacheMode.CACHE_MODE_NORMAL
        self.lint: tuple[str, str, str] | None = None  # (kind, code, message): hardly meant
        self.atomic: str | None = None  # of a store into GM that combines: "add", "max", "min"
        self.undefined: tuple[Access, ...] = ()  # bytes written with values that must not be used
        self.mask: tuple[int, int] | None = None
        self.base = -1  # of a move that repeats another one: where its GM side begins
        self.template = self  # the call that this one repeats at another GM address
        self.undefined_for = instruction.undefined  # which inputs to look out for
        self.scratch: Any = None  # room for whoever issues the call

    def at(self, base: int, *, write: bool) -> Call:
        """Return the same move with its GM side, the destination where `write`, at byte `base`."""
        call: MovedCall = MovedCall.__new__(MovedCall)
        call.template = self.template
        call.atomic = None
        call.base = base
        call.stores = write
        return call

    @property
    def touches_gm(self) -> bool:
        """Whether a side of the move is in GM."""
        reads = self.reads
        return self.writes[0].buffer is not None or (bool(reads) and reads[0].buffer is not None)

    def start(self, memories: Memories) -> Any:
        """Read the sources and return what `retire` will write (nothing of it aliases a memory)."""
        if not self.writes:
            return None
        return self.meaning(*map(memories.view, self.reads))

    def undefined_inputs(self, memories: Memories) -> list[Any]:
        """Return the values, of lanes that take part, for which the hardware's result is not specified."""
        outside = self.undefined_for
        if outside is None:
            return []
        sources = [memories.view(access) for access in self.reads]
        found = outside(*sources)
        lanes = self.writes[0].lanes
        if lanes is not None:
            found = found & lanes
        return list(sources[-1][found]) if found.any() else []

    def retire(self, memories: Memories, result: Any) -> None:
        """Write the result to the destination."""
        if not self.writes:
            return
        access = self.writes[0]
        view = memories.view(access)
        if isinstance(result, np.ndarray) and result.ndim and result.shape != view.shape:
            result = result.reshape(view.shape)
        if self.atomic is not None:
            result = COMBINE[self.atomic](view, result)
        if access.layered:
            _write_in_order(view, result, access.lanes)
        elif access.lanes is None:
            view[...] = result
        else:
            np.copyto(view, result, where=access.lanes)

    def detail(self) -> str:
        """Describe the operands for traces: "dst:UB+0x0 z, src:GM x[0:4096]"."""
        parts = [f"dst:{_place(access)}" for access in self.writes]
        parts += [f"src:{_place(access)}" for access in self.reads]
        if self.bytes:
            parts.append(f"len:{self.bytes}")
        elif self.work:
            parts.append(f"repeat:{self.work}")
        if self.extra:
            parts.append(self.extra)
        return ",".join(parts)

    def __repr__(self) -> str:
        return f"<{self.name} {self.detail()}>"


class MovedCall(Call):
    """A move that repeats another one, `template`, at another place in GM.

    Loops make one of these every trip, so it copies what it shares with its template only when somebody asks.
    """

    __slots__ = ("stores",)

    stores: bool

    def bind(self) -> None:
        """Make the operands; done when somebody asks for them, if it has not been done before."""
        template = self.template
        self.reads, self.writes = template.reads, template.writes
        if self.stores:
            self.writes = (template.writes[0].moved(self.base),)
        else:
            self.reads = (template.reads[0].moved(self.base), *template.reads[1:])

    def __getattr__(self, name: str) -> Any:
        if name == "template" or name.startswith("__"):
            raise AttributeError(name)
        if name in ("reads", "writes"):
            self.bind()
        else:
            setattr(self, name, getattr(self.template, name))
        return getattr(self, name)


def _write_in_order(view: NDArray[Any], result: Any, lanes: NDArray[np.bool_] | None) -> None:
    """Write repeat by repeat where repeats share bytes: the later one stays, which numpy does not promise."""
    rows = np.broadcast_to(result, view.shape)
    for row in range(len(view)):
        where = True if lanes is None else lanes[row] if lanes.ndim == view.ndim else lanes
        np.copyto(view[row], rows[row], where=where)


def _place(access: Access) -> str:
    if access.space is Space.GM:
        return f"GM {access.name}[{access.low}:{access.high}]"
    if access.low < 0:  # a special register
        return access.name
    return f"{access.space.name}+{access.low:#x} {access.name}"
