"""Types, memory spaces, pipes and events of the Ascend AI Core (NPU architecture 2201).

This module knows names and sizes only. It does not know any instruction, any data and any time.
Names follow AscendC and its Python spelling `pyasc`; the numeric values of the enumerations are pyasc's.
"""

from __future__ import annotations

from enum import Enum, IntEnum

import ml_dtypes
import numpy as np

BLOCK_BYTES = 32
"""One data block of UB and L1: the unit of block strides and of alignment."""
REPEAT_BYTES = 256
"""What one repeat of a vector instruction covers: eight data blocks of the widest operand type."""
BLOCKS_PER_REPEAT = REPEAT_BYTES // BLOCK_BYTES


class DType:
    """A storage type of the machine: one object a type, `DType("float16")` is `float16`.

    `name` is numpy's name (`bfloat16` is `ml_dtypes.bfloat16`), `size` is in bytes. `kind` and `bitwidth` are pyasc's.
    Raises a fault for a name that no storage type of the machine has.
    """

    class Kind(Enum):
        """What a type's values are; pyasc's letters."""

        Any = ""
        Int = "int"
        Float = "float"
        UInt = "uint"

    __slots__ = ("bitwidth", "kind", "name", "numpy", "size")
    name: str
    size: int
    numpy: np.dtype
    kind: DType.Kind
    bitwidth: int | None

    def __new__(cls, name: str) -> DType:
        """Return the type of that name."""
        known = _BY_NAME.get(name) if isinstance(name, str) else None
        if known is None:
            from isa.faults import fault  # noqa: PLC0415  faults import the stream, which imports types

            fault(
                "ILLEGAL_PARAM",
                "not-a-dtype",
                f"the machine has no element type {name!r} (types: {', '.join(_BY_NAME)})",
            )
        return known

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an element type does not change: {self.name}.{name}")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"asc.{self.name}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (dtype_named, (self.name,))

    def sizeof(self) -> int:
        """Return the size of one element in bytes (pyasc's spelling of `size`)."""
        return self.size

    def is_int(self) -> bool:
        """Return whether the type is an integer type, signed or not."""
        return self.kind is _INT or self.kind is _UINT

    def is_float(self) -> bool:
        """Return whether the type is a floating type."""
        return self.kind is _FLOAT

    def is_numeric(self) -> bool:
        """Return whether the type has numbers: all but void."""
        return self.bitwidth is not None

    def is_signed(self) -> bool:
        """Return whether the type is a signed integer type."""
        return self.kind is _INT

    def is_unsigned(self) -> bool:
        """Return whether the type is an unsigned integer type."""
        return self.kind is _UINT

    def is_void(self) -> bool:
        """Return whether this is the type without values."""
        return self is void


_INT, _UINT, _FLOAT = DType.Kind.Int, DType.Kind.UInt, DType.Kind.Float


def _dtype(name: str, numpy_type: object, kind: DType.Kind = DType.Kind.Int) -> DType:
    numpy = np.dtype(numpy_type)  # type: ignore[call-overload]
    dtype = object.__new__(DType)
    bits = 8 * numpy.itemsize or None
    for field, value in (
        ("name", name), ("size", numpy.itemsize), ("numpy", numpy), ("kind", kind), ("bitwidth", bits),
    ):  # fmt: skip
        object.__setattr__(dtype, field, value)
    return dtype


float16 = _dtype("float16", np.float16, _FLOAT)
bfloat16 = _dtype("bfloat16", ml_dtypes.bfloat16, _FLOAT)
float32 = _dtype("float32", np.float32, _FLOAT)
float64 = _dtype("float64", np.float64, _FLOAT)
int8 = _dtype("int8", np.int8)
int16 = _dtype("int16", np.int16)
int32 = _dtype("int32", np.int32)
int64 = _dtype("int64", np.int64)
uint8 = _dtype("uint8", np.uint8, _UINT)
uint16 = _dtype("uint16", np.uint16, _UINT)
uint32 = _dtype("uint32", np.uint32, _UINT)
uint64 = _dtype("uint64", np.uint64, _UINT)
bool_ = _dtype("bool", np.bool_, _UINT)
void = _dtype("void", np.dtype([]), DType.Kind.Any)

