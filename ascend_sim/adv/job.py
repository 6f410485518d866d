"""One matrix product as the cube core gets it: operands, sizes, and how it is cut."""

from __future__ import annotations

from dataclasses import dataclass

from ascend_sim.lang.enums import CubeFormat, IterateOrder
from isa.cube import RESULT
from isa.tensor import GlobalTensor
from isa.types import BLOCK_BYTES, DType


@dataclass(slots=True)
class Matrix:
    """An operand in GM from its first element on: ND rows `pitch` elements apart, or NZ with `pitch` rows.

    `turned`: it is stored transposed (A as [K, M], B as [N, K]).
    """

    tensor: GlobalTensor
    format: CubeFormat
    pitch: int
    turned: bool
    left: bool
    """It is A."""

    @property
    def rows_are_size(self) -> bool:
        """Whether the stored rows run along M or N, and the columns along K."""
        return self.left != self.turned

    @property
    def c0(self) -> int:
        """Elements of 32 bytes."""
        return BLOCK_BYTES // self.tensor.dtype.size


@dataclass(slots=True)
class Quant:
    """Scales of the result: one for all (`scalar`, its bits), or one for each column (`vector`, in GM)."""

    scalar: int = 0
    vector: GlobalTensor | None = None


@dataclass(slots=True)
class Job:
    """C [m, n] = A [m, k] · B [k, n] (+ bias) in base blocks; sizes in elements."""

    a: Matrix
    b: Matrix
    bias: GlobalTensor | None
    m: int
    n: int
    k: int
    base_m: int
    base_n: int
    base_k: int
    step_m: int
    step_n: int
    step_ka: int
    step_kb: int
    slots_a: int
    slots_b: int
    buffers_a2: int
    buffers_b2: int
    buffers_c: int
    order: IterateOrder
    quant: Quant | None = None
    hf32: bool = False
    hf32_toward_zero: bool = False
    pad_columns: bool = False
    """C leaves as NZ: columns are computed up to a multiple of 16, the additional ones as zero."""
    unit_flags: bool = False
    """Whole products hand their blocks from M to FIX by unit flags instead of events."""

    @property
    def dtype(self) -> DType:
        """Element type of A and B."""
        return self.a.tensor.dtype

    @property
    def result(self) -> DType:
        """Element type of the sums in L0C."""
        return RESULT[self.dtype]

    @property
    def rows(self) -> int:
        """Base blocks down M."""
        return -(-self.m // self.base_m)

    @property
    def columns(self) -> int:
        """Base blocks along N."""
        return -(-self.n // self.base_n)

    @property
    def steps(self) -> int:
        """Base blocks along K."""
        return -(-self.k // self.base_k)

    @property
    def blocks(self) -> int:
        """Base blocks of C."""
        return self.rows * self.columns

    def place(self, number: int) -> tuple[int, int]:
        """Return row and column of the number-th block of C, in base blocks."""
        if self.order == IterateOrder.ORDER_N:
            return number // self.columns, number % self.columns
        return number % self.rows, number // self.rows
