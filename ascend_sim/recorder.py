"""Recording a launch without running it: the kernel's Python issues, and nothing moves.

Also what a launch can be replaced by: with recordings of the same kernel at hand, a replay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascend_sim.core import Core
from ascend_sim.errors import UnsupportedError
from ascend_sim.recording import Origin, Recording, Scalar
from ascend_sim.scalar_call import ScalarCall
from ascend_sim.session import Session
from ascend_sim.tape import Tape
from ascend_sim.trace import Kind
from isa.types import Pipe

if TYPE_CHECKING:
    from ascend_sim.config import Chip
    from ascend_sim.placement import KernelType
    from ascend_sim.program import Program
    from ascend_sim.run import Run
    from ascend_sim.sampled import Estimate
    from ascend_sim.trace import CoreLog
    from isa.tensor import GlobalAddress


@dataclass(slots=True)
class Asked:
    """A launch as it was asked for, bound and checked, not begun."""

    function: Callable[..., Any]
    label: str
    chip: Chip
    blocks: int
    kernel_type: KernelType
    physical_cores: int
    l2: str
    auto_sync: bool
    timing_only: bool
    arguments: list[Callable[[], Any]]
    plain: tuple[Any, ...]
    addresses: dict[str, GlobalAddress]
    library: tuple[Path, ...]

    def body(self, _: int) -> Callable[[], None]:
        """Return the program of a block."""
        return lambda: self.function(*[argument() for argument in self.arguments])

    def signature(self) -> tuple[Any, ...]:
        """Return all that tells two launches apart, but for the chip and what stands in GM."""
        tensors = tuple(
            (name, address.buffer.index, address.buffer.nbytes, address.offset, address.dtype.name)
            for name, address in self.addresses.items()
        )
        return (self.function, self.blocks, self.kernel_type, self.auto_sync, self.plain, tensors)

    def session(self, make: type[Session]) -> Session:
        """Return a machine for this launch, numbers and checks off."""
        return make(
            self.chip,
            blocks=self.blocks,
            physical_cores=self.physical_cores,
            kernel_type=self.kernel_type,
            numerics=False,
            exact=False,
            checks="off",
            auto_sync=self.auto_sync,
            shuffle=None,
            library=self.library,
        )

    def sample(self) -> Estimate:
        """Return what it takes, from a run that leaves out trips of loops. Raises what `sampling.sample` does."""
        from ascend_sim.sampling import sample  # noqa: PLC0415  it reads this class

        return sample(self)

    def record(self) -> Recording:
        """Return what the kernel issues, without running it. Raises what the kernel's Python does."""
        session = self.session(_Session)
        buffers = {address.buffer.index: address.buffer for address in self.addresses.values()}
        origin = Origin(self.kernel_type, buffers, session.written_buffers, session.reserved)
        tape = Tape(origin, session.sites)
        session.spill = lambda core, _: _hand_over(core, tape)
        session.spill_above = _PORTION
        session.run(self.body)
        for core in session.log.cores:
            _hand_over(core, tape)
        recording = tape.recording(self.label, self.blocks, session.log)
        if recording is None:
            raise UnsupportedError(tape.refusal)
        recording.frees = []  # nothing has waited for anything
        return recording


_PORTION = 1 << 12
"""How many items of a core are kept until they are written down."""


def _hand_over(core: CoreLog, tape: Tape) -> None:
    """Write a core's items down, and drop them."""
    tape.take(core, core.spilled, core.items)
    core.spilled += len(core.items)
    core.items.clear()


class _Core(Core):
    """A core on which a program issues to its end and nothing starts."""

    def pump(self) -> None:
        """Run the program; answer what it reads from constants in GM."""
        program: Program | None = self.program
        while self.program is program and program is not None:
            items = self.items
            last = items[-1] if items else None
            value = None
            if (
                last is not None
                and last.pipe is Pipe.S
                and last.kind is Kind.INSTRUCTION
                and isinstance(last.call, ScalarCall)
            ):
                if last.name in ("end", "fault"):
                    items.clear()
                    last.call.action(self)  # type: ignore[misc]
                    return
                if last.call.wanted:
                    value = last.call.action(self)  # type: ignore[misc]
            items.clear()
            self.log.make_room(0)
            program.resume(value)


class _Session(Session):
    core_type = _Core


class Recordings:
    """Recordings of launches, to replay them where the same kernel is launched on another chip.

    Use `launch` as a substitute of launches (`ascend_sim.launch.substitutes`). Runs with numbers or checks are left
    alone. The last `size` recordings are kept.
    """

    def __init__(self, size: int = 2) -> None:
        self._size = size
        self._kept: dict[tuple[Any, ...], Recording | None] = {}

    def launch(self, asked: Asked) -> Run | None:
        """Return the run of a launch, replayed; None where it has to run live."""
        if not asked.timing_only:
            return None
        key = asked.signature()
        recording = self._kept.get(key)
        if recording is not None and not _same_constants(recording, asked):
            recording = None
        elif key in self._kept and recording is None:
            return None
        if recording is None:
            try:
                recording = asked.record()
            except UnsupportedError:
                recording = None
            self._kept.pop(key, None)
            self._kept[key] = recording
            while len(self._kept) > self._size:
                del self._kept[next(iter(self._kept))]
        if recording is None:
            return None
        return recording.replay(asked.chip, l2=asked.l2, physical_cores=asked.physical_cores)


def _same_constants(recording: Recording, asked: Asked) -> bool:
    """Return whether what a recorded kernel has read from GM still stands there."""
    buffers = {address.buffer.index: address.buffer for address in asked.addresses.values()}
    return all(
        call.access is None
        or call.access.view(buffers[call.access.buffer.index].data)[0].item() == call.value  # type: ignore[union-attr]
        for call in recording.calls
        if isinstance(call, Scalar) and call.wanted
    )