DTYPES: tuple[DType, ...] = (
    float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_,
)  # fmt: skip
_BY_NAME = {dtype.name: dtype for dtype in (*DTYPES, void)} | {
    "half": float16,
    "float": float32,
    "bf16": bfloat16,
}
_BY_NUMPY = {dtype.numpy: dtype for dtype in DTYPES}


def dtype_named(name: str) -> DType:
    """Return the type called `name` (numpy's name, or AscendC's `half`, `float`, `bf16`).

    Raises `KeyError` for a name that no storage type of the machine has.
    """
    return _BY_NAME[name]


def dtype_of(numpy_type: np.dtype) -> DType:
    """Return the storage type of a numpy dtype. Raises `KeyError` where the machine has none."""
    return _BY_NUMPY[numpy_type]


class Space(IntEnum):
    """A physical memory."""

    GM = 0
    UB = 1
    L1 = 2
    L0A = 3
    L0B = 4
    L0C = 5
    BT = 6
    FB = 7


class TPosition(IntEnum):
    """A logical position of AscendC; `POSITION_SPACE` maps it to a physical memory.

    pyasc's members have pyasc's values, MAX among them; SPM, SHM, TSCM and C2PIPE2GM, which it lacks, come after.
    """

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
    MAX = 12
    SPM = 13
    SHM = 13
    TSCM = 14
    C2PIPE2GM = 15


POSITION_SPACE: dict[TPosition, Space] = {
    TPosition.GM: Space.GM,
    TPosition.A1: Space.L1,
    TPosition.B1: Space.L1,
    TPosition.C1: Space.L1,
    TPosition.TSCM: Space.L1,
    TPosition.A2: Space.L0A,
    TPosition.B2: Space.L0B,
    TPosition.C2: Space.BT,
    TPosition.CO1: Space.L0C,
    TPosition.CO2: Space.GM,
    TPosition.SPM: Space.GM,
    TPosition.VECIN: Space.UB,
    TPosition.VECOUT: Space.UB,
    TPosition.VECCALC: Space.UB,
    TPosition.C2PIPE2GM: Space.FB,
}


class Pipe(IntEnum):
    """An execution unit of one core. The order is the order in which reports list them."""

    S = 0
    V = 1
    M = 2
    MTE1 = 3
    MTE2 = 4
    MTE3 = 5
    FIX = 6


class PipeID(IntEnum):
    """The names that `pipe_barrier` takes (pyasc's values). The 910B has no MTE4, MTE5 and V2."""

    PIPE_S = 0
    PIPE_V = 1
    PIPE_M = 2
    PIPE_MTE1 = 3
    PIPE_MTE2 = 4
    PIPE_MTE3 = 5
    PIPE_ALL = 6
    PIPE_MTE4 = 7
    PIPE_MTE5 = 8
    PIPE_V2 = 9
    PIPE_FIX = 10


PIPE_OF_ID: dict[PipeID, Pipe] = {
    PipeID.PIPE_S: Pipe.S,
    PipeID.PIPE_V: Pipe.V,
    PipeID.PIPE_M: Pipe.M,
    PipeID.PIPE_MTE1: Pipe.MTE1,
    PipeID.PIPE_MTE2: Pipe.MTE2,
    PipeID.PIPE_MTE3: Pipe.MTE3,
    PipeID.PIPE_FIX: Pipe.FIX,
}


class CoreKind(Enum):
    """Which of the cores of an AI Core: the cube core or a vector core."""

    AIC = "aic"
    AIV = "aiv"


PIPES_OF: dict[CoreKind, tuple[Pipe, ...]] = {
    CoreKind.AIC: (Pipe.S, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX),
    CoreKind.AIV: (Pipe.S, Pipe.V, Pipe.MTE2, Pipe.MTE3),
}


