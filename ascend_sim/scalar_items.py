"""The items of a program that the scalar unit executes itself: accesses to one element, and what a kernel shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from mypy_extensions import mypyc_attr

from ascend_sim import errors
from ascend_sim.agenda import PROGRAM, RETIRE
from ascend_sim.errors import Finding, KernelError
from ascend_sim.flag_items import FlagItems
from ascend_sim.placement import task_ratio
from ascend_sim.scalar_call import ScalarCall, flag_priced, scalar_cost, spending
from isa.access import contiguous
from isa.types import CoreKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ascend_sim.core import Core
    from ascend_sim.session import Session
    from isa.access import Access
    from isa.tensor import GlobalTensor, LocalTensor

Number = Any
"""An int or a float as it is: compiled code would make a float of an int that is annotated as one."""
POLLS: Final = 1024
"""Equal reads of GM in a row after which the others are looked at: whether any of them can still change the value."""
POLL_ITEMS: Final = 8
"""Items of one turn of a loop that polls, at most."""

_NO_BYTES: NDArray[np.uint8] = np.empty(0, np.uint8)  # a register's content lies in no memory


@mypyc_attr(allow_interpreted_subclasses=True)
class ScalarItems(FlagItems):
    """The part of a program that gives the scalar unit work of its own."""

    def __init__(self, session: Session, core: Core, block: int, sub_block: int) -> None:
        super().__init__(session, core, block, sub_block)
        self.polled: tuple[Any, ...] = ()  # the last scalar read of GM: site, place, byte, value
        self.polls = 0  # how often that came again and again
        self._polled_at = 0
        self.polling = False  # whether instructions read words that others may be storing meanwhile

    # ---- accesses ---------------------------------------------------------------------------

    def spend(self, name: str, cycles: Any) -> None:
        """Let the scalar unit work for some cycles: a number, or the name of one in the chip's section `scalar`."""
        self._scalar(ScalarCall(name, spending(cycles), spent=cycles), self.site())

    def load_scalar(
        self,
        tensor: GlobalTensor | LocalTensor,
        access: Access,
        unknown: Number = None,
    ) -> Number:
        """Read one element at the simulated time of the access; `unknown` stands for it with numerics off."""
        site = self.site()
        if self.insert is not None:
            self.insert.around_scalar(access, site, after=False)
        if self.auto is not None:
            self.auto.before_scalar(access, site, write=False)
        guess = None if self.session.numerics else unknown
        if not self.session.numerics and guess is None:
            self._refuse_unknown("get_value", tensor.name, access, site)
        call = ScalarCall(
            "get_value",
            scalar_cost(access),
            lambda core: _load(core, access) if guess is None else guess,
            wanted=True,
            text=f"src:{access.space.name} {access.name}[{access.low}:{access.high}]",
            access=access,
        )
        value = self._scalar(call, site, access)
        if self.insert is not None:
            self.insert.around_scalar(access, site, after=True)
        if access.buffer is not None:
            self._note_poll((site, access.place, access.low, value))
        return value

    def _note_poll(self, what: tuple[Any, ...]) -> None:
        """Count how often a place has read the same value from GM with next to nothing in between."""
        if what == self.polled and self._index - self._polled_at <= POLL_ITEMS:
            self.polls += 1
            if self.polls % POLLS == 0:
                self.session.look_at_polls()
        else:
            self.polls = 0
        self.polled, self._polled_at = what, self._index

    def read_register(self, access: Access) -> Number:
        """Read a special register at the simulated time of the access, at the price of one in UB."""
        site = self.site()
        if not self.session.numerics:
            self._refuse_unknown("the kernel", access.name, access, site)
        call = ScalarCall(
            "get_register",
            scalar_cost(access),
            lambda _: access.view(_NO_BYTES)[0].item(),
            wanted=True,
            text=access.name,
            access=access,
        )
        return self._scalar(call, site, access)

    def _refuse_unknown(self, who: str, name: str, access: Access, site: int) -> None:
        if access.buffer is None or access.buffer.index in self.session.written_buffers:
            raise errors.UnsupportedError(
                f"{who} reads {name}, which the kernel computes: with numerics off there is no value. Run "
                f"with numerics on{self.session.where(site)}"
            )

    def store_scalar(
        self, tensor: GlobalTensor | LocalTensor, access: Access, value: Number
    ) -> None:
        """Write one element at the simulated time of the access."""
        site = self.site()
        if self.insert is not None:
            self.insert.around_scalar(access, site, after=False)
        if self.auto is not None:
            self.auto.before_scalar(access, site, write=True)
        if access.buffer is not None:
            self.session.written_buffers.add(access.buffer.index)

        def store(core: Core) -> None:
            if not core.numerics:
                return
            if access.buffer is not None:
                core.dcache.write(access, value)
            else:
                access.view(core.memories[access.space])[0] = value

        self._scalar(
            ScalarCall(
                "set_value",
                scalar_cost(access),
                store,
                phase=RETIRE,
                text=f"dst:{access.space.name} {access.name}[{access.low}:{access.high}]",
                access=access,
            ),
            site,
            access,
            write=True,
        )
        if self.insert is not None:
            self.insert.around_scalar(access, site, after=True)

    def preload(self, buffer: Any, offset: int) -> None:
        """Bring a line of GM into the data cache; the scalar unit does not wait for it."""

        def fill(core: Core) -> None:
            core.scalar_gm_cycles(buffer, offset)
            if core.numerics:
                core.dcache.fill(buffer, offset)

        if self.order is not None:
            self.order.fill(buffer, offset)
        call = flag_priced("data_cache_preload", fill, text=f"src:GM {buffer.name}+{offset}")
        self._scalar(call, self.site())

    def clean(self, buffer: Any, offset: int) -> None:
        """Write a line of the data cache back and drop it; all of them where there is no buffer."""
        if self.order is not None:
            self.order.clean(buffer, offset)
        call = ScalarCall(
            "data_cache_clean_and_invalid",
            lambda core: core.clean_cycles(buffer, offset),
            lambda core: core.dcache.clean(buffer, offset),
            phase=RETIRE,
            text="all lines" if buffer is None else f"dst:GM {buffer.name}+{offset}",
        )
        call.line = (buffer, offset)
        self._scalar(call, self.site())

    def cycle_counter(self) -> int:
        """Return the cycle at which the scalar unit gets here."""
        call = ScalarCall(
            "get_system_cycle",
            lambda core: core.flag_cost,
            lambda core: core.time,
            phase=PROGRAM,
            wanted=True,
        )
        return int(self._scalar(call, self.site()))

    # ---- what a kernel shows ----------------------------------------------------------------

    def write(self, text: str) -> None:
        """Print text on standard output, with the core's part of the kernel in front of each line."""
        ratio = task_ratio(self.session.kernel_type) if self.core_kind is CoreKind.AIV else 1
        number = self.block * ratio + self.sub_block
        self.session.output.write(f"{self.core_kind.name}-{number}", text)

    def show(self, name: str, text: str, detail: str = "") -> None:
        """Print text when the scalar unit gets here."""
        call = flag_priced(name, lambda _: self.write(text), phase=PROGRAM, text=detail)
        self._scalar(call, self.site())

    def observe(self, name: str, access: Access, tell: Callable[[Any], None]) -> None:
        """Wait until all pipes are empty, then hand an access's values to `tell`."""
        self.pipe_barrier(None)

        def look(core: Core) -> None:
            if core.numerics:
                tell(access.view(core.bytes(access)).copy())
            else:
                self.write(f"{name} {access.name}: there are no values with numerics off\n")

        text = f"src:{access.space.name} {access.name}[{access.low}:{access.high}]"
        self._scalar(flag_priced(name, look, text=text), self.site())

    def mark(self, name: str, detail: str = "") -> None:
        """Leave a mark in the traces."""
        self._scalar(flag_priced(name, text=detail), self.site())

    def stop(self, name: str, kind: str, code: str, message: str) -> None:
        """Stop the kernel when the scalar unit gets here."""
        site = self.site()

        def stop(_: Core) -> None:
            place = self.session.sites[site]
            finding = Finding(
                kind, code, message, place.file, place.line, self.core.name, "S", struck=True
            )
            where = self.session.where_text(site)
            raise KernelError(f"{message}\n  at {where}, {self.core.name}", finding)

        self._scalar(flag_priced(name, stop, phase=PROGRAM, wanted=True), site)

    def look(self, tensor: LocalTensor, tell: Callable[[Any], None]) -> None:
        """Hand the values of a tensor to `tell` when the scalar unit gets here; no time passes, nothing is logged."""
        access = contiguous(tensor, 1)

        def look(core: Core) -> None:
            if core.numerics:
                tell(access.view(core.bytes(access)))

        self._scalar(ScalarCall("look", lambda _: 0, look), log=False)


def _load(core: Core, access: Access) -> Number:
    if access.buffer is None:
        return access.view(core.memories[access.space])[0].item()
    if not core.numerics:
        return access.view(access.buffer.data)[0].item()
    return core.dcache.read(access)
