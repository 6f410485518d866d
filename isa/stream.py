"""Where instructions go: the current stream, and the eager stream that executes them at once.

`isa` functions bind their operands to a `Call` and hand it to the current stream. The simulator's stream
queues it and tells its time; `EagerStream` below runs its meaning immediately and knows no time: it is the
living definition of every instruction, and what the semantics tests run on.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from isa.memories import Memories
from isa.types import CoreKind, HardEvent, Pipe, Space

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from isa.access import Access
    from isa.faults import IsaFault
    from isa.instruction import Call
    from isa.tensor import GlobalTensor, LocalTensor

ALL_LANES = (1 << 64) - 1


class Registers:
    """Special registers of one core that instructions read. Values travel with the instruction at issue."""

    __slots__ = (
        "atomic_operation", "atomic_type", "counter_mode", "deq_scale", "hf32", "hf32_toward_zero", "listener",
        "load_boundary", "load_padding", "load_repeat", "mask_high", "mask_low", "pad_value", "quant_scalar",
        "saturate", "vector",
    )  # fmt: skip

    def __init__(self) -> None:
        self.listener: Callable[[str], None] | None = None  # hears of what a kernel sets itself
        self.saturate = False  # conversions to 16-bit floats have no infinities; no TPipe resets it
        self.reset()

    def reset(self) -> None:
        """Set every register to the value that a TPipe's construction gives it."""
        self.mask_low = ALL_LANES
        self.mask_high = ALL_LANES
        self.counter_mode = False
        self.pad_value: float | None = None  # nothing to rely on before set_pad_value
        self.hf32 = False  # mmad rounds float32 operands first
        self.hf32_toward_zero = False
        self.load_boundary = 0  # of 3D loads, in bytes of L1; 0: none
        self.load_padding: float = 0
        self.load_repeat = (1, 0, 0)  # of 3D loads: times, stride, mode
        self.quant_scalar = 0  # of data_copy out of L0C
        self.deq_scale: Any = None  # of set_deq_scale
        self.atomic_operation = "add"  # of stores into GM; see isa.atomic
        self.atomic_type: Any = None  # None: stores are plain
        self.vector = np.zeros(64, np.uint8)  # what pipe V itself writes: see isa.vector.special

    def changed(self, what: str) -> None:
        """Say that the kernel has set a register: "atomic", "mask", "mode" or "hf32"."""
        if self.listener is not None:
            self.listener(what)

    def key(self) -> tuple[int, int, bool]:
        """Return what an instruction that reads the mask depends on."""
        return (self.mask_low, self.mask_high, self.counter_mode)


class Stream(Protocol):
    """What instructions ask of the place where they run."""

    calls: dict[Any, Call]
    registers: Registers
    core_kind: CoreKind
    has_queues: bool
    own_sync: bool
    """Whether the kernel's flags and barriers count; a compiler's pass may have taken them out."""

    def capacity(self, space: Space) -> int:
        """Return the size of a memory in bytes; 0 where the core has none."""
        ...

    def issue(self, call: Call, depth: int = ...) -> None:
        """Take an instruction; the kernel's frame is `depth` frames above the record of the call site."""
        ...

    def skipped(self, name: str) -> None:
        """Take a vector call on a cube core, where it does nothing."""
        ...

    def set_flag(self, event: HardEvent, event_id: int) -> None:
        """Queue a set in the event's first pipe."""
        ...

    def wait_flag(self, event: HardEvent, event_id: int) -> None:
        """Queue a wait in the event's second pipe."""
        ...

    def pipe_barrier(self, pipe: Pipe | None) -> None:
        """Queue a barrier of one pipe; None waits for all of them."""
        ...

    def load_scalar(
        self,
        tensor: GlobalTensor | LocalTensor,
        access: Access,
        unknown: float | None = None,
    ) -> int | float:
        """Return one element; `unknown`, where given, stands for one that is not computed."""
        ...

    def read_register(self, access: Access) -> int | float:
        """Return the content of a special register."""
        ...

    def store_scalar(
        self, tensor: GlobalTensor | LocalTensor, access: Access, value: float
    ) -> None:
        """Store one element; `value` is of the tensor's type."""
        ...

    def write(self, text: str) -> None:
        """Print text on standard output."""
        ...

    def observe(self, name: str, access: Access, tell: Callable[[Any], None]) -> None:
        """Hand the values of an access to `tell` when all pipes are done."""
        ...

    def fault(self, fault: IsaFault) -> None:
        """Raise a fault with its place in the kernel."""
        ...


current: ContextVar[Any] = ContextVar("ascend_sim_stream")
any_input: ContextVar[bool] = ContextVar("any_input", default=False)
"""Whether calls bound now may get inputs without a specified result: their user selects what it takes of them."""


class EagerStream:
    """Executes each instruction the moment it is called; flags and barriers do nothing.

    `sizes` gives the bytes of each on-chip memory; memories start filled with 0xFF, which reads as NaN in
    every floating type.
    """

    has_queues = False
    own_sync = True

    def __init__(self, sizes: dict[Space, int], core_kind: CoreKind = CoreKind.AIV) -> None:
        self.calls: dict[Any, Call] = {}
        self.registers = Registers()
        self.core_kind = core_kind
        self.memories = Memories(
            {space: np.full(size, 0xFF, np.uint8) for space, size in sizes.items()}
        )
        self.issued: list[Call] = []

    def __enter__(self) -> EagerStream:
        self._token = current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        current.reset(self._token)

    def capacity(self, space: Space) -> int:
        """Return the size of a memory in bytes; 0 where there is none."""
        return self.memories[space].nbytes if space in self.memories else 0

    def data(self, access: Access) -> NDArray[np.uint8]:
        """Return the bytes of the memory that an access touches."""
        return access.buffer.data if access.buffer is not None else self.memories[access.space]

    def issue(self, call: Call, depth: int = 0) -> None:
        """Execute the instruction."""
        registers = self.registers
        if registers.atomic_type is not None:
            from isa.atomic import as_atomic  # noqa: PLC0415  which needs the stream for its faults

            call = as_atomic(call, registers.atomic_operation, registers.atomic_type)
        self.issued.append(call)
        with np.errstate(all="ignore"):
            call.retire(self.memories, call.start(self.memories))

    def skipped(self, name: str) -> None:
        """Do nothing, as the call."""

    def set_flag(self, event: HardEvent, event_id: int) -> None:
        """Do nothing: every earlier instruction has completed."""

    def wait_flag(self, event: HardEvent, event_id: int) -> None:
        """Do nothing: every earlier instruction has completed."""

    def pipe_barrier(self, pipe: Pipe | None) -> None:
        """Do nothing: every earlier instruction has completed."""

    def load_scalar(
        self,
        tensor: GlobalTensor | LocalTensor,
        access: Access,
        unknown: float | None = None,
    ) -> int | float:
        """Return the element."""
        return access.view(self.data(access))[0].item()  # type: ignore[no-any-return]

    def read_register(self, access: Access) -> int | float:
        """Return the register's content."""
        return access.view(self.data(access))[0].item()  # type: ignore[no-any-return]

    def store_scalar(
        self, tensor: GlobalTensor | LocalTensor, access: Access, value: float
    ) -> None:
        """Store the element."""
        access.view(self.data(access))[0] = value

    def write(self, text: str) -> None:
        """Print the text."""
        print(text, end="")

    def observe(self, name: str, access: Access, tell: Callable[[Any], None]) -> None:
        """Hand the values over: every earlier instruction has completed."""
        tell(access.view(self.data(access)).copy())

    def fault(self, fault: IsaFault) -> None:
        """Raise the fault as it is."""
        raise fault