class HardEvent(IntEnum):
    """An ordered pair of pipes that a flag connects: `SOURCE_TARGET` (pyasc's values)."""

    MTE2_MTE1 = 0
    MTE1_MTE2 = 1
    MTE1_M = 2
    M_MTE1 = 3
    MTE2_V = 4
    V_MTE2 = 5
    MTE3_V = 6
    V_MTE3 = 7
    M_V = 8
    V_M = 9
    V_V = 10
    MTE3_MTE1 = 11
    MTE1_MTE3 = 12
    MTE1_V = 13
    MTE2_M = 14
    M_MTE2 = 15
    V_MTE1 = 16
    M_FIX = 17
    FIX_M = 18
    MTE3_MTE2 = 19
    MTE2_MTE3 = 20
    S_V = 21
    V_S = 22
    S_MTE2 = 23
    MTE2_S = 24
    S_MTE3 = 25
    MTE3_S = 26
    MTE2_FIX = 27
    FIX_MTE2 = 28
    FIX_S = 29
    M_S = 30
    FIX_MTE3 = 31
    MTE1_FIX = 32
    FIX_MTE1 = 33
    FIX_FIX = 34


EVENT_PIPES: dict[HardEvent, tuple[Pipe, Pipe]] = {
    event: (Pipe[event.name.split("_")[0]], Pipe[event.name.split("_")[1]]) for event in HardEvent
}
"""The pipe that sets and the pipe that waits, for each event."""

EVENT_SOURCE: tuple[Pipe, ...] = tuple(EVENT_PIPES[event][0] for event in HardEvent)
EVENT_TARGET: tuple[Pipe, ...] = tuple(EVENT_PIPES[event][1] for event in HardEvent)
"""The same two by the event's number, for the places where the look-up counts."""

EVENT_IDS = 8
"""Flags of one ordered pair of pipes: ids 0 to 7."""


class RoundMode(IntEnum):
    """Rounding of `cast`."""

    CAST_NONE = 0
    CAST_RINT = 1
    CAST_FLOOR = 2
    CAST_CEIL = 3
    CAST_ROUND = 4
    CAST_TRUNC = 5
    CAST_ODD = 6


class MaskMode(IntEnum):
    """How the vector mask register is read: as lanes, or as an element count."""

    NORMAL = 0
    COUNTER = 1


class CacheMode(IntEnum):
    """L2 hint of a GlobalTensor."""

    CACHE_MODE_NORMAL = 0
    CACHE_MODE_DISABLE = 1
    CACHE_MODE_LAST = 2
    CACHE_MODE_PERSISTENT = 4


class CacheRwMode(IntEnum):
    """Which accesses an L2 hint of a GlobalTensor is for."""

    READ = 1
    WRITE = 2
    RW = 3


class CacheLine(IntEnum):
    """How much of the data cache `data_cache_clean_and_invalid` is about."""

    SINGLE_CACHE_LINE = 0
    ENTIRE_DATA_CACHE = 1


class DcciDst(IntEnum):
    """Which memory the lines of `data_cache_clean_and_invalid` belong to."""

    CACHELINE_ALL = 0
    CACHELINE_UB = 1
    CACHELINE_OUT = 2
    CACHELINE_ATOMIC = 3


class MemDsbT(IntEnum):
    """Which memory's earlier accesses `data_sync_barrier` waits for."""

    ALL = 0
    DDR = 1
    UB = 2
    SEQ = 3


class AtomicDtype(IntEnum):
    """The element type of atomic stores, as `set_store_atomic_config` takes it."""

    ATOMIC_NONE = 0
    ATOMIC_F32 = 1
    ATOMIC_F16 = 2
    ATOMIC_S16 = 3
    ATOMIC_S32 = 4
    ATOMIC_S8 = 5
    ATOMIC_BF16 = 6


class AtomicOp(IntEnum):
    """The operation of atomic stores, as `set_store_atomic_config` takes it."""

    ATOMIC_SUM = 0
