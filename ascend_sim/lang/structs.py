"""Structures that a program fills on the host and passes to a kernel: tiling data.

    class Tiling(Struct):
        total = Field(asc.int32)
        tile = Field(asc.int32, default=128)

    kernel[8](x, y, Tiling(total=1024))

They lie in GM as a C structure does; each core reads its own copy of it through the scalar unit when the kernel
begins, and what the kernel writes into the copy stays there.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ascend_sim.lang.mistakes import mistake
from isa.arguments import check_scalar
from isa.faults import IsaFault
from isa.numerics import is_number
from isa.types import DType

_MISSING = object()


class BaseField:
    """A member of a structure: its default, and the name that it has in C++."""

    def __init__(self, default: Any = _MISSING, name: str | None = None) -> None:
        self.default = default
        self.name = name

    @property
    def has_default(self) -> bool:
        """Whether a structure can be made without this member."""
        return self.default is not _MISSING

    def layout(self) -> np.dtype[Any]:
        """Return how the member lies in memory."""
        raise NotImplementedError

    def value(self, label: str, given: Any) -> Any:
        """Return what is stored for a value; an error for one that the member does not take."""
        raise NotImplementedError


class Field(BaseField):
    """A number: `Field(asc.int32, default=0)`."""

    def __init__(
        self,
        dtype: DType,
        default: Any = _MISSING,
        name: str | None = None,
        enum: str | None = None,
    ) -> None:
        super().__init__(default, name)
        self.dtype = dtype
        self.enum_name = enum

    def layout(self) -> np.dtype[Any]:
        """Return the element type."""
        return self.dtype.numpy

    def value(self, label: str, given: Any) -> Any:
        """Return the number as the element type holds it."""
        if not is_number(given):
            mistake("HOST", "struct-field", f"{label} is a number ({self.dtype}), got {given!r}")
        try:
            return check_scalar(label, given, self.dtype, "the value")
        except IsaFault as error:  # on the host
            mistake("HOST", "struct-field", error.message)


class StructField(BaseField):
    """A structure inside a structure: `StructField(Inner)`."""

    def __init__(
        self, struct_cls: type[Struct], default: Struct | None = None, name: str | None = None
    ) -> None:
        super().__init__(struct_cls() if default is None else default, name)
        self.struct_cls = struct_cls

    def layout(self) -> np.dtype[Any]:
        """Return the inner structure's layout."""
        return self.struct_cls.struct_layout

    def value(self, label: str, given: Any) -> Any:
        """Return the inner structure's data."""
        if not isinstance(given, self.struct_cls):
            mistake(
                "HOST", "struct-field", f"{label} is a {self.struct_cls.__name__}, got {given!r}"
            )
        return given._data[()]


class Struct:
    """A C structure: subclass it with `Field` members; `pack` is the largest alignment of a member, in bytes."""

    __slots__ = ("_data",)

    struct_fields: ClassVar[dict[str, BaseField]] = {}
    struct_layout: ClassVar[np.dtype[Any]]

    def __init_subclass__(cls, pack: int = 8, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.struct_fields = {
            name: field for name, field in vars(cls).items() if isinstance(field, BaseField)
        }
        if not cls.struct_fields:
            mistake("HOST", "struct-field", f"structure {cls.__name__} has no Field")
        cls.struct_layout = _c_layout(cls.struct_fields, pack)
        for name, field in cls.struct_fields.items():
            setattr(cls, name, _Member(name, field))

    def __init__(self, **fields: Any) -> None:
        """Make one of values by name; members that are not named take their defaults."""
        kind = type(self).__name__
        self._data = np.zeros((), self.struct_layout)
        for name in fields:
            if name not in self.struct_fields:
                known = ", ".join(self.struct_fields)
                mistake("HOST", "struct-field", f"{kind} has no member {name!r} (members: {known})")
        for name, field in self.struct_fields.items():
            if name in fields:
                setattr(self, name, fields[name])
            elif field.has_default:
                setattr(self, name, field.default)
            else:
                mistake("HOST", "struct-field", f"{kind}: {name} has no default, give it a value")

    @classmethod
    def get_field(cls, name: str) -> BaseField:
        """Return a member's field by its name."""
        field = cls.struct_fields.get(name)
        if field is None:
            known = ", ".join(cls.struct_fields)
            mistake(
                "HOST", "struct-field", f"{cls.__name__} has no member {name!r} (members: {known})"
            )
        return field

    def pack(self) -> bytes:
        """Return the structure's bytes as C lays them out."""
        return self._data.tobytes()

    def addressof(self) -> int:
        """Return the address of the structure's bytes on the host."""
        return int(self._data.__array_interface__["data"][0])

    def create_local(self) -> Struct:
        """Return a copy."""
        copy = type(self).__new__(type(self))
        copy._data = self._data.copy()
        return copy

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.struct_fields)
        return f"{type(self).__name__}({values})"


class _Member:
    """Reads and writes one member."""

    def __init__(self, name: str, field: BaseField) -> None:
        self.name = name
        self.field = field

    def __get__(self, struct: Struct | None, _: Any = None) -> Any:
        if struct is None:
            return self.field
        part = struct._data[self.name]
        if not isinstance(self.field, StructField):
            return part.item()
        inner = self.field.struct_cls.__new__(self.field.struct_cls)
        inner._data = part  # a view: a change of the inner structure is one of the outer
        return inner

    def __set__(self, struct: Struct, value: Any) -> None:
        label = f"{type(struct).__name__}.{self.name}"
        struct._data[self.name] = self.field.value(label, value)


def _c_layout(fields: dict[str, BaseField], pack: int) -> np.dtype[Any]:
    """Return the layout that C gives: each member on its own alignment, of at most `pack` bytes."""
    formats = [field.layout() for field in fields.values()]
    offsets, end, largest = [], 0, 1
    for layout in formats:
        alignment = min(pack, _alignment(layout))
        largest = max(largest, alignment)
        end = -(-end // alignment) * alignment
        offsets.append(end)
        end += layout.itemsize
    size = -(-end // largest) * largest
    return np.dtype(
        {"names": list(fields), "formats": formats, "offsets": offsets, "itemsize": size},
        align=False,
    )


def _alignment(layout: np.dtype[Any]) -> int:
    if layout.fields is None:
        return layout.itemsize
    return max(_alignment(field[0]) for field in layout.fields.values())
