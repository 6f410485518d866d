"""Matmul objects in a mix kernel: vector cores command, their cube core serves.

- A command is one message (`ascend_sim.mailbox`): the vector core's scalar unit writes it, the cube core's reads it.
- The cube core says by cross-core flag 15 that it listens; `register_matmul` on a vector core waits for that.
- Where a vector core has to know that results are in GM, the cube core answers by a flag that its FIX pipe sets.
- Operands in UB go to the workspace first (MTE3), results for UB come from there (MTE2): the 910B has no other way.
- The cube core serves its vector cores in the order of their messages. Between `iterate` and the fetch of its block it
  serves one of them only. When their kernels have ended, its own ends inside `register_matmul`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_sim.adv.commands import Command, Finish
from ascend_sim.cross_core import ANSWERS, CUBE_READY
from ascend_sim.mailbox import answer, post, receive
from ascend_sim.program import KernelReturns
from isa.faults import fault
from isa.layout import round_up
from isa.move import data_copy
from isa.params import DataCopyParams
from isa.tensor import GlobalAddress, GlobalTensor, GmBuffer, LocalTensor
from isa.types import BLOCK_BYTES, DType, HardEvent, Pipe

if TYPE_CHECKING:
    from ascend_sim.adv.cube import CubeUnit
    from ascend_sim.program import Program

_E = HardEvent
_LINE = 512


def serve(stream: Program, unit: CubeUnit) -> None:
    """Do what the vector cores of this AI Core ask for, until their kernels end; then end this one's."""
    cross = stream.session.cross
    awake = {core.index for core in cross.vector_cores(stream.core)}
    stream.cross_set(CUBE_READY, 2, Pipe.MTE3)
    client: int | None = None
    while awake:
        busy = client is not None and not unit.stored
        letter = receive(stream, frozenset((client,)) if busy and client is not None else None)
        client = letter.core
        command, reply, pipe, site = letter.call.content
        stream.borrow_site(site)
        if command is None:
            awake.discard(client)
            unit.stored = True
        else:
            command.run(unit)
        if reply is not None:
            answer(stream, client, reply, pipe)
        stream.borrow_site(None)
    unit.close()
    raise KernelReturns


class MessageLink:
    """The vector core's end: commands as messages, and its part of the workspace."""

    on_cube_core = False

    def __init__(self, stream: Program, workspace: GlobalAddress, number: int) -> None:
        self._stream = stream
        self._cube = stream.session.cross.cube_core(stream.core)
        self._answers = (ANSWERS + 2 * number, ANSWERS + 2 * number + 1)
        self._workspace = Workspace.of(stream, workspace)
        self._lent: set[str] = set()
        self._reading: int | None = None

    # ---- commands -----------------------------------------------------------------------------

    def _post(self, command: Command | None, answer: int | None, pipe: Pipe = Pipe.FIX) -> None:
        self._let_read()
        text = command.text() if command is not None else "quit"
        content = (command, answer, pipe, self._stream.site())
        post(self._stream, self._cube, content, text)

    def send(self, command: Command, *, wait: bool) -> None:
        """Have a command done; with `wait`, go on only when its results are in GM."""
        self._post(command, self._answers[0] if wait else None)
        if wait:
            self._stream.cross_wait(self._answers[0])

    def promise(self, command: Command) -> None:
        """Have a command done; `wait` follows later."""
        self._post(command, self._answers[1])

    def wait(self) -> None:
        """Wait for what `promise` sent."""
        self._stream.cross_wait(self._answers[1])

    def quit(self) -> None:
        """Say that this core's kernel has ended."""
        self._post(None, None)

    # ---- operands and results in UB ---------------------------------------------------------------

    def area(self, name: str, dtype: DType, count: int) -> GlobalTensor:
        """Return room for `count` elements in the workspace."""
        return self._workspace.area(name, dtype, count)

    def lend(self, tensor: LocalTensor, count: int, area: str) -> GlobalTensor:
        """Copy `count` elements of a tensor in UB to the workspace, for the cube core to read."""
        stream = self._stream
        if area in self._lent:  # the cube core may still be reading what was lent before
            self._post(Finish(), self._answers[0], Pipe.MTE2)
            stream.cross_wait(self._answers[0])
        target = self.area(area, tensor.dtype, count)
        self._flag(_E.V_MTE3)
        per = BLOCK_BYTES // tensor.dtype.size
        data_copy(target, tensor, round_up(count, per))
        self._flag(_E.MTE3_S)
        self._lent.add(area)
        return target

    def fetch(
        self, target: LocalTensor, source: GlobalTensor, rows: int, columns: int, pitch: int
    ) -> None:
        """Copy rows of a result from the workspace to UB, one behind another; they are whole data blocks."""
        self._let_read()
        size = target.dtype.size
        self._flag(_E.V_MTE2)
        length, gap = columns * size // BLOCK_BYTES, (pitch - columns) * size // BLOCK_BYTES
        data_copy(target, source, DataCopyParams(rows, length, gap, 0))
        self._reading = self._stream.take_event(_E.MTE2_S, "matmul")
        self._stream.set_flag(_E.MTE2_S, self._reading, site=self._stream.site())

    def fetched(self) -> None:
        """Let the vector pipe wait for what has been fetched."""
        self._flag(_E.MTE2_V)

    def _let_read(self) -> None:
        """Let the scalar unit wait until what has been fetched is out of the workspace."""
        if self._reading is None:
            return
        self._stream.wait_flag(_E.MTE2_S, self._reading, site=self._stream.site())
        self._stream.release_event(_E.MTE2_S, self._reading)
        self._reading = None

    def _flag(self, event: HardEvent) -> None:
        """Let an event's second pipe wait for all that its first one has to do."""
        stream = self._stream
        number = stream.take_event(event, "matmul")
        site = stream.site()
        stream.set_flag(event, number, site=site)
        stream.wait_flag(event, number, site=site)
        stream.release_event(event, number)


