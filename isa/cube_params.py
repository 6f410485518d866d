"""Parameter structures and modes of the cube side, with pyasc's field names, order and defaults.

Only data: what the fields mean is checked where they are used. Lengths of matrices are in elements;
a fractal is 512 bytes in L1, L0A and L0B.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from isa.faults import fault


class QuantModes(IntEnum):
    """What fixpipe does to each value on its way out of L0C.

    F322F16 and F322BF16 round float32 to 16 bits. DEQF16 scales int32 to float16. QF322B8_PRE (from float32)
    and REQ8 (from int32) scale to 8 bits. A V in front: one scale for each column instead of one for all.
    """

    NoQuant = 0
    F322F16 = 1
    F322BF16 = 2
    DEQF16 = 3
    VDEQF16 = 4
    QF322B8_PRE = 5
    VQF322B8_PRE = 6
    REQ8 = 7
    VREQ8 = 8


class CO2Layout(IntEnum):
    """How fixpipe lays its result out: NZ (columns of fractals) or ROW_MAJOR (plain rows)."""

    NZ = 0
    ROW_MAJOR = 1
    COLUMN_MAJOR = 2


@dataclass(frozen=True, slots=True)
class FixpipeConfig:
    """Layout of fixpipe's result. `FixpipeConfig.cfg_nz()` and `FixpipeConfig.cfg_row_major()` make one."""

    layout: CO2Layout = CO2Layout.ROW_MAJOR

    @classmethod
    def cfg_nz(cls) -> FixpipeConfig:
        """Return the configuration for NZ output."""
        return cls(CO2Layout.NZ)

    @classmethod
    def cfg_row_major(cls) -> FixpipeConfig:
        """Return the configuration for row-major output."""
        return cls(CO2Layout.ROW_MAJOR)


@dataclass(slots=True, unsafe_hash=True)
class Nd2NzParams:
    """`nd_num` row-major matrices of `n_value` rows and `d_value` columns on their way to NZ.

    Source strides are in elements. `dst_nz_c0_stride` (between column groups) and `dst_nz_n_stride` (between
    rows) are in 32-byte blocks, `dst_nz_matrix_stride` in elements; all run from start to start.
    """

    nd_num: int
    n_value: int
    d_value: int
    src_nd_matrix_stride: int
    src_d_value: int
    dst_nz_c0_stride: int
    dst_nz_n_stride: int
    dst_nz_matrix_stride: int


@dataclass(slots=True, unsafe_hash=True)
class Nz2NdParamsFull:
    """`nd_num` NZ matrices in UB, 16 columns a group, on their way to rows in GM.

    `src_nd_matrix_stride` is in 256 elements, `src_n_stride` (between column groups) in 16 elements,
    `dst_d_stride` (between rows) and `dst_nd_matrix_stride` in elements; all run from start to start.
    """

    nd_num: int
    n_value: int
    d_value: int
    src_nd_matrix_stride: int
    src_n_stride: int
    dst_d_stride: int
    dst_nd_matrix_stride: int


@dataclass(slots=True, unsafe_hash=True)
class DataCopyCO12DstParams:
    """`data_copy` out of L0C, which is a fixpipe: see `FixpipeParamsV220`. Rows with `nz2nd_en`, else NZ."""

    n_size: int
    m_size: int
    dst_stride: int
    src_stride: int
    quant_pre: QuantModes = QuantModes.NoQuant
    relu_pre: int = 0
    channel_split: bool = False
    nz2nd_en: bool = False


@dataclass(slots=True, unsafe_hash=True)
class FixpipeParamsV220:
    """`m_size` rows by `n_size` columns out of L0C.

    `src_stride` is the pitch of the column groups in L0C, in rows of 16 elements (rows rounded up to 16).
    `dst_stride` is in elements between rows (ROW_MAJOR), or in 32-byte blocks between column groups (NZ).
    `src_nd_stride` is in 1024 bytes, `dst_nd_stride` in elements, for `nd_num` matrices (ROW_MAJOR only).
    `deq_scalar` holds the scale's bits: see `quant_parameter`.
    """

    n_size: int
    m_size: int
    src_stride: int
    dst_stride: int
    quant_pre: QuantModes = QuantModes.NoQuant
    deq_scalar: int = 0
    nd_num: int = 1
    src_nd_stride: int = 0
    dst_nd_stride: int = 0
    relu_en: bool = False
    unit_flag: int = 0
    is_channel_split: bool = False


@dataclass(slots=True, unsafe_hash=True)
class LoadData2DParams:
    """`repeat_times` fractals of 512 bytes.

    Fractal i comes from fractal `start_index + i * src_stride` of the source (downward with `addr_mode` 1)
    and goes to fractal `i * (1 + dst_gap)` of the destination. `sid` is reserved.
    """

    start_index: int = 0
    repeat_times: int = 1
    src_stride: int = 0
    sid: int = 0
    dst_gap: int = 0
    if_transpose: bool = False
    addr_mode: int = 0


@dataclass(slots=True, unsafe_hash=True)
class LoadData2dTransposeParams:
    """`repeat_times` square blocks: 16 × 16 elements of 16 or 32 bits, 32 × 32 of 8 bits.

    `start_index` and `src_stride` count square blocks. Fractal j of block i goes to fractal
    `i * (1 + dst_gap) + j * (1 + dst_frac_gap)` of the destination.
    """

    start_index: int = 0
    repeat_times: int = 1
    src_stride: int = 0
    dst_gap: int = 0
    dst_frac_gap: int = 0
    addr_mode: int = 0


