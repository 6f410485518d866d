"""The kernel language, in pyasc's spelling: `from ascend_sim import asc`.

A facade: instructions come from `isa`, TPipe, TQue, TBuf and jit from `ascend_sim.lang`. `bfloat16`,
`GlobalTensor.reinterpret_cast`, slices with a stop and phases are additions to pyasc.
"""

# ruff: noqa: A004  pyasc's names are max, min, abs, range

from ascend_sim.lang.jit import ConstExpr, jit
from ascend_sim.lang.queues import TBuf, TPipe, TQue, TQueBind, get_tpipe_ptr
from ascend_sim.lang.system import (
    ascend_is_aic,
    ascend_is_aiv,
    ceildiv,
    get_block_idx,
    get_block_num,
    get_data_block_size_in_bytes,
    get_sub_block_idx,
    get_sub_block_num,
    get_system_cycle,
    get_task_ratio,
    static_range,
)
from ascend_sim.lang.system import kernel_range as range
from isa.move import data_copy, data_copy_pad
from isa.params import (
    BinaryRepeatParams,
    CopyRepeatParams,
    DataCopyExtParams,
    DataCopyPadExtParams,
    DataCopyPadParams,
    DataCopyParams,
    UnaryRepeatParams,
)
from isa.sync import (
    init_soc_state,
    pipe_barrier,
    reset_mask,
    set_flag,
    set_mask_count,
    set_mask_norm,
    set_pad_value,
    set_vector_mask,
    wait_flag,
)
from isa.tensor import GlobalAddress, GlobalTensor, LocalTensor
from isa.types import (
    CacheMode,
    DType as DataType,
    HardEvent,
    MaskMode,
    PipeID,
    RoundMode,
    TPosition,
    bfloat16,
    bool_,
    float16,
    float32,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from isa.types import float16 as half
from isa.types import float32 as float_
from isa.types import int32 as int_
from isa.vector.arithmetic import (
    abs,
    add,
    add_relu,
    adds,
    axpy,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    div,
    exp,
    fused_mul_add,
    fused_mul_add_relu,
    leaky_relu,
    ln,
    max,
    maxs,
    min,
    mins,
    mul,
    mul_add_dst,
    muls,
    reciprocal,
    relu,
    rsqrt,
    shift_left,
    shift_right,
    sqrt,
    sub,
    sub_relu,
)
from isa.vector.fill import cast, copy, duplicate

__all__ = sorted(name for name in dir() if not name.startswith("_"))
