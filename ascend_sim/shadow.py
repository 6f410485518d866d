"""The same launch in float32, in step with the machine: where do 16-bit types depart from it by more than rounding?

Every floating element of every memory has a second value that was never rounded to 16 bits. An instruction's meaning is
evaluated a second time on those values. A result departs where it is further from its second value than `UNITS`
roundings of the largest number that the instruction made; that departure then belongs to all that is made of it, until
something is made that does not depart. A second value holds only as long as the bytes that it stands for are in place:
what nobody watches (stores of the scalar unit, copies under another type) ends it, so that nothing is told of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isa.cube_params import QuantModes
from isa.instruction import COMBINE, Call
from isa.quantise import Conversion
from isa.types import bfloat16, float16, float32

if TYPE_CHECKING:
    from ascend_sim.trace import Item
    from isa.access import Access

Array = np.ndarray[Any, Any]
UNITS = 8
"""Roundings of the largest number of a result that an element may be off."""
_KINDS = {float16: 1, bfloat16: 2, float32: 3}
_BITS = {float16: 11, bfloat16: 8, float32: 24}
_WHOLE = {2: np.uint16, 4: np.uint32}
_TO_HALF = (QuantModes.F322F16, QuantModes.F322BF16)


@dataclass(slots=True)
class Departure:
    """A result that departs though nothing that it was made of does.

    `element` is the one that is furthest off, `made` and `wanted` what it is and would be in float32, `largest` the
    largest number of the result and `scale` that of the operands; `count` elements of `size` depart.
    """

    number: int
    item: Item
    element: int
    made: float
    wanted: float
    largest: float
    scale: float
    count: int
    size: int
    made_of: tuple[int, ...] = ()
    """Numbers in `Lineage` of the instructions that wrote what it read."""


class _Cells:
    """Second values of one memory: an entry for each 16 bits, that of a wider element in its first one."""

    def __init__(self, size: int) -> None:
        cells = (size + 1) // 2
        self.seen = np.zeros(size, np.uint8)  # the bytes that a second value stands for
        self.value = np.zeros(cells, np.float32)
        self.kind = np.zeros(cells, np.uint8)
        self.bits = np.zeros(cells, np.uint8)  # of the coarsest type on the way here
        self.cause = np.zeros(cells, np.int32)  # the departure that it belongs to

    def view(self, name: str, access: Access) -> Array:
        """Return the entries of an access's elements."""
        array: Array = getattr(self, name)
        size = array.itemsize
        strides = tuple(stride // 2 * size for stride in access.strides)
        return np.ndarray(access.shape, array.dtype, array, access.base // 2 * size, strides)

    def stands(self, access: Access, data: Array) -> Array:
        """Return which elements of an access have a second value."""
        whole = _WHOLE[access.dtype.size]
        there = access.view(self.seen).view(whole) == access.view(data).view(whole)
        known: Array = there & (self.view("kind", access) == _KINDS[access.dtype])
        return known


@dataclass(slots=True)
class Before:
    """What an instruction read: the values, their second values, the coarsest type behind them, their departure."""

    values: list[Array]
    second: list[Array]
    bits: int
    cause: int


class Shadow:
    """The second values of a launch. `departures` are in the order in which they came."""

    def __init__(self) -> None:
        self.departures: list[Departure] = []
        self._memories: dict[Any, _Cells] = {}

    def _cells(self, core: int, access: Access, data: Array) -> _Cells:
        key = access.buffer.index if access.buffer is not None else (core, access.space)
        cells = self._memories.get(key)
        if cells is None:
            cells = self._memories[key] = _Cells(data.nbytes)
        return cells

    def read(self, core: int, accesses: tuple[Access, ...], memories: Any) -> Before:
        """Return what the operands hold, before the instruction has done anything."""
        found = Before([], [], 24, 0)
        for access in accesses:
            data = memories(access)
            values = np.array(access.view(data))
            found.values.append(values)
            if not _is_watched(access):
                found.second.append(values)
                continue
            cells = self._cells(core, access, data)
            with np.errstate(all="ignore"):
                second = values.astype(np.float32)
            known = cells.stands(access, data)
            if access.lanes is not None:
                known &= access.lanes
            if known.any():
                np.copyto(second, cells.view("value", access), where=known)
                found.bits = min(found.bits, int(cells.view("bits", access)[known].min()))
                causes = cells.view("cause", access)[known]
                causes = causes[causes > 0]
                if causes.size:
                    first = int(causes.min())
                    found.cause = min(found.cause or first, first)
            found.second.append(second)
        return found

    def write(self, item: Item, before: Before, memories: Any) -> None:
        """Take an instruction's result, which stands in memory now, and see whether it departs."""
        call = item.call
        if type(call).retire is not Call.retire:
            return
        for access in call.writes[:1]:
            if not _is_watched(access):
                continue
            data = memories(access)
            second = _second(call, before, access.shape)
            if second is None:
                continue
            self._keep(item, access, data, before, second)

    def _keep(self, item: Item, access: Access, data: Array, before: Before, second: Array) -> None:
        cells = self._cells(item.core, access, data)
        value = cells.view("value", access)
        if item.call.atomic is not None:
            known = cells.stands(access, data)
            if not known.all():
                return  # what stood there is known by its rounded value alone, and is gone
            second = COMBINE[item.call.atomic](value, second)
        bits = min(before.bits, _BITS[access.dtype])
        made = np.array(access.view(data)).astype(np.float32)
        lanes: Any = True if access.lanes is None else access.lanes
        departs = _departs(made, second, bits) & lanes
        cause = 0
        if departs.any():
            cause = before.cause or self._note(item, before, made, second, departs)
        np.copyto(value, second, where=lanes)
        np.copyto(cells.view("kind", access), _KINDS[access.dtype], where=lanes)
        np.copyto(cells.view("bits", access), bits, where=lanes)
        np.copyto(cells.view("cause", access), np.where(departs, cause, 0), where=lanes)
        whole = _WHOLE[access.dtype.size]
        np.copyto(access.view(cells.seen).view(whole), access.view(data).view(whole), where=lanes)

    def _note(self, item: Item, before: Before, made: Array, second: Array, departs: Array) -> int:
        with np.errstate(all="ignore"):
            off = np.where(departs, np.abs(made.astype(np.float64) - second), -1.0).reshape(-1)
        off[np.isnan(off)] = np.inf
        element = int(np.argmax(off))
        operands = [one for one in before.second if one.dtype == np.float32]
        number = len(self.departures) + 1
        self.departures.append(
            Departure(
                number, item, element, float(made.reshape(-1)[element]),
                float(second.reshape(-1)[element]), _largest(second),
                max(map(_largest, operands), default=0.0), int(departs.sum()), made.size,
            )
        )  # fmt: skip
        return number

    def in_the_end(self, access: Access, data: Array) -> tuple[Array, Array] | None:
        """Return the second values of elements in GM, NaN where there are none, and their departures (0: none).

        None where nothing is known.
        """
        assert access.buffer is not None
        cells = self._memories.get(access.buffer.index)
        if cells is None or not _is_watched(access):
            return None
        known = cells.stands(access, data)
        return (
            np.where(known, cells.view("value", access), np.nan),
            np.where(known, cells.view("cause", access), 0),
        )


def _is_watched(access: Access) -> bool:
    """Return whether an operand's elements can have second values: floats that lie on even bytes."""
    return (
        access.dtype in _KINDS
        and access.low >= 0
        and access.base % 2 == 0
        and all(stride % 2 == 0 for stride in access.strides)
    )


def _second(call: Call, before: Before, shape: tuple[int, ...]) -> Array | None:
    """Return what an instruction makes of second values, in the shape of its result; None where it takes none."""
    if call.name == "cast" and before.second[0].dtype == np.float32:
        same = before.second[0]
        narrows = call.writes[0].dtype is not float32 or call.reads[0].dtype is not float32
        if narrows and same.size == int(np.prod(shape)):
            return same.reshape(shape)
    meaning = call.meaning
    if isinstance(meaning, Conversion) and meaning.mode in _TO_HALF:
        meaning = Conversion(
            QuantModes.NoQuant,
            float32,
            meaning.relu,
            meaning.scalar,
            meaning.columns,
            meaning.width,
        )
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(meaning(*before.second))
            if result.dtype.kind in "iub" and result.dtype != np.float32:
                return None
            wide = result.astype(np.float32)
            if wide.ndim and wide.shape != shape:
                wide = wide.reshape(shape)
            return np.broadcast_to(wide, shape)
    except (TypeError, ValueError, IndexError):  # a meaning that is for its own types only
        return None


def _departs(made: Array, second: Array, bits: int) -> Array:
    """Return which elements are further off than roundings to so many bits explain, or are no numbers any more."""
    finite = np.isfinite(second)
    with np.errstate(all="ignore"):
        off = np.abs(made.astype(np.float64) - second)
        limit = UNITS * 2.0**-bits * _largest(second)
        departs: Array = finite & ((off > limit) | ~np.isfinite(made))
    return departs


def _largest(values: Array) -> float:
    """Return the largest finite magnitude."""
    finite = np.isfinite(values)
    return float(np.abs(values[finite]).max()) if finite.any() else 0.0
