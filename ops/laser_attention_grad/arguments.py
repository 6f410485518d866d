"""What every core of the device kernel knows: the tiling record's fields, the regions of the workspace, the plan."""

# pyasc's dialect: what an address or a scalar load is, its compiler knows and mypy does not.
# mypy: ignore-errors

from __future__ import annotations

from ascend_sim import asc
from ops.laser_attention_grad.param import BNSD, SBH
from ops.laser_attention_grad.plan import Plan
from ops.laser_attention_grad.sizes import BLOCK, Sizes
from ops.laser_attention_grad.tiling import (
    BLOCK_ELEMENTS,
    INT64_FIELDS,
    LAYOUT_CODES,
    OFFSETS,
    SLOTS,
    workspace_layout,
)

C2V, V2C = 2, 3
"""Flags between a cube core and its two vector cores: S and dP are in GM; P and dS are in GM."""
ALL_CUBES, ALL_VECTORS = 0, 1
"""Flags among all cube cores, and among all vector cores."""
EVERYONE, ONE_CORE = 0, 2
"""Modes of flags between cores: all of a kind, a cube core with its vector cores."""


class Matrix:
    """Rows of a tensor in GM by batch, head and row; `pitch` elements a row."""

    def __init__(self, tensor, heads, rows, pitch):
        self.tensor = tensor
        self.heads = heads
        self.rows = rows
        self.pitch = pitch

    def at(self, batch, head, row, column=0):
        """Return the tensor from a row and column on."""
        return self.tensor[((batch * self.heads + head) * self.rows + row) * self.pitch + column :]


class Arguments:
    """One core's view of the kernel's arguments.

    Reads the record field by field, as scalar loads; what only post-processing needs is read there.
    """

    def __init__(
        self, query, key, value, attention_grad, mask, softmax_max, softmax_sum, attention, workspace, tiling
    ):  # fmt: skip
        self.record = _bound(tiling)
        sizes = self._sizes()
        window = self.field("windowLen") // BLOCK if self.field("sparseMode") else 0
        self.sizes = sizes
        self.blocks = asc.get_block_num()
        self.plan = Plan(sizes, bool(self.field("isTriangle")), window, self.blocks)
        self.scale = self.field("scale")
        self.mask_rows = self.field("maskSeqLength")
        self.mask_address = mask
        self.softmax_max = _bound(softmax_max)
        self.softmax_sum = _bound(softmax_sum)
        self.given = [_bound(one) for one in (query, key, value, attention_grad, attention)]
        self.bytes = _bound(workspace)
        self.regions = workspace_layout(sizes, self.field("blockDim"))
        self._matrices()

    def field(self, name):
        """Read a field of the record."""
        offset = OFFSETS[name]
        if name in INT64_FIELDS:
            return self.record.reinterpret_cast(asc.int64).get_value(offset // 8)
        dtype = asc.float32 if name == "scale" else asc.int32
        return self.record.reinterpret_cast(dtype).get_value(offset // 4)

    def _sizes(self):
        group = self.field("headGroupSize")
        heads = self.field("headNum")
        layout = SBH if self.field("inputLayout") == LAYOUT_CODES[SBH] else BNSD
        return Sizes(
            self.field("batchSize"),
            heads,
            heads // group,
            self.field("qSeqLength"),
            self.field("kSeqLength"),
            self.field("headDim"),
            layout,
        )

    def region(self, start, dtype):
        """Return the workspace from byte `start` on."""
        return self.bytes.reinterpret_cast(dtype)[start // dtype.size :]

    def _matrices(self):
        """Name the operands by heads: the inputs themselves, or their transposed copies."""
        sizes, regions = self.sizes, self.regions
        if sizes.layout == SBH:
            starts = (
                regions.query,
                regions.key,
                regions.value,
                regions.attention_grad,
                regions.attention,
            )
            tensors = [self.region(start, asc.bfloat16) for start in starts]
        else:
            tensors = self.given
        query, key, value, attention_grad, attention = tensors
        self.query = Matrix(query, sizes.heads, sizes.seq, sizes.head_dim)
        self.key = Matrix(key, sizes.kv_heads, sizes.kv_seq, sizes.key_dim)
        self.value = Matrix(value, sizes.kv_heads, sizes.kv_seq, BLOCK)
        self.attention_grad = Matrix(attention_grad, sizes.heads, sizes.seq, BLOCK)
        self.attention = Matrix(attention, sizes.heads, sizes.seq, BLOCK)
        gradients = [
            self.region(start, asc.float32)
            for start in (regions.query_grad, regions.key_grad, regions.value_grad)
        ]
        self.query_grad = Matrix(gradients[0], sizes.heads, sizes.seq, sizes.head_dim)
        self.key_grad = Matrix(gradients[1], sizes.kv_heads, sizes.kv_seq, sizes.key_dim)
        self.value_grad = Matrix(gradients[2], sizes.kv_heads, sizes.kv_seq, BLOCK)
        self.scores = self.region(regions.scores, asc.float32)
        self.score_grads = self.region(regions.score_grads, asc.float32)
        self.weights16 = self.region(regions.scores, asc.bfloat16)
        self.score_grads16 = self.region(regions.score_grads, asc.bfloat16)

    def slots(self, core, round_number):
        """Return the first element of a core's slots in a round, float32 elements from a region's start."""
        buffer = round_number % 2
        return (buffer * self.blocks + core) * SLOTS * BLOCK_ELEMENTS


def _bound(address):
    tensor = asc.GlobalTensor()
    tensor.set_global_buffer(address)
    return tensor