class Workspace:
    """One vector core's part of the GM that register_matmul is given."""

    def __init__(
        self, address: GlobalAddress, first: int, size: int, total: int, parts: int
    ) -> None:
        self._address = address
        self._first, self._size = first, size
        self._total, self._parts = total, parts
        self._used = _LINE  # the line of its messages
        self._areas: dict[str, tuple[int, int]] = {}

    @classmethod
    def of(cls, stream: Program, address: Any) -> Workspace:
        """Return the running core's part of a workspace, the same for all objects of a kernel."""
        known = stream.libraries.get("matmul workspace")
        if known is not None:
            return known  # type: ignore[no-any-return]
        if isinstance(address, GlobalTensor):
            address = address.get_phy_addr()
        if not isinstance(address, GlobalAddress):
            fault(
                "ILLEGAL_PARAM",
                "matmul-register",
                f"register_matmul: workspace must be GM (a tensor argument of the kernel), got {address!r}",
            )
        session = stream.session
        ratio = len(session.cross.vector_cores(stream.core))
        parts = session.blocks * ratio
        total = address.origin + address.length - address.offset
        size = total // parts // _LINE * _LINE
        number = stream.block * ratio + stream.sub_block
        made = cls(address, address.offset + number * size, size, total, parts)
        stream.libraries["matmul workspace"] = made
        return made

    def area(self, name: str, dtype: DType, count: int) -> GlobalTensor:
        """Return room for `count` elements; the same room again for the same name, if it is long enough."""
        length = round_up(count * dtype.size, _LINE)
        place = self._areas.get(name)
        if place is None or place[1] < length:
            if self._used + length > self._size:
                need = (self._used + length) * self._parts
                fault(
                    "CAPACITY",
                    "matmul-workspace",
                    f"register_matmul: the workspace has {self._total} bytes, {self._size} for each of {self._parts} "
                    f"vector cores; {name} takes {length} more than the {self._used} in use. Pass at least {need} "
                    f"bytes (the vendor's platform asks for 16 MiB)",
                )
            place = self._areas[name] = (self._used, length)
            self._used += length
        buffer: GmBuffer = self._address.buffer
        tensor = GlobalTensor()
        start = self._first + place[0]
        start = round_up(start, dtype.size)
        tensor.set_global_buffer(GlobalAddress(buffer, dtype, start, length), count)
        return tensor
