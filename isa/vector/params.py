"""Modes and parameter structures of vector instructions that rearrange and compare, with pyasc's names and defaults.

Strides are in 32-byte data blocks unless a field says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from isa.types import DType


class CMPMODE(IntEnum):
    """Which comparison `compare` makes."""

    LT = 0
    GT = 1
    EQ = 2
    LE = 3
    GE = 4
    NE = 5


class SelMode(IntEnum):
    """Where `select` takes its bits and its second source from."""

    VSEL_CMPMASK_SPR = 0
    VSEL_TENSOR_SCALAR_MODE = 1
    VSEL_TENSOR_TENSOR_MODE = 2


class ReduceOrder(IntEnum):
    """What `whole_reduce_max` and `whole_reduce_min` store of each repeat."""

    ORDER_VALUE_INDEX = 0
    ORDER_INDEX_VALUE = 1
    ORDER_ONLY_VALUE = 2
    ORDER_ONLY_INDEX = 3


class GatherMaskMode(IntEnum):
    """Reserved by the vendor; there is one mode."""

    DEFAULT = 0


class TransposeType(IntEnum):
    """What `transpose` with parameters does. The 910B's basic API takes the last three."""

    TRANSPOSE_TYPE_NONE = 0
    TRANSPOSE_NZ2ND_0213 = 1
    TRANSPOSE_NZ2NZ_0213 = 2
    TRANSPOSE_NZ2NZ_012_WITH_N = 3
    TRANSPOSE_NZ2ND_012_WITH_N = 4
    TRANSPOSE_NZ2ND_012_WITHOUT_N = 5
    TRANSPOSE_NZ2NZ_012_WITHOUT_N = 6
    TRANSPOSE_ND2ND_ONLY = 7
    TRANSPOSE_ND_UB_GM = 8
    TRANSPOSE_GRAD_ND_UB_GM = 9
    TRANSPOSE_ND2ND_B16 = 10
    TRANSPOSE_NCHW2NHWC = 11
    TRANSPOSE_NHWC2NCHW = 12


@dataclass(frozen=True, slots=True)
class BrcbRepeatParams:
    """Where `brcb` puts its blocks: between the eight blocks of a repeat, and between repeats."""

    dst_blk_stride: int = 1
    dst_rep_stride: int = 8


@dataclass(frozen=True, slots=True)
class GatherRepeatParams:
    """Where `gatherb` puts its blocks: between the eight blocks of a repeat, and between repeats."""

    dst_blk_stride: int = 1
    dst_rep_stride: int = 8


@dataclass(frozen=True, slots=True)
class GatherMaskParams:
    """Repeats and strides of `gather_mask`; `src1_repeat_stride` is the user pattern's."""

    src0_block_stride: int = 1
    repeat_times: int = 1
    src0_repeat_stride: int = 0
    src1_repeat_stride: int = 0


@dataclass(frozen=True, slots=True)
class TransposeParamsExt:
    """Shape and kind of `transpose` with parameters, sizes in elements."""

    n_size: int = 0
    c_size: int = 0
    h_size: int = 0
    w_size: int = 0
    transpose_type: TransposeType = TransposeType.TRANSPOSE_ND2ND_B16


@dataclass(frozen=True, slots=True)
class TransDataTo5HDParams:
    """Repeats of `trans_data_to_5hd`; the halves are those of a data block of 8-bit elements."""

    dst_high_half: bool = False
    src_high_half: bool = False
    repeat_times: int = 1
    dst_rep_stride: int = 0
    src_rep_stride: int = 0


@dataclass(frozen=True, slots=True)
class MrgSort4Info:
    """Lengths (in records of 8 bytes) of the lists that `mrg_sort` merges, and how.

    `valid_bit` is 3, 7 or 15: the first two, three or four lists. With `if_exhausted_suspension` the merge
    stops when one list has run out.
    """

    element_lengths: Sequence[int] = ()
    if_exhausted_suspension: bool = False
    valid_bit: int = 15
    repeat_times: int = 1


class MrgSortSrcList:
    """The two to four sorted lists that `mrg_sort` merges."""

    def __init__(
        self, dtype: DType, src1: Any, src2: Any, src3: Any = None, src4: Any = None
    ) -> None:
        self.dtype = dtype
        self.lists = [tensor for tensor in (src1, src2, src3, src4) if tensor is not None]


@dataclass(frozen=True, slots=True)
class VdeqInfo:
    """Sixteen scales, offsets and sign modes: one for each lane of a data block of 16-bit elements."""

    scale: Sequence[float] = ()
    offset: Sequence[int] = ()
    sign_mode: Sequence[bool] = ()
