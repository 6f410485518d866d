"""pyasc's `asc.lib.host`: the tiling of the high-level part, and the platform that it asks."""

from ascend_sim.adv.host.enums import (
    CubeFormat,
    DataType,
    DequantType,
    MatrixMadType,
    MatrixTraverse,
    ScheduleType,
    TPosition,
)
from ascend_sim.adv.host.multi_core import BatchMatmulTiling, MultiCoreMatmulTiling
from ascend_sim.adv.host.platform import (
    PlatformAscendC,
    PlatformAscendCManager,
    get_ascendc_platform,
)
from ascend_sim.adv.host.tiling import MatmulApiTiling, MatmulConfigParams
from ascend_sim.adv.records import TCubeTiling

__all__ = [
    "BatchMatmulTiling",
    "CubeFormat",
    "DataType",
    "DequantType",
    "MatmulApiTiling",
    "MatmulConfigParams",
    "MatrixMadType",
    "MatrixTraverse",
    "MultiCoreMatmulTiling",
    "PlatformAscendC",
    "PlatformAscendCManager",
    "ScheduleType",
    "TCubeTiling",
    "TPosition",
    "get_ascendc_platform",
]
