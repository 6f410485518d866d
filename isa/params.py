"""Parameter structures of the instructions, with pyasc's field names, order and defaults.

Strides of vector instructions are in 32-byte data blocks. `DataCopyParams` counts lengths and gaps in 32-byte
blocks, a gap running from one burst's end to the next burst's start.
"""

from __future__ import annotations

from dataclasses import dataclass

from isa.types import DType


@dataclass(slots=True, unsafe_hash=True)
class BinaryRepeatParams:
    """Strides of a two-source instruction, in data blocks."""

    dst_blk_stride: int = 1
    src0_blk_stride: int = 1
    src1_blk_stride: int = 1
    dst_rep_stride: int = 8
    src0_rep_stride: int = 8
    src1_rep_stride: int = 8


@dataclass(slots=True, unsafe_hash=True)
class UnaryRepeatParams:
    """Strides of a one-source instruction, in data blocks."""

    dst_blk_stride: int = 1
    src_blk_stride: int = 1
    dst_rep_stride: int = 8
    src_rep_stride: int = 8


@dataclass(slots=True, unsafe_hash=True)
class CopyRepeatParams:
    """Strides of the masked `copy`: between blocks and between repeats, in data blocks."""

    dst_stride: int = 0
    src_stride: int = 0
    dst_repeat_size: int = 0
    src_repeat_size: int = 0


@dataclass(slots=True, unsafe_hash=True)
class DataCopyParams:
    """`block_count` bursts of `block_len` data blocks with gaps between them, in data blocks.

    For `data_copy_pad` the length is in bytes and the gap on the GM side too.
    """

    block_count: int = 1
    block_len: int = 0
    src_stride: int = 0
    dst_stride: int = 0


@dataclass(slots=True, unsafe_hash=True)
class DataCopyExtParams:
    """Bursts of `data_copy_pad`: length in bytes; gaps in bytes on the GM side, in data blocks on the UB side."""

    block_count: int = 1
    block_len: int = 0
    src_stride: int = 0
    dst_stride: int = 0
    rsv: int = 0


@dataclass(slots=True, unsafe_hash=True)
class DataCopyPadParams:
    """Padding of `data_copy_pad` GM to UB, in elements of at most 32 bytes a side."""

    is_pad: bool = False
    left_padding: int = 0
    right_padding: int = 0
    padding_value: int = 0


@dataclass(slots=True, unsafe_hash=True)
class DataCopyPadExtParams:
    """Typed padding of `data_copy_pad` GM to UB, in elements of at most 32 bytes a side."""

    dtype: DType | None = None
    is_pad: bool = False
    left_padding: int = 0
    right_padding: int = 0
    padding_value: float = 0
