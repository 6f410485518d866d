"""pyasc's `asc.language.core.dtype`: element types by more names."""

from isa.types import (
    DType as DataType,
)
from isa.types import (
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)

bool_ = int8
int_ = int32
half = float16
float_ = float32
double = float64


class KnownTypes:
    """The element types as attributes."""

    void = void
    int8 = int8
    int16 = int16
    int32 = int32
    int64 = int64
    float16 = float16
    float32 = float32
    float64 = float64
    uint8 = uint8
    uint16 = uint16
    uint32 = uint32
    uint64 = uint64
    bool_ = int8
    int_ = int32
    half = float16
    float_ = float32
    double = float64


__all__ = [
    "DataType",
    "KnownTypes",
    "bool_",
    "double",
    "float16",
    "float32",
    "float64",
    "float_",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "void",
]  # fmt: skip
