"""Values that a kernel keeps in its scalar unit: arrays on its stack, shapes, typed numbers, constants."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from ascend_sim.lang.enums import DataFormat
from ascend_sim.lang.mistakes import mistake
from ascend_sim.lang.queues import program
from isa.arguments import check_integer, check_scalar, is_whole
from isa.numerics import is_number
from isa.types import DType, Space, int16, int32

MAX_DIMS = 8
"""Dimensions of a ShapeInfo: K_MAX_SHAPE_DIM."""


class Array:
    """Numbers of one type on the kernel's stack; `asc.array` makes one."""

    __slots__ = ("_values", "dtype")

    def __init__(self, dtype: DType, length: int, values: Sequence[Any] | None) -> None:
        self.dtype = dtype
        self._values: list[Any] = [None] * length
        for index, value in enumerate(values or ()):
            self[index] = value

    @property
    def length(self) -> int:
        """The number of elements."""
        return len(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> int | float:
        value = self._values[self._place(index)]
        if value is None:
            mistake("UNINIT", "uninitialised-read", f"array[{index}] is read before it is set")
        return value  # type: ignore[no-any-return]

    def __setitem__(self, index: int, value: float) -> None:
        number = check_scalar("array", value, self.dtype, f"element {index}")
        self._values[self._place(index)] = number.item()

    def __iter__(self) -> Iterator[int | float]:
        return (self[index] for index in range(len(self._values)))

    def _place(self, index: Any) -> int:
        if not is_whole(index) or not 0 <= index < len(self._values):
            mistake(
                "BOUNDS",
                "array-index",
                f"array[{index!r}]: the array has elements 0 to {len(self._values) - 1}",
            )
        return int(index)

    def __repr__(self) -> str:
        return f"array({self.dtype}, {self._values})"


@overload
def array(dtype: DType, length: int, /, fill_value: float | None = None) -> Array: ...


@overload
def array(dtype: DType, values: Sequence[float], /) -> Array: ...


def array(
    dtype: DType, length_or_values: int | Sequence[float], fill_value: float | None = None
) -> Array:
    """Make an array on the kernel's stack: of a length, filled or not, or of values.

    Reading an element that was never set is UNINIT.
    """
    if not isinstance(dtype, DType) or not dtype.is_numeric():
        mistake(
            "ILLEGAL_PARAM",
            "not-a-dtype",
            f"array needs an element type such as asc.int32, got {dtype!r}",
        )
    if is_whole(length_or_values):
        length = check_integer("array", "length", length_or_values, 1, None)
        return Array(dtype, length, None if fill_value is None else [fill_value] * length)
    if fill_value is not None or not isinstance(length_or_values, (list, tuple, Array)):
        mistake(
            "ILLEGAL_PARAM",
            "form",
            "array takes (dtype, length, fill_value=None) or (dtype, values); got "
            f"{length_or_values!r}"
            + ("" if fill_value is None else f", fill_value={fill_value!r}"),
        )
    return Array(dtype, len(length_or_values), length_or_values)


class ShapeInfo:
    """The shape of a tensor, for `set_shape_info` and `dump_tensor`."""

    __slots__ = ("_original", "_shape", "data_format")

    def __init__(
        self,
        shape: Sequence[int] | Array | None = None,
        original_shape: Sequence[int] | Array | None = None,
        data_format: DataFormat = DataFormat.ND,
    ) -> None:
        self._shape = _dims("shape", shape or ())
        self._original = _dims("original_shape", original_shape or ()) or self._shape
        self.data_format = DataFormat(data_format)

    @property
    def dims(self) -> tuple[int, ...]:
        """The whole shape."""
        return self._shape

    def shape(self, dim: int) -> int:
        """Return one size of the shape."""
        return _dim("shape", self._shape, dim)

    def original_shape(self, dim: int) -> int:
        """Return one size of the original shape (the shape where none was given)."""
        return _dim("original_shape", self._original, dim)

    def __repr__(self) -> str:
        return f"ShapeInfo({list(self._shape)}, {self.data_format.name})"


def _dims(what: str, sizes: Any) -> tuple[int, ...]:
    dims = tuple(check_integer("ShapeInfo", what, size, 0, (1 << 32) - 1) for size in sizes)
    check_integer("ShapeInfo", f"{what}_dimensions", len(dims), 0, MAX_DIMS)
    return dims


def _dim(what: str, dims: tuple[int, ...], dim: Any) -> int:
    if not is_whole(dim) or not 0 <= dim < len(dims):
        mistake(
            "BOUNDS", "shape-dimension", f"{what}({dim!r}): the shape has {len(dims)} dimensions"
        )
    return dims[int(dim)]


def get_shape_size(shape_info: ShapeInfo) -> int:
    """Return the number of elements of a shape."""
    if not isinstance(shape_info, ShapeInfo):
        mistake(
            "ILLEGAL_PARAM",
            "wrong-params",
            f"get_shape_size: expected a ShapeInfo, got {type(shape_info).__name__}",
        )
    return math.prod(shape_info.dims)


def number(value: float, dtype: DType) -> int | float:
    """Return a number as a type holds it: `asc.number(0.1, asc.float16)`."""
    if not is_number(value) or not isinstance(dtype, DType):
        mistake("ILLEGAL_PARAM", "not-a-number", f"number takes a number and a type, got {value!r}")
    return check_scalar("number", value, dtype, "value").item()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Property:
    """A constant of AscendC; `asc.property` gives its value."""

    name: str
    dtype: DType


DEFAULT_C0_SIZE = Property("DEFAULT_C0_SIZE", int32)
ONE_BLK_SIZE = Property("ONE_BLK_SIZE", int16)
TOTAL_L1_SIZE = Property("TOTAL_L1_SIZE", int32)
TOTAL_L0C_SIZE = Property("TOTAL_L0C_SIZE", int32)

_SIZES = {TOTAL_L1_SIZE: Space.L1, TOTAL_L0C_SIZE: Space.L0C}


def property_of(prop: Property) -> int:
    """Return the value of a constant of AscendC: a size in bytes."""
    if not isinstance(prop, Property):
        mistake(
            "ILLEGAL_PARAM",
            "wrong-params",
            f"property takes DEFAULT_C0_SIZE, ONE_BLK_SIZE, TOTAL_L1_SIZE or TOTAL_L0C_SIZE, got {prop!r}",
        )
    space = _SIZES.get(prop)
    return 32 if space is None else program().session.chip.memories[space.name].bytes


def static_assert(test: Any, message: str | None = None) -> None:
    """Stop where a condition that is known beforehand does not hold."""
    if not test:
        mistake(
            "ILLEGAL_PARAM", "static-assert", message or "static_assert: the condition is false"
        )
