"""What pyasc offers and nothing here can do: parameters that can be filled in, and calls that say why they stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ascend_sim.errors import UnsupportedError
from isa.types import DType

# ---- parameters -----------------------------------------------------------------------------


@dataclass
class LoadImageToLocalParams:
    """Parameters of `load_image_to_local`, which is not simulated."""

    horiz_size: int = 2
    vert_size: int = 2
    horiz_start_pos: int = 0
    vert_start_pos: int = 0
    src_horiz_size: int = 2
    top_pad_size: int = 0
    bot_pad_size: int = 0
    left_pad_size: int = 0
    right_pad_size: int = 0
    sid: int = 0


@dataclass
class LoadData2DParamsV2:
    """Parameters of a `load_data` that newer chips have."""

    m_start_position: int = 0
    k_start_position: int = 0
    m_step: int = 0
    k_step: int = 0
    src_stride: int = 0
    dst_stride: int = 0
    if_transpose: bool = False
    sid: int = 0


@dataclass
class LoadData2dTransposeParamsV2:
    """Parameters of a `load_data_with_transpose` that newer chips have."""

    start_index: int = 0
    repeat_times: int = 0
    src_stride: int = 0
    dst_gap: int = 0
    dst_frac_gap: int = 0
    src_frac_gap: int = 0
    addr_mode: int = 0


@dataclass
class LoadData3DParamsV1:
    """Parameters of a `load_data` that older chips have."""

    pad_list: tuple[int, int, int, int] = (0, 0, 0, 0)
    l1_h: int = 1
    l1_w: int = 1
    c1_index: int = 0
    fetch_filter_w: int = 0
    fetch_filter_h: int = 0
    left_top_w: int = 0
    left_top_h: int = 0
    stride_w: int = 1
    stride_h: int = 1
    filter_w: int = 1
    filter_h: int = 1
    dilation_filter_w: int = 1
    dilation_filter_h: int = 1
    jump_stride: int = 1
    repeat_mode: int = 0
    repeat_time: int = 1
    c_size: int = 0
    pad_value: int = 0


@dataclass
class LoadData3DParamsV2Pro:
    """Parameters of a `load_data` that is not simulated: use LoadData3DParamsV2."""

    channel_size: int = 0
    en_transpose: bool = False
    en_small_k: bool = False
    filter_size_w: bool = False
    filter_size_h: bool = False
    f_matrix_ctrl: bool = False
    ext_config: int = 0
    filter_config: int = 0x10101010101


@dataclass
class CheckLocalMemoryIAParam:
    """Parameters of `check_local_memory_ia`, which is not simulated."""

    enable_bit: int = 0
    start_addr: int = 0
    end_addr: int = 0
    is_scalar_read: bool = False
    is_scalar_write: bool = False
    is_vector_read: bool = False
    is_vector_write: bool = False
    is_mte_read: bool = False
    is_mte_write: bool = False
    is_enable: bool = False


@dataclass
class AippPaddingParams:
    """Padding of the image instructions, which are not simulated."""

    padding_mode: int = 0
    padding_value_ch0: float = 0
    padding_value_ch1: float = 0
    padding_value_ch2: float = 0
    padding_value_ch3: float = 0


@dataclass
class AippSwapParams:
    """Channel order of the image instructions, which are not simulated."""

    is_swap_rb: bool = False
    is_swap_uv: bool = False
    is_swap_ax: bool = False


@dataclass
class AippSingleLineParams:
    """Single lines of the image instructions, which are not simulated."""

    is_single_line_copy: bool = False


@dataclass
class AippDataTypeConvParams:
    """Type conversion of the image instructions, which are not simulated."""

    dtc_mean_ch0: int = 0
    dtc_mean_ch1: int = 0
    dtc_mean_ch2: int = 0
    dtc_min_ch0: float = 0.0
    dtc_min_ch1: float = 0.0
    dtc_min_ch2: float = 0.0
    dtc_var_ch0: float = 1.0
    dtc_var_ch1: float = 1.0
    dtc_var_ch2: float = 1.0
    dtc_round_mode: int = 0


@dataclass
class AippChannelPaddingParams:
    """Channel padding of the image instructions, which are not simulated."""

    c_padding_mode: int = 0
    c_padding_value: float = 0


@dataclass
class AippColorSpaceConvParams:
    """Colour conversion of the image instructions, which are not simulated."""

    is_enable_csc: bool = False
    csc_matrix_r0_c0: int = 0
    csc_matrix_r0_c1: int = 0
    csc_matrix_r0_c2: int = 0
    csc_matrix_r1_c0: int = 0
    csc_matrix_r1_c1: int = 0
    csc_matrix_r1_c2: int = 0
    csc_matrix_r2_c0: int = 0
    csc_matrix_r2_c1: int = 0
    csc_matrix_r2_c2: int = 0
    csc_bias_in_0: int = 0
    csc_bias_in_1: int = 0
    csc_bias_in_2: int = 0
    csc_bias_out_0: int = 0
    csc_bias_out_1: int = 0
    csc_bias_out_2: int = 0


@dataclass
class AippParams:
    """All parameters of the image instructions, which are not simulated."""

    dtype: DType
    padding_params: AippPaddingParams = field(default_factory=AippPaddingParams)
    swap_params: AippSwapParams = field(default_factory=AippSwapParams)
    single_line_params: AippSingleLineParams = field(default_factory=AippSingleLineParams)
    dtc_params: AippDataTypeConvParams = field(default_factory=AippDataTypeConvParams)
    c_padding_params: AippChannelPaddingParams = field(default_factory=AippChannelPaddingParams)
    csc_params: AippColorSpaceConvParams = field(default_factory=AippColorSpaceConvParams)


# ---- calls ----------------------------------------------------------------------------------

_IMAGES = "the image instructions are not simulated; copy the pixels in with data_copy"
_SPARSE = (
    "matrices with structured zeros are not simulated; use load_data and mmad on the whole matrix"
)
_CLUSTER = "one die alone is simulated, without links to other ranks"
_LISTS = "lists of tensors whose number is known at run time only are not simulated; pass the tensors one by one"
_POOLS = "pools of one's own are not simulated; use init_buffer of the TPipe or of a TBufPool"
_HANDLES = ("init_buf_handle", "init_start_buf_handle")

NOT_SIMULATED = {
    "bilinear_interpolation": "not simulated; write it with gather, mul and add",
    "check_local_memory_ia": "not needed: every access to UB is checked anyway, see docs/checks.md",
    "get_arch_version": "it writes into its argument, which a Python number cannot take; the architecture is 2201",
    "get_hccl_context": _CLUSTER,
    "inline": "C++ text cannot run here; write it in Python",
    "load_data_with_sparse": _SPARSE,
    "load_image_to_local": _IMAGES,
    "mmad_with_sparse": _SPARSE,
    "set_aipp_functions": _IMAGES,
    "set_hccl_context": _CLUSTER,
    "ListTensorDesc": _LISTS,
    "TensorDesc": _LISTS,
} | {f"{name}.{call}": _POOLS for name in ("TQueBind", "TQue", "TBuf") for call in _HANDLES}
"""What the hardware can do and the simulator cannot: name and reason."""


def _not_simulated(name: str) -> Callable[..., NoReturn]:
    reason = NOT_SIMULATED[name]

    def function(*_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError(f"{name}: {reason}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Refuse: {reason}."
    return function


bilinear_interpolation = _not_simulated("bilinear_interpolation")
check_local_memory_ia = _not_simulated("check_local_memory_ia")
get_arch_version = _not_simulated("get_arch_version")
get_hccl_context = _not_simulated("get_hccl_context")
inline = _not_simulated("inline")
load_data_with_sparse = _not_simulated("load_data_with_sparse")
load_image_to_local = _not_simulated("load_image_to_local")
mmad_with_sparse = _not_simulated("mmad_with_sparse")
set_aipp_functions = _not_simulated("set_aipp_functions")
set_hccl_context = _not_simulated("set_hccl_context")


class TensorDesc:
    """Refuse: lists of tensors are not simulated."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise UnsupportedError(f"TensorDesc: {_LISTS}")


class ListTensorDesc:
    """Refuse: lists of tensors are not simulated."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise UnsupportedError(f"ListTensorDesc: {_LISTS}")


class OwnPool:
    """What a queue or TBuf offers to a pool that the kernel's author wrote: its addresses, set by hand."""

    def init_buf_handle(
        self, buf_pool: Any, index: Any, buf_handle: Any, cur_pool_addr: Any, len: Any
    ) -> NoReturn:
        """Refuse: only a TPipe and a TBufPool hand out bytes."""
        raise UnsupportedError(f"{type(self).__name__}.init_buf_handle: {_POOLS}")

    def init_start_buf_handle(self, start_buf_handle: Any, num: Any, len: Any) -> NoReturn:
        """Refuse: only a TPipe and a TBufPool hand out bytes."""
        raise UnsupportedError(f"{type(self).__name__}.init_start_buf_handle: {_POOLS}")
