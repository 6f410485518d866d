"""Descriptions of a Matmul object: operand types, templates, and the functions that make a template.

Only data. What a field changes in the simulated library is said at `MatmulConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ascend_sim.adv.records import MatmulApiStaticTiling
from ascend_sim.lang.enums import (
    BatchMode,
    BatchOutMode,
    CubeFormat,
    IterateMode,
    IterateOrder,
    LayoutMode,
    MatmulConfigMode,
    ScheduleType,
)
from isa.faults import fault
from isa.types import DType, TPosition

_L1_BYTES = 512 * 1024


@dataclass(frozen=True)
class MatmulType:
    """One operand of a Matmul object: where it is, how it lies there, its element type.

    `is_trans` says that the object may be told to transpose it; `layout` is for batches.
    """

    position: TPosition
    format: CubeFormat
    dtype: DType
    is_trans: bool = False
    layout: LayoutMode = LayoutMode.NONE


@dataclass
class MatmulConfig:
    """The template of a Matmul object.

    Here change what happens: `basic_…` and `single_core_…` (where not 0, they replace the tiling's), `step_m`,
    `step_n`, `iterate_order`, `is_partial_output`, `is_n_batch`, `is_bias_batch`, `is_enable_channel_split` and
    `enable_mix_dual_master` (which is refused). The other fields choose between implementations that
    compute the same with the same instructions here: they are accepted.
    """

    do_norm: bool = True
    do_basic_block: bool = False
    do_multi_data_load: bool = False
    basic_m: int = 0
    basic_n: int = 0
    basic_k: int = 0
    intrinsics_check: bool = False
    is_n_batch: bool = False
    en_vec_nd2nz: bool = False
    do_special_basic_block: bool = False
    do_mte2_preload: int = 0
    single_core_m: int = 0
    single_core_n: int = 0
    single_core_k: int = 0
    step_m: int = 0
    step_n: int = 0
    base_mn: int = 0
    single_core_mn: int = 0
    en_unit_flag: bool = True
    is_per_tensor: bool = False
    has_anti_quant_offset: bool = False
    do_ib_share_norm: bool = False
    do_special_mdl: bool = False
    enable_init: bool = True
    batch_mode: BatchMode = BatchMode.BATCH_LESS_THAN_L1
    enable_end: bool = True
    enable_get_tensor_c: bool = True
    enable_set_org_shape: bool = True
    enable_set_bias: bool = True
    enable_set_tail: bool = True
    enable_quant_vector: bool = True
    enable_set_define_data: bool = True
    iterate_mode: IterateMode = IterateMode.ITERATE_MODE_DEFAULT
    enable_reuse: bool = True
    enable_ub_reuse: bool = False
    enable_l1_cache_ub: bool = False
    intra_block_part_sum: bool = False
    iterate_order: IterateOrder = IterateOrder.UNDEF
    schedule_type: ScheduleType = ScheduleType.INNER_PRODUCT
    enable_double_cache: int = 0
    is_bias_batch: bool = True
    enable_static_pad_zeros: bool = False
    is_partial_output: bool = False
    enable_mix_dual_master: bool = False
    is_a2b2_shared: bool = False
    is_enable_channel_split: bool = False
    enable_kdim_reorder_load: bool = False
    is_co1_shared: bool = False
    shared_co1_buffer_size: int = 64 * 1024
    batch_out_mode: BatchOutMode = BatchOutMode.SINGLE_BATCH


@dataclass
class QuantConfig:
    """Sizes of `quant` that are known beforehand; 0 where they are not."""

    calc_count: int = 0
    offset_count: int = 0
    scale_count: int = 0
    work_local_size: int = 0


@dataclass
class MatmulShapeParams:
    """Sizes for `get_mm_config`."""

    single_core_m: int = 0
    single_core_n: int = 0
    single_core_k: int = 0
    basic_m: int = 0
    basic_n: int = 0
    basic_k: int = 0


@dataclass
class MatmulQuantParams:
    """Quantisation of B for `get_mm_config`."""

    is_per_tensor: bool = False
    has_anti_quant_offset: bool = False


class MatmulBatchParams:
    """Batches for `get_mm_config`."""

    def __init__(
        self,
        is_b_batch: bool = False,
        batch_mode: BatchMode = BatchMode.BATCH_LESS_THAN_L1,
        is_bias_batch: bool = False,
    ) -> None:
        self.is_n_batch = is_b_batch
        self.batch_mode = batch_mode
        self.is_bias_batch = is_bias_batch


@dataclass
class MatmulFuncParams:
    """Switches for `get_mm_config`."""

    intrinsics_limit: bool = False
    en_vec_nd2_nz: bool = False
    enable_double_cache: bool = False
    enable_l1_cache: bool = False
    do_mte2_pre_load: int = 0
    iterate_order: IterateOrder = IterateOrder.ORDER_M
    schedule_type: ScheduleType = ScheduleType.INNER_PRODUCT
    enable_reuse: bool = True
    enable_ub_reuse: bool = False
    is_partial_output: bool = False
    is_a2_b2_shared: bool = False
    is_enable_channel_split: bool = False
    enable_kdim_reorder_load: bool = False


def _made(**values: Any) -> MatmulConfig:
    """Return a template with the values that are given; None stands for a field's default."""
    return MatmulConfig(**{name: value for name, value in values.items() if value is not None})


def get_normal_config(
    intrinsics_limit: bool | None = False,
    batch_loop: bool | None = False,
    is_vec_nd2_nz: bool | None = False,
    bmm_mode: BatchMode | None = BatchMode.BATCH_LESS_THAN_L1,
    is_msg_reuse: bool | None = True,
    iterate_order: IterateOrder | None = IterateOrder.ORDER_M,
    schedule_type: ScheduleType | None = ScheduleType.INNER_PRODUCT,
    en_unit_flag: bool | None = True,
) -> MatmulConfig:
    """Return the Norm template."""
    return _made(
        intrinsics_check=intrinsics_limit,
        is_n_batch=batch_loop,
        en_vec_nd2nz=is_vec_nd2_nz,
        batch_mode=bmm_mode,
        enable_reuse=is_msg_reuse,
        iterate_order=iterate_order,
        schedule_type=schedule_type,
        en_unit_flag=en_unit_flag,
    )


def get_basic_config(
    basic_m: int,
    basic_n: int,
    basic_k: int,
    intrinsics_limit: bool | None = False,
    batch_loop: bool | None = False,
    bmm_mode: BatchMode | None = BatchMode.BATCH_LESS_THAN_L1,
) -> MatmulConfig:
    """Return the BasicBlock template: base blocks of one fixed size."""
    return _made(
        basic_m=basic_m,
        basic_n=basic_n,
        basic_k=basic_k,
        intrinsics_check=intrinsics_limit,
        is_n_batch=batch_loop,
        batch_mode=bmm_mode,
    )


def get_special_basic_config(
    basic_m: int,
    basic_n: int,
    basic_k: int,
    single_core_m: int,
    single_core_n: int,
    single_core_k: int,
    step_m: int,
    step_n: int,
    intrinsics_limit: bool | None = False,
    batch_loop: bool | None = False,
    bmm_mode: BatchMode | None = BatchMode.BATCH_LESS_THAN_L1,
) -> MatmulConfig:
    """Return the SpecialBasicBlock template: all sizes of one core are fixed."""
    return _made(
        basic_m=basic_m,
        basic_n=basic_n,
        basic_k=basic_k,
        single_core_m=single_core_m,
        single_core_n=single_core_n,
        single_core_k=single_core_k,
        step_m=step_m,
        step_n=step_n,
        intrinsics_check=intrinsics_limit,
        is_n_batch=batch_loop,
        batch_mode=bmm_mode,
    )


def get_mdl_config(
    intrinsics_limit: bool | None = False,
    batch_loop: bool | None = False,
    do_mte2_preload: int | None = 0,
    is_vec_nd2_nz: bool | None = False,
    is_per_tensor: bool | None = False,
    has_anti_quant_offset: bool | None = False,
    en_unit_flag: bool | None = False,
    is_msg_reuse: bool | None = True,
    enable_ub_reuse: bool | None = True,
    enable_l1_cache_ub: bool | None = False,
    enable_mix_dual_master: bool | None = False,
    enable_kdim_reorder_load: bool | None = False,
) -> MatmulConfig:
    """Return the MDL template: several base blocks a copy (`step_…` of the tiling)."""
    return _made(
        intrinsics_check=intrinsics_limit,
        is_n_batch=batch_loop,
        do_mte2_preload=do_mte2_preload,
        en_vec_nd2nz=is_vec_nd2_nz,
        is_per_tensor=is_per_tensor,
        has_anti_quant_offset=has_anti_quant_offset,
        en_unit_flag=en_unit_flag,
        enable_reuse=is_msg_reuse,
        enable_ub_reuse=enable_ub_reuse,
        enable_l1_cache_ub=enable_l1_cache_ub,
        enable_mix_dual_master=enable_mix_dual_master,
        enable_kdim_reorder_load=enable_kdim_reorder_load,
    )


def get_special_mdl_config(
    intrinsics_limit: bool | None = False,
    batch_loop: bool | None = False,
    do_mte2_pre_load: int | None = 0,
    is_vec_nd2_nz: bool | None = False,
    is_per_tensor: bool | None = False,
    has_anti_quant_offset: bool | None = False,
) -> MatmulConfig:
    """Return the SpecialMDL template."""
    return _made(
        intrinsics_check=intrinsics_limit,
        is_n_batch=batch_loop,
        do_mte2_preload=do_mte2_pre_load,
        en_vec_nd2nz=is_vec_nd2_nz,
        is_per_tensor=is_per_tensor,
        has_anti_quant_offset=has_anti_quant_offset,
    )


def get_ib_share_norm_config(
    intrinsics_limit: bool | None = False,
    batch_loop: bool | None = False,
    is_vec_nd2_nz: bool | None = False,
    bmm_mode: BatchMode | None = BatchMode.BATCH_LESS_THAN_L1,
    is_double_cache: bool | None = False,
    en_unit_flag: bool | None = True,
) -> MatmulConfig:
    """Return the IBShare template: the two vector cores of an AI Core share an operand in L1."""
    return _made(
        intrinsics_check=intrinsics_limit,
        is_n_batch=batch_loop,
        en_vec_nd2nz=is_vec_nd2_nz,
        batch_mode=bmm_mode,
        enable_double_cache=is_double_cache,
        en_unit_flag=en_unit_flag,
    )


_MODE_FIELD = {
    MatmulConfigMode.CONFIG_NORM: "do_norm",
    MatmulConfigMode.CONFIG_MDL: "do_multi_data_load",
    MatmulConfigMode.CONFIG_SPECIALMDL: "do_special_mdl",
    MatmulConfigMode.CONFIG_IBSHARE: "do_ib_share_norm",
}
_OTHER_NAME = {
    "intrinsics_limit": "intrinsics_check",
    "en_vec_nd2_nz": "en_vec_nd2nz",
    "enable_l1_cache": "enable_l1_cache_ub",
    "do_mte2_pre_load": "do_mte2_preload",
    "is_a2_b2_shared": "is_a2b2_shared",
}


def get_mm_config(*args: Any, **kwargs: Any) -> MatmulConfig:
    """Return a template from any of MatmulShapeParams, …QuantParams, …BatchParams, …FuncParams, a MatmulConfigMode."""
    config = MatmulConfig()
    known = {field.name for field in fields(MatmulConfig)}
    for part in (*args, *kwargs.values()):
        if isinstance(part, MatmulConfigMode):
            setattr(config, _MODE_FIELD[part], True)
        elif isinstance(
            part, (MatmulShapeParams, MatmulQuantParams, MatmulBatchParams, MatmulFuncParams)
        ):
            for name, value in vars(part).items():
                target = _OTHER_NAME.get(name, name)
                assert target in known, target
                setattr(config, target, value)
        else:
            fault(
                "ILLEGAL_PARAM",
                "matmul-config",
                f"get_mm_config takes MatmulShapeParams, MatmulQuantParams, MatmulBatchParams, MatmulFuncParams and a "
                f"MatmulConfigMode, got {part!r}",
            )
    return config


def get_matmul_api_tiling(
    mm_cfg: MatmulConfig,
    a_type: MatmulType,
    b_type: MatmulType,
    c_type: MatmulType,
    bias_type: MatmulType,
    l1_size: int | None = None,
) -> MatmulApiStaticTiling:
    """Return what a template fixes of the tiling: base and single-core sizes, and the depths that fit L1.

    The other fields are −1: they come from the tiling at run time.
    """
    base_m, base_n, base_k = mm_cfg.basic_m, mm_cfg.basic_n, mm_cfg.basic_k
    if not base_m or not base_n or not base_k:
        fault(
            "ILLEGAL_PARAM",
            "matmul-config",
            f"get_matmul_api_tiling: the template needs base sizes known beforehand, basic_m, basic_n and basic_k are "
            f"{base_m}, {base_n}, {base_k}; use get_basic_config or MatmulShapeParams",
        )
    room = (l1_size or _L1_BYTES) // 2
    size_a = base_m * base_k * a_type.dtype.size
    size_b = base_n * base_k * b_type.dtype.size
    depth = max(1, min(room // (size_a + size_b), 8) // 2 * 2)
    tiling = MatmulApiStaticTiling(
        base_m=base_m,
        base_n=base_n,
        base_k=base_k,
        depth_a1=depth,
        depth_b1=depth,
        step_m=mm_cfg.step_m or 1,
        step_n=mm_cfg.step_n or 1,
        step_k_a=max(depth // 2, 1),
        step_k_b=max(depth // 2, 1),
        db_l0a=2,
        db_l0b=2,
        db_l0c=1,
    )
    for name in ("single_core_m", "single_core_n", "single_core_k"):
        if getattr(mm_cfg, name):
            setattr(tiling, name, getattr(mm_cfg, name))
    return tiling
