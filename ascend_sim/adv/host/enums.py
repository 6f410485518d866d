"""Enumerations of the host's tiling interface, with the names that pyasc's `asc.lib.host` has.

They are not those of the kernel language: `asc.lib.host.TPosition.GM` and `asc.TPosition.GM` are two things.
"""

from __future__ import annotations

from enum import Enum, IntEnum


class TPosition(Enum):
    """Where an operand is."""

    GM = 0
    A1 = 1
    A2 = 2
    B1 = 3
    B2 = 4
    C1 = 5
    C2 = 6
    CO1 = 7
    CO2 = 8
    VECIN = 9
    VECOUT = 10
    VECCALC = 11
    LCM = 11
    SPM = 12
    SHM = 12
    TSCM = 13
    MAX = 15


class CubeFormat(IntEnum):
    """How a matrix lies in memory."""

    ND = 1
    NZ = 2
    ZN = 3
    ZZ = 4
    NN = 5
    ND_ALIGN = 6
    SCALAR = 7
    VECTOR = 8
    ROW_MAJOR = 9
    COLUMN_MAJOR = 10


class DataType(IntEnum):
    """Element types, numbered as the graph engine does."""

    DT_FLOAT = 0
    DT_FLOAT16 = 1
    DT_INT8 = 2
    DT_INT32 = 3
    DT_UINT8 = 4
    DT_INT16 = 6
    DT_UINT16 = 7
    DT_UINT32 = 8
    DT_INT64 = 9
    DT_UINT64 = 10
    DT_DOUBLE = 11
    DT_BOOL = 12
    DT_STRING = 13
    DT_COMPLEX64 = 16
    DT_COMPLEX128 = 17
    DT_QINT8 = 18
    DT_QINT16 = 19
    DT_QINT32 = 20
    DT_QUINT8 = 21
    DT_QUINT16 = 22
    DT_STRING_REF = 24
    DT_DUAL = 25
    DT_VARIANT = 26
    DT_BF16 = 27
    DT_BFLOAT16 = 27
    DT_UNDEFINED = 28
    DT_INT4 = 29
    DT_UINT1 = 30
    DT_INT2 = 31
    DT_MAX = 32


class MatrixTraverse(IntEnum):
    """Which way the blocks of C are gone through: as the tiling likes, down M first, or along N first."""

    NOSET = 0
    FIRSTM = 1
    FIRSTN = 2


class MatrixMadType(IntEnum):
    """How float32 is multiplied."""

    NORMAL = 0
    HF32 = 1
    MXMODE = 2


class DequantType(IntEnum):
    """One scale for the whole result, or one for each column."""

    SCALAR = 0
    TENSOR = 1


class ScheduleType(IntEnum):
    """What goes round in the loop of loads into L0."""

    INNER_PRODUCT = 0
    OUTER_PRODUCT = 1
