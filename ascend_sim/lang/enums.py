"""Enumerations that kernels and host programs pass around and no instruction of the 910B reads; values are pyasc's."""

from __future__ import annotations

from enum import IntEnum


class Hardware(IntEnum):
    """A physical memory, as `LocalMemAllocator` takes it."""

    GM = 0
    UB = 1
    L1 = 2
    L0A = 3
    L0B = 4
    L0C = 5
    BIAS = 6
    FIXBUF = 7
    MAX = 8


class DataFormat(IntEnum):
    """What a `ShapeInfo` says about the order of its dimensions."""

    ND = 0
    NZ = 1
    NCHW = 2
    NC1HWC0 = 3
    NHWC = 4


class CubeFormat(IntEnum):
    """Layout of a matrix that a Matmul object takes."""

    ND = 0
    NZ = 1


class LayoutMode(IntEnum):
    """How the batches of a Matmul object lie in memory."""

    NONE = 0
    NORMAL = 1
    BSNGD = 2
    SBNGD = 3
    BNGS1S2 = 4


class BatchMode(IntEnum):
    """How the batches of a Matmul object fit L1."""

    NONE = 0
    BATCH_LESS_THAN_L1 = 1
    BATCH_LARGE_THAN_L1 = 2
    SINGLE_LARGE_THAN_L1 = 3


class BatchOutMode(IntEnum):
    """How a Matmul object hands its batches out."""

    SINGLE_BATCH = 0
    MULTI_BATCH = 1
    DYNAMIC = 2


class IterateMode(IntEnum):
    """Which ways of iterating a Matmul object is built for."""

    ITERATE_MODE_NORMAL = 0b00000001
    ITERATE_MODE_ALL = 0b00000010
    ITERATE_MODE_BATCH = 0b00000100
    ITERATE_MODE_N_BATCH = 0b00001000
    ITERATE_MODE_DEFAULT = 0b11111111


class IterateOrder(IntEnum):
    """Along which axis a Matmul object goes first."""

    ORDER_M = 0
    ORDER_N = 1
    UNDEF = 2


class ScheduleType(IntEnum):
    """Which of a Matmul object's loops is innermost."""

    INNER_PRODUCT = 0
    OUTER_PRODUCT = 1


class MatmulConfigMode(IntEnum):
    """Which of its templates a Matmul object follows."""

    CONFIG_NORM = 1
    CONFIG_MDL = 2
    CONFIG_SPECIALMDL = 3
    CONFIG_IBSHARE = 4


class MatmulPolicy(IntEnum):
    """Which set of policies a Matmul object follows."""

    MatmulPolicy = 0
    TrianUpperMatmulPolicy = 1
    TrianLowerMatmulPolicy = 2
    NBuffer33MatmulPolicy = 3


class AippInputFormat(IntEnum):
    """Pixel format of the image instructions."""

    YUV420SP_U8 = 0
    XRGB8888_U8 = 1
    RGB888_U8 = 4
    YUV400_U8 = 9
