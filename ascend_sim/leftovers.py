"""Special registers that a kernel leaves changed: what the next kernel on the core finds there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isa.stream import ALL_LANES

if TYPE_CHECKING:
    from ascend_sim.program import Program
    from isa.instruction import Call

_UNTIL = "until a TPipe resets it"
_SHOWN = 4


class Settings:
    """Where a program changed the special registers of its core, and what its stores did under an atomic mode."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._sites: dict[str, int] = {}
        self._stores: dict[tuple[str, int], None] = {}
        self._mask = (ALL_LANES, ALL_LANES)

    def changed(self, what: str) -> None:
        """Take note of the line that changes a register."""
        self._sites[what] = self._program.site(4)
        registers = self._program.registers
        if what == "atomic":
            self._stores = {}
        elif what == "mask":
            self._mask = (registers.mask_low, registers.mask_high)

    def stores(self, call: Call, site: int) -> None:
        """Take note of a store under an atomic mode."""
        if call.atomic is not None:
            self._stores.setdefault((call.writes[0].name, site))

    def left(self) -> Iterator[tuple[str, str, str, int, str]]:
        """Yield kind, code, message, call site and tensor of each setting that outlives the program."""
        registers = self._program.registers
        site = self._sites.get
        if registers.atomic_type is not None:
            tensors = list(self._stores)
            yield (
                "STATE",
                "atomic-left-on",
                f"atomic {registers.atomic_operation} of {registers.atomic_type}{self._at('atomic')} is still on when "
                f"the kernel ends: {self._accumulated()}stores of the next kernel accumulate too, {_UNTIL}. "
                f"set_atomic_none() belongs behind the last store that is to accumulate",
                site("atomic", 0),
                tensors[-1][0] if tensors else "",
            )
        if registers.counter_mode:
            yield (
                "STATE",
                "counter-mode-left-on",
                f"masks still count elements (set_mask_count{self._at('mode')}) when the kernel ends: masks of the "
                f"next one mean something else, {_UNTIL}. End with set_mask_norm()",
                site("mode", 0),
                "",
            )
        mask = (registers.mask_low, registers.mask_high)
        if "mask" in self._sites and mask == self._mask != (ALL_LANES, ALL_LANES):
            yield (
                "STATE",
                "mask-left-narrow",
                f"the vector mask{self._at('mask')} is still {mask[1]:#x}, {mask[0]:#x} (high, low) when the kernel "
                f"ends: vector calls of the next kernel that do not set it skip the other lanes, {_UNTIL}. End "
                f"with reset_mask()",
                site("mask", 0),
                "",
            )
        if registers.hf32:
            yield (
                "STATE",
                "hf32-left-on",
                f"set_hf32_mode(True){self._at('hf32')} is still on when the kernel ends: float32 products of the next "
                f"one round their operands first, {_UNTIL}. End with set_hf32_mode(False)",
                site("hf32", 0),
                "",
            )

    def _at(self, what: str) -> str:
        place = self._sites.get(what)
        return "" if place is None else f", set at {self._program.session.where_text(place)},"

    def _accumulated(self) -> str:
        if not self._stores:
            return ""
        where = self._program.session.where_text
        told = [f"{name} at {where(place)}" for name, place in list(self._stores)[-_SHOWN:]]
        return f"the stores since then accumulate, into {' and '.join(told)}; "
