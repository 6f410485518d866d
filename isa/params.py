"""Parameter structures of the instructions, with pyasc's field names, order and defaults.

Strides of vector instructions are in 32-byte data blocks. `DataCopyParams` counts lengths and gaps in 32-byte
blocks, a gap running from one burst's end to the next burst's start.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

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


@dataclass(slots=True, unsafe_hash=True)
class SliceInfo:
    """A slice of one dimension: bursts of `burst_len` data blocks (1 beyond the first dimension) from element
    `start_index` to `end_index`, that one included, with gaps of `stride` elements; the dimension has `shape_value`.
    """

    start_index: int = 0
    end_index: int | None = None
    stride: int = 0
    burst_len: int | None = None
    shape_value: int = 0


class BlockMode(IntEnum):
    """What a block of an enhanced copy is."""

    BLOCK_MODE_NORMAL = 0
    BLOCK_MODE_MATRIX = 1
    BLOCK_MODE_VECTOR = 2
    BLOCK_MODE_SMALL_CHANNEL = 3
    BLOCK_MODE_DEPTHWISE = 4


class DeqScale(IntEnum):
    """How an enhanced copy scales."""

    DEQ_NONE = 0
    DEQ = 1
    VDEQ = 2
    DEQ8 = 3
    VDEQ8 = 4
    DEQ16 = 5
    VDEQ16 = 6


class pad_t(IntEnum):
    """How an enhanced copy pads."""

    PAD_NONE = 0
    PAD_MODE1 = 1
    PAD_MODE2 = 2
    PAD_MODE3 = 3
    PAD_MODE4 = 4
    PAD_MODE5 = 5
    PAD_MODE6 = 6
    PAD_MODE7 = 7
    PAD_MODE8 = 8


@dataclass(slots=True, unsafe_hash=True)
class DataCopyEnhancedParams:
    """What an enhanced copy does besides; the 910B's routes take the defaults only, which change nothing."""

    block_mode: BlockMode = BlockMode.BLOCK_MODE_NORMAL
    deq_scale: DeqScale = DeqScale.DEQ_NONE
    deq_value_in: int = 0
    sid_store_mode_in: int = 0
    is_relu_in: bool = False
    pad_mode_in: pad_t = pad_t.PAD_NONE
    pad_value_in: int = 0
