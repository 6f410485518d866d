"""Stores of the product loop: a base block of C from L0C to GM through fixpipe (FIX)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascend_sim.lang.enums import CubeFormat
from isa.atomic import set_atomic_add, set_atomic_max, set_atomic_min, set_atomic_none
from isa.cube_params import FixpipeConfig, FixpipeParamsV220, QuantModes
from isa.faults import fault
from isa.fixpipe import fixpipe
from isa.layout import round_up
from isa.types import BLOCK_BYTES, DType, Pipe, bfloat16, float16, float32, int8, int32, uint8

if TYPE_CHECKING:
    from ascend_sim.adv.cube import Block, CubeUnit
    from ascend_sim.adv.job import Job
    from isa.tensor import GlobalTensor

ATOMIC = (None, set_atomic_add, set_atomic_max, set_atomic_min)
"""What `en_atomic` 0 to 3 means."""

_CHANGES = {
    (float32, float16): QuantModes.F322F16,
    (float32, bfloat16): QuantModes.F322BF16,
}
_SCALED = {
    (int32, float16): (QuantModes.DEQF16, QuantModes.VDEQF16),
    (int32, int8): (QuantModes.REQ8, QuantModes.VREQ8),
    (int32, uint8): (QuantModes.REQ8, QuantModes.VREQ8),
    (float32, int8): (QuantModes.QF322B8_PRE, QuantModes.VQF322B8_PRE),
    (float32, uint8): (QuantModes.QF322B8_PRE, QuantModes.VQF322B8_PRE),
}
"""(sums, C): how fixpipe scales them, with one scale and with one for each column."""
_SIGNED = 1 << 46
FINISH = 3
"""Unit flag of the last instruction of a block: M's leaves its units full, FIX's leaves them free."""


@dataclass(slots=True)
class Out:
    """Where C goes in GM: ND rows `pitch` elements apart, or NZ with `pitch` rows; `atomic` as in `ATOMIC`.

    `sequential`: a block goes to the tensor's very start, rows `base_n` apart, instead of to its place in C.
    """

    tensor: GlobalTensor
    format: CubeFormat
    pitch: int
    atomic: int = 0
    sequential: bool = False
    channel_split: bool = False


def quant_mode(sums: DType, target: DType, job: Job, name: str) -> QuantModes:
    """Return how fixpipe turns the sums into C's type; fault where it cannot, or a scale is missing."""
    if sums is target:
        return QuantModes.NoQuant
    if (sums, target) in _CHANGES:
        return _CHANGES[sums, target]
    modes = _SCALED.get((sums, target))
    if modes is None:
        fault(
            "ILLEGAL_PARAM",
            "matmul-dtype",
            f"{name}: products of {job.dtype} are summed in {sums}; fixpipe cannot turn that into {target}",
        )
    if job.quant is None:
        fault(
            "ILLEGAL_PARAM",
            "matmul-no-scale",
            f"{name}: C is {target} and the sums are {sums}, which takes a scale: call set_quant_scalar or "
            f"set_quant_vector before",
        )
    return modes[1 if job.quant.vector is not None else 0]


def store(unit: CubeUnit, block: Block, out: Out, name: str) -> None:
    """Send a block to its place, in C's type and layout."""
    job = unit.job
    assert job is not None
    target = out.tensor
    mode = quant_mode(job.result, target.dtype, job, name)
    scales = unit.scales(block)
    unit.begin_store(block)
    size = target.dtype.size
    by_rows = out.format == CubeFormat.ND
    row, column = (0, 0) if out.sequential else (block.row * job.base_m, block.column * job.base_n)
    if by_rows:
        pitch = job.base_n if out.sequential else out.pitch
        place, stride, columns = row * pitch + column, pitch, block.n
    else:
        width = 8 if out.channel_split else (32 if size == 1 else 16)
        rows = round_up(job.base_m, 16) if out.sequential else out.pitch
        place = (column // width * rows + row) * width
        stride, columns = rows * width * size // BLOCK_BYTES, round_up(block.n, 16)
    scalar = job.quant.scalar if job.quant is not None else 0
    if size == 1:
        scalar = scalar | _SIGNED if target.dtype is int8 else scalar & ~_SIGNED
    params = FixpipeParamsV220(
        columns,
        block.m,
        block.pitch,
        stride,
        mode,
        scalar,
        unit_flag=FINISH if block.unit_flags else 0,
        is_channel_split=out.channel_split and not by_rows,
    )
    config = FixpipeConfig.cfg_row_major() if by_rows else FixpipeConfig.cfg_nz()
    begin = ATOMIC[out.atomic]
    if begin is not None:
        begin(target.dtype)
    if scales is not None:
        unit.stream.pipe_barrier(Pipe.FIX)  # the last block's scales in FB are overwritten
        fixpipe(target[place:], block.tensor, scales, params, config)
    else:
        fixpipe(target[place:], block.tensor, params, config)
    if begin is not None:
        set_atomic_none()
    unit.end_store(block)
