"""pyasc's `asc.adv`, the high-level part: libraries over the basic instructions."""

from ascend_sim.adv.config import (
    MatmulBatchParams,
    MatmulConfig,
    MatmulFuncParams,
    MatmulQuantParams,
    MatmulShapeParams,
    MatmulType,
    QuantConfig,
    get_basic_config,
    get_ib_share_norm_config,
    get_matmul_api_tiling,
    get_mdl_config,
    get_mm_config,
    get_normal_config,
    get_special_basic_config,
    get_special_mdl_config,
)
from ascend_sim.adv.matmul import Matmul
from ascend_sim.adv.records import (
    MatmulApiStaticTiling,
    RmsNormTiling,
    SoftmaxTiling,
    TCubeTiling,
)
from ascend_sim.adv.register import register_matmul

__all__ = [
    "Matmul",
    "MatmulApiStaticTiling",
    "MatmulBatchParams",
    "MatmulConfig",
    "MatmulFuncParams",
    "MatmulQuantParams",
    "MatmulShapeParams",
    "MatmulType",
    "QuantConfig",
    "RmsNormTiling",
    "SoftmaxTiling",
    "TCubeTiling",
    "get_basic_config",
    "get_ib_share_norm_config",
    "get_matmul_api_tiling",
    "get_mdl_config",
    "get_mm_config",
    "get_normal_config",
    "get_special_basic_config",
    "get_special_mdl_config",
    "register_matmul",
]