@dataclass(slots=True, unsafe_hash=True)
class LoadData3DParamsV2:
    """An `l1_h` × `l1_w` image of `channel_size` channels in L1 (NC1HWC0), unfolded to a matrix.

    With a 1 × 1 filter and stride 1 it loads a part of an NZ matrix: `m_extension` rows (pixels) from
    `m_start_pt`, `k_extension` columns (channels) from `k_start_pt`.
    """

    pad_list: tuple[int, ...] = (0, 0, 0, 0)
    l1_h: int = 1
    l1_w: int = 1
    channel_size: int = 1
    k_extension: int = 1
    m_extension: int = 1
    k_start_pt: int = 0
    m_start_pt: int = 0
    stride_w: int = 1
    stride_h: int = 1
    filter_w: int = 1
    filter_h: int = 1
    dilation_filter_w: int = 1
    dilation_filter_h: int = 1
    en_transpose: bool = False
    pad_value: float = 0
    filter_size_w: bool = False
    filter_size_h: bool = False
    f_matrix_ctrl: bool = False


@dataclass(slots=True, unsafe_hash=True)
class LoadDataRepeatParam:
    """Repeats of the 3D load: how many, their distance in 16 elements, along the height (0) or the width (1)."""

    repeat_time: int = 1
    repeat_stride: int = 0
    repeat_mode: int = 0


@dataclass(slots=True, unsafe_hash=True)
class InitConstValueParams:
    """`repeat_times` runs of `block_num` blocks with `dst_gap` blocks between: 32 bytes each in L1, 512 in L0."""

    repeat_times: int = 0
    block_num: int = 0
    dst_gap: int = 0
    init_value: float = 0


_MMAD_FORMS = {
    6: ("m", "n", "k", "unit_flag", "cmatrix_source", "cmatrix_init_val"),
    8: ("m", "n", "k", "is_bias", "fm_offset", "en_ssparse", "en_winograd_a", "en_winograd_b"),
    11: (
        "m", "n", "k", "is_bias", "fm_offset", "en_ssparse", "en_winograd_a", "en_winograd_b", "unit_flag",
        "cmatrix_source", "cmatrix_init_val",
    ),
}  # fmt: skip
"""What values by position are, by the most of them that a form has."""


@dataclass(slots=True, unsafe_hash=True, init=False)
class MmadParams:
    """Real sizes of a matrix product and where C starts: zero, bias (BT), or what L0C holds.

    `MmadParams(m, n, k, unit_flag, cmatrix_source, cmatrix_init_val)`; eight values by position are the old form
    `(m, n, k, is_bias, fm_offset, en_ssparse, en_winograd_a, en_winograd_b)`, eleven pyasc's both.
    `cmatrix_init_val` True: zero. False: bias where `cmatrix_source`, else L0C. `is_bias` is the old way to say
    that L0C is added to. `unit_flag` is 0, 2 (check, keep) or 3 (check, finish).
    """

    m: int = 0
    n: int = 0
    k: int = 0
    unit_flag: int = 0
    cmatrix_source: bool = False
    cmatrix_init_val: bool = True
    is_bias: bool = False
    fm_offset: int = 0
    en_ssparse: bool = False
    en_winograd_a: bool = False
    en_winograd_b: bool = False

    def __init__(self, *values: Any, **named: Any) -> None:
        form = next((names for most, names in _MMAD_FORMS.items() if len(values) <= most), ())
        given = dict(zip(form, values, strict=False)) if form else {}
        for name in named:
            if name not in self.__dataclass_fields__ or name in given:
                fault(
                    "ILLEGAL_PARAM",
                    "form",
                    f"MmadParams: {name} is {'given twice' if name in given else 'no member'} (members: "
                    f"{', '.join(self.__dataclass_fields__)})",
                )
        if len(values) > max(_MMAD_FORMS):
            fault("ILLEGAL_PARAM", "form", f"MmadParams takes 6, 8 or 11 values, got {len(values)}")
        given |= named
        for name, member in self.__dataclass_fields__.items():
            value = given.get(name)
            setattr(self, name, member.default if value is None else value)


SCALE_MASK = 0xFFFF_E000
"""The bits of a float32 scale that fixpipe keeps: sign, 8 exponent, 10 mantissa bits (pyasc's fixpipe page)."""


def quant_parameter(scale: float, offset: int = 0, *, signed: bool = True) -> int:
    """Return the 64-bit word that fixpipe's 8-bit and float16 modes take (an addition to pyasc).

    Bits 0–31: the scale as float32, its low 13 bits cleared. Bits 37–45: the offset, −256 to 255, added after
    scaling. Bit 46: the 8-bit result is signed (the layout that CANN's TransQuantParam documents).

    >>> hex(quant_parameter(0.5))
    '0x40003f000000'
    """
    if not -256 <= offset <= 255:
        fault(
            "ILLEGAL_PARAM",
            "quant-offset-limit",
            f"quant_parameter: offset is {offset}, the field has 9 bits: -256 to 255",
        )
    bits = int(np.array(scale, np.float32).view(np.uint32)) & SCALE_MASK
    return bits | (offset & 0x1FF) << 37 | int(signed) << 46
