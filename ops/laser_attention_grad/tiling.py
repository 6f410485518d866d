"""Tiling of `laser_attention_grad`: the record of 512 bytes that the device kernel reads, and the workspace.

Every field stands here with the library's own formula, those that the kernel never reads too.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ops.laser_attention_grad.param import SBH
from ops.laser_attention_grad.sizes import BLOCK, Sizes

RECORD_BYTES = 512
SLOTS = 16
"""Blocks of the score matrix that a core takes in one round; the library has this for every length."""

BLOCK_ELEMENTS = BLOCK * BLOCK
SYSTEM_BYTES = 16 * 2**20
"""Workspace that the system keeps to itself: what the kernel uses begins behind it."""
SLACK_BYTES = 10 * 2**20
SCORE_BUFFERS = 2
"""Buffers of scores: round r uses buffer r mod 2."""

UB_RESERVED = 1024
UB_BYTES = 196608
POST_ALIGN = 16
LAYOUT_CODES = {"BNSD": 3, "SBH": 0}

INT32_FIELDS = (
    "batchSize", "headNum", "seqSize", "headDim", "blockDim", "blockNumPerCore", "isTriangle", "attenType",
    "sparseMode", "headGroupSize", "windowLen", "qSeqLength", "kSeqLength", "vSeqLength", "isHighPrecision",
)  # fmt: skip
"""int32 fields from byte 0 on; scale follows at 60, three fields that nobody writes at 64, maskSeqLength at 76."""

INT64_FIELDS = (
    "queryShape", "keyShape", "valueShape", "postBaseNum",
    "postDqFrontCoreNum", "postDqTailCoreNum", "postDqFrontDataNum", "postDqTailDataNum",
    "postDkFrontCoreNum", "postDkTailCoreNum", "postDkFrontDataNum", "postDkTailDataNum",
    "postDvFrontCoreNum", "postDvTailCoreNum", "postDvFrontDataNum", "postDvTailDataNum",
    "outputWorkspaceOffset",
)  # fmt: skip
"""int64 fields from byte 80 on; inputLayout follows at 216, three unused arrays of 24 int32 from 220."""

OFFSETS = (
    {name: 4 * i for i, name in enumerate(INT32_FIELDS)}
    | {"scale": 60, "keepProb": 64, "preTokens": 68, "nextTokens": 72, "maskSeqLength": 76}
    | {name: 80 + 8 * i for i, name in enumerate(INT64_FIELDS)}
    | {"inputLayout": 216}
)
"""Byte offset of each field."""

TILING_WINDOW, TILING_BAND = 2, 3
"""The library's numbers of the two kernels' tilings."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """What tiling knows: sizes, switches and cores. `window` is the window in blocks, 0 without one."""

    sizes: Sizes
    scale: float
    pre_tokens: int
    has_mask: bool
    mask_rows: int
    cores: int
    inner_precise: int = 1

    @property
    def blocks(self) -> int:
        """How many blocks are launched: all cube cores, but 24 of 25."""
        return 24 if self.cores == 25 else self.cores

    @property
    def is_sparse(self) -> bool:
        """Whether the windowed path runs."""
        return self.has_mask and self.pre_tokens < self.sizes.seq

    @property
    def window_len(self) -> int:
        """Tokens of the window; 0 without a mask."""
        return min(self.pre_tokens, self.sizes.seq) if self.has_mask else 0

    @property
    def tiling_id(self) -> int:
        """The library's number of the tiling."""
        return TILING_WINDOW if self.is_sparse else TILING_BAND

    @property
    def path(self) -> str:
        """The device path: SPARSE, BAND-128, BAND-192 or BAND-192-SBH."""
        if self.is_sparse:
            return "SPARSE"
        if self.sizes.layout == SBH:
            return "BAND-192-SBH"
        return f"BAND-{self.sizes.head_dim}"

    def fields(self) -> dict[str, int | float]:
        """Return every field of the record by the library's name."""
        sizes = self.sizes
        values: dict[str, int | float] = {
            "batchSize": sizes.batch,
            "headNum": sizes.heads,
            "seqSize": sizes.seq,
            "headDim": sizes.head_dim,
            "blockDim": self.cores,
            "blockNumPerCore": SLOTS,
            "isTriangle": int(self.has_mask),
            "attenType": int(sizes.heads != sizes.kv_heads),
            "sparseMode": int(self.is_sparse),
            "headGroupSize": sizes.group,
            "windowLen": self.window_len,
            "qSeqLength": sizes.seq,
            "kSeqLength": sizes.kv_seq,
            "vSeqLength": sizes.kv_seq,
            "isHighPrecision": self.inner_precise,
            "scale": self.scale,
            "keepProb": 0,
            "preTokens": 0,
            "nextTokens": 0,
            "maskSeqLength": self.mask_rows,
            "postBaseNum": post_base(),
            "outputWorkspaceOffset": self.score_bytes // 4,
            "inputLayout": LAYOUT_CODES[sizes.layout],
        }
        vector_cores = 2 * self.cores
        for name, what, count in (
            ("queryShape", "Dq", sizes.query_elements),
            ("keyShape", "Dk", sizes.key_elements),
            ("valueShape", "Dv", sizes.value_elements),
        ):
            values[name] = count
            front = count % vector_cores
            values[f"post{what}FrontCoreNum"] = front
            values[f"post{what}TailCoreNum"] = vector_cores - front
            values[f"post{what}FrontDataNum"] = -(-count // vector_cores)
            values[f"post{what}TailDataNum"] = count // vector_cores
        return values

    def record(self) -> bytes:
        """Return the record."""
        values = self.fields()
        record = bytearray(RECORD_BYTES)
        for name, offset in OFFSETS.items():
            kind = "<f" if name in ("scale", "keepProb") else "<q" if name in INT64_FIELDS else "<i"
            struct.pack_into(kind, record, offset, values[name])
        return bytes(record)

    @property
    def score_bytes(self) -> int:
        """Bytes of both score regions and of what the system takes, as the host counts them."""
        regions = 2 * SCORE_BUFFERS * self.blocks * SLOTS * BLOCK_ELEMENTS * 4
        return regions + SYSTEM_BYTES + SLACK_BYTES

    @property
    def workspace_bytes(self) -> int:
        """Bytes of GM that the kernel asks for; the transposed copies are counted in either layout."""
        sizes = self.sizes
        accumulators = sizes.query_elements + sizes.key_elements + sizes.value_elements
        transposed = (
            sizes.batch * sizes.heads * sizes.seq * 192
            + sizes.batch * sizes.kv_heads * sizes.kv_seq * 256
            + sizes.value_elements
            + 2 * sizes.output_elements
        )
        return 4 * accumulators + self.score_bytes + 2 * transposed

    @property
    def cleared_bytes(self) -> int:
        """Bytes at the workspace's start that the host sets to zero before the launch."""
        sizes = self.sizes
        accumulators = sizes.query_elements + sizes.key_elements + sizes.value_elements
        return SYSTEM_BYTES + 4 * accumulators

    @property
    def overrun(self) -> int:
        """Elements that the last vector core handles past the end of dQ in post-processing (BNSD).

        The kernel reads the number of cores with a larger share from the wrong field, so that every core takes
        the larger share.
        """
        if self.sizes.layout == SBH:
            return 0
        count = self.sizes.query_elements
        return max(0, 2 * self.blocks * -(-count // (2 * self.cores)) - count)


def post_base() -> int:
    """Return the elements of one chunk of post-processing: UB for two buffers of float32 and bfloat16."""
    return (UB_BYTES - UB_RESERVED) // 6 // 2 // POST_ALIGN * POST_ALIGN


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where the kernel's regions begin, in bytes from the workspace's start (the system's part included)."""

    query_grad: int
    key_grad: int
    value_grad: int
    scores: int
    score_grads: int
    query: int
    key: int
    value: int
    attention: int
    attention_grad: int
    end: int


def workspace_layout(sizes: Sizes, block_dim: int) -> Workspace:
    """Return the regions; `block_dim` is the record's, which counts cores that are not launched too."""
    scores = block_dim * SLOTS * BLOCK_ELEMENTS * SCORE_BUFFERS * 4
    lengths = (
        4 * sizes.query_elements,
        4 * sizes.key_elements,
        4 * sizes.value_elements,
        scores,
        scores,
        2 * sizes.batch * 192 * sizes.heads * sizes.seq,
        2 * sizes.batch * 256 * sizes.kv_heads * sizes.kv_seq,
        2 * sizes.value_elements,
        2 * sizes.output_elements,
        2 * sizes.output_elements,
    )
    starts = [SYSTEM_BYTES]
    for length in lengths:
        starts.append(starts[-1] + length)
    return Workspace(*starts)
