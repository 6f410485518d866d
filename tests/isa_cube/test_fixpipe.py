"""fixpipe against loops over elements and a second reading of the quantisation rules."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isa.cube_forms import CubeCall
from isa.cube_params import (
    CO2Layout,
    FixpipeConfig,
    FixpipeParamsV220,
    QuantModes,
    quant_parameter,
)
from isa.faults import IsaFault
from isa.fixpipe import fixpipe
from isa.types import (
    DType,
    Pipe,
    Space,
    bfloat16,
    float16,
    float32,
    int8,
    int32,
    uint8,
    uint64,
)
from tests.isa_cube.kit import bits, cube, get, gm, local, numbers, put, refusal, vector

NZ, ROWS = FixpipeConfig.cfg_nz(), FixpipeConfig.cfg_row_major()
Mode = QuantModes
L1, L0C, FB = Space.L1, Space.L0C, Space.FB
PLAIN = {
    float32: [(Mode.NoQuant, float32), (Mode.F322F16, float16), (Mode.F322BF16, bfloat16)],
    int32: [(Mode.NoQuant, int32)],
}
KINDS = st.sampled_from([(source, *pair) for source, pairs in PLAIN.items() for pair in pairs])


def _convert(values: np.ndarray, dtype: DType, relu: bool) -> np.ndarray:
    kept = np.where(values < 0, 0, values).astype(values.dtype) if relu else values
    return kept.astype(dtype.numpy)


@given(
    kind=KINDS,
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 40), st.integers(1, 50)),
    spare=st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 2), st.integers(0, 20)),
    relu=st.booleans(),
    flag=st.sampled_from([0, 2, 3]),
)
@settings(max_examples=120, deadline=None)
def test_rows(
    kind: tuple[DType, Mode, DType],
    sizes: tuple[int, int, int],
    spare: tuple[int, int, int, int],
    relu: bool,
    flag: int,
) -> None:
    source_type, mode, dtype = kind
    matrices, rows, columns = sizes
    src_pitch = rows + spare[0]
    groups = -(-columns // 16)
    src_matrix = max(-(-groups * src_pitch // 16) + spare[2], 1)
    pitch = columns + spare[1]
    dst_matrix = rows * pitch + spare[3]
    cells = numbers(rows, matrices * src_matrix * 256 + 256, source_type)
    out = numbers(9, matrices * dst_matrix + 32, dtype)
    expected = out.copy()
    converted = _convert(cells, dtype, relu)
    for m in range(matrices):
        for r in range(rows):
            for c in range(columns):
                place = m * src_matrix * 256 + (c // 16) * src_pitch * 16 + r * 16 + c % 16
                expected[m * dst_matrix + r * pitch + c] = converted[place]
    params = FixpipeParamsV220(
        columns, rows, src_pitch, pitch, mode, 0, matrices, src_matrix, dst_matrix, relu, flag
    )
    with cube() as stream:
        source = local(L0C, source_type, cells.size, 64)
        put(stream, source, cells)
        fixpipe(gm(out), source, params)
        call = stream.issued[-1]
        assert isinstance(call, CubeCall)
        assert (call.pipe, call.cost, call.unit_flag) == (Pipe.FIX, ("fixpipe", "gm"), flag)
        assert call.bytes == matrices * rows * columns * dtype.size
        assert call.lint is None
        assert int(np.diff(call.reads[0].ranges(), axis=1).sum()) == matrices * rows * columns * 4
    assert bits(out) == bits(expected)


@given(
    kind=KINDS,
    to_l1=st.booleans(),
    rows=st.integers(1, 40),
    groups=st.integers(1, 6),
    spare=st.tuples(st.integers(0, 5), st.integers(0, 9)),
    split=st.booleans(),
)
@settings(max_examples=120, deadline=None)
def test_column_groups(
    kind: tuple[DType, Mode, DType],
    to_l1: bool,
    rows: int,
    groups: int,
    spare: tuple[int, int],
    split: bool,
) -> None:
    source_type, mode, dtype = kind
    assume(not split or dtype is float32)
    width = 8 if split else 16
    columns = groups * width
    src_pitch = rows + spare[0]
    pitch = rows * width * dtype.size // 32 + spare[1]  # 32-byte blocks
    cells = numbers(rows, -(-columns // 16) * src_pitch * 16, source_type)
    size = groups * pitch * 32 // dtype.size + 32
    out = numbers(9, size, dtype)
    expected = out.copy()
    converted = _convert(cells, dtype, False)
    for r in range(rows):
        for c in range(columns):
            place = (c // width) * pitch * 32 // dtype.size + r * width + c % width
            expected[place] = converted[(c // 16) * src_pitch * 16 + r * 16 + c % 16]
    params = FixpipeParamsV220(
        columns, rows, src_pitch, pitch, quant_pre=mode, is_channel_split=split
    )
    with cube() as stream:
        source = local(L0C, source_type, cells.size)
        put(stream, source, cells)
        if to_l1:
            target = local(L1, dtype, size, 64)
            put(stream, target, out)
            fixpipe(target, source, params, NZ)
            out = get(stream, target)
        else:
            fixpipe(gm(out), source, params, config=FixpipeConfig.cfg_nz)
        assert stream.issued[-1].cost == ("fixpipe", "l1" if to_l1 else "gm")
        assert stream.issued[-1].bytes == rows * columns * dtype.size
    assert bits(out) == bits(expected)


@pytest.mark.parametrize("columns", [16, 32, 48])
def test_eight_bit_column_groups_are_32_wide(columns: int) -> None:
    cells = numbers(3, columns * 16, int32)
    out = np.full(64 * 16, 77, np.int8)
    word = quant_parameter(1.0)
    params = FixpipeParamsV220(columns, 16, 16, 16, Mode.REQ8, word)
    with cube() as stream:
        source = local(L0C, int32, cells.size)
        put(stream, source, cells)
        fixpipe(gm(out), source, params, NZ)
        assert stream.issued[-1].bytes == columns * 16
    for r in range(16):
        for c in range(64):
            value = 77 if c >= columns else cells[(c // 16) * 256 + r * 16 + c % 16]
            assert out[(c // 32) * 512 + r * 32 + c % 32] == value


def _scale(value: float) -> Fraction:
    """A scale with 10 mantissa bits, toward zero, as an exact fraction."""
    mantissa, exponent = math.frexp(float(np.float32(value)))
    return Fraction(math.trunc(mantissa * 2048), 2048) * Fraction(2) ** exponent


def _nearest_even(value: Fraction) -> int:
    return round(value)


@given(
    mode=st.sampled_from([Mode.QF322B8_PRE, Mode.VQF322B8_PRE, Mode.REQ8, Mode.VREQ8]),
    dtype=st.sampled_from([int8, uint8]),
    columns=st.integers(1, 40),
    relu=st.booleans(),
    place=st.sampled_from([L1, FB]),
    data=st.data(),
)
@settings(max_examples=80, deadline=None)
def test_eight_bits(
    mode: Mode, dtype: DType, columns: int, relu: bool, place: Space, data: st.DataObject
) -> None:
    source_type = float32 if mode in (Mode.QF322B8_PRE, Mode.VQF322B8_PRE) else int32
    per_column = mode in (Mode.VQF322B8_PRE, Mode.VREQ8)
    count = columns if per_column else 1
    scales = data.draw(st.lists(st.floats(-4, 4, width=32), min_size=count, max_size=count))
    offsets = data.draw(st.lists(st.integers(-256, 255), min_size=count, max_size=count))
    words = [
        quant_parameter(s, o, signed=dtype is int8) for s, o in zip(scales, offsets, strict=True)
    ]
    rows = 3
    cells = numbers(columns, -(-columns // 16) * rows * 16, source_type)
    if source_type is float32:
        cells = cells * np.float32(30)
    out = np.zeros((rows, columns), dtype.numpy)
    params = FixpipeParamsV220(
        columns, rows, rows, columns, mode, 0 if per_column else words[0], relu_en=relu
    )
    with cube() as stream:
        source = local(L0C, source_type, cells.size)
        put(stream, source, cells)
        if per_column:
            padded = -(-columns // 16) * 16
            table = local(place, uint64, padded, 128)
            put(stream, table, np.array(words + [0] * (padded - columns), np.uint64))
            fixpipe(gm(out), source, table, params, ROWS)
            assert len(stream.issued) == (2 if place is L1 else 1)
            if place is L1:
                load = stream.issued[0]
                assert (load.pipe, load.cost) == (Pipe.FIX, ("fixpipe", "fb"))
                assert load.bytes == padded * 8
        else:
            fixpipe(gm(out), source, params)
    low, high = (-128, 127) if dtype is int8 else (0, 255)
    for r in range(rows):
        for c in range(columns):
            which = c if per_column else 0
            scaled = Fraction(float(cells[(c // 16) * rows * 16 + r * 16 + c % 16])) * _scale(
                scales[which]
            )
            if relu:
                scaled = max(scaled, Fraction(0))
            assert out[r, c] == min(max(_nearest_even(scaled) + offsets[which], low), high)


@given(
    values=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=16, max_size=16),
    scale=st.floats(-2, 2, width=32),
    relu=st.booleans(),
    per_column=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_int32_to_float16_saturates(
    values: list[int], scale: float, relu: bool, per_column: bool
) -> None:
    out = np.zeros(16, np.float16)
    word = quant_parameter(scale)
    mode = Mode.VDEQF16 if per_column else Mode.DEQF16
    params = FixpipeParamsV220(16, 1, 16, 16, mode, word, relu_en=relu)
    with cube() as stream:
        source = local(L0C, int32, 16)
        put(stream, source, np.array(values, np.int32))
        if per_column:
            table = local(FB, uint64, 16)
            put(stream, table, np.full(16, word, np.uint64))
            fixpipe(gm(out), source, table, params)
        else:
            fixpipe(gm(out), source, params)
    for value, result in zip(values, out, strict=True):
        exact = value * _scale(scale)
        if relu:
            exact = max(exact, Fraction(0))
        wanted = np.float16(np.clip(float(exact), -65504, 65504))
        assert result == wanted


def test_rounding_to_sixteen_bits_overflows_to_infinity() -> None:
    values = np.array(
        [70000, -70000, 65519, 65520, np.nan, np.inf, 1 + 2**-11, 3e38] * 2, np.float32
    )
    half, brain = np.zeros(16, np.float16), np.zeros(16, bfloat16.numpy)
    with cube() as stream:
        source = local(L0C, float32, 16)
        put(stream, source, values)
        fixpipe(gm(half), source, FixpipeParamsV220(16, 1, 16, 16, Mode.F322F16))
        fixpipe(gm(brain), source, FixpipeParamsV220(16, 1, 16, 16, Mode.F322BF16))
    assert half[:4].tolist() == [np.inf, -np.inf, 65504, np.inf]
    assert np.isnan(half[4])
    assert half[5:8].tolist() == [np.inf, 1.0, np.inf]
    assert brain[:2].astype(np.float32).tolist() == [70144, -70144]
    assert np.isfinite(brain[7].astype(np.float32))


def test_scales_lose_their_low_bits() -> None:
    assert quant_parameter(np.nextafter(np.float32(1), np.float32(2))) == quant_parameter(1.0)
    assert quant_parameter(1.0, -1, signed=False) == 0x3F800000 | 0x1FF << 37
    assert quant_parameter(1.0) == 0x3F800000 | 1 << 46


def test_a_fixpipe_to_the_next_tile_is_the_same_call() -> None:
    out = np.zeros((64, 16), np.float32)
    target = gm(out)
    with cube() as stream:
        source = local(L0C, float32, 256)
        for tile in range(4):
            put(stream, source, np.full(256, tile + 1, np.float32))
            fixpipe(target[tile * 256 :], source, FixpipeParamsV220(16, 16, 16, 16, unit_flag=3))
        assert [call.template is stream.issued[0] for call in stream.issued] == [True] * 4
        assert [call.unit_flag for call in stream.issued] == [3] * 4  # type: ignore[attr-defined]
        fault = refusal(
            lambda: fixpipe(
                target[49 * 16 :], source, FixpipeParamsV220(16, 16, 16, 16, unit_flag=3)
            )
        )
        assert fault.code == "gm-out-of-bounds"
    assert np.array_equal(out[:, 0], np.repeat([1, 2, 3, 4], 16))


@pytest.mark.parametrize(("columns", "loaded"), [(1, 128), (16, 128), (17, 256), (40, 384)])
def test_parameters_come_to_fb_in_whole_blocks_of_128_bytes(columns: int, loaded: int) -> None:
    out = np.zeros((2, columns), np.int8)
    cells = numbers(columns, -(-columns // 16) * 2 * 16, int32)
    table = np.array([quant_parameter(c + 1) for c in range(48)], np.uint64)
    with cube() as stream:
        source, words = local(L0C, int32), local(L1, uint64, 48, 64)
        put(stream, source, cells)
        put(stream, words, table)
        fixpipe(gm(out), source, words, F(columns, 2, 2, columns, Mode.VREQ8))
        assert [(call.bytes, call.pipe) for call in stream.issued] == [
            (loaded, Pipe.FIX), (2 * columns, Pipe.FIX),
        ]  # fmt: skip
        assert len(stream.issued[1].reads) == 2
    for r in range(2):
        for c in range(columns):
            wanted = int(cells[(c // 16) * 32 + r * 16 + c % 16]) * (c + 1)
            assert out[r, c] == min(max(wanted, -128), 127)


def test_a_single_column_group_has_no_distance() -> None:
    cells = numbers(1, 256, float32)
    out = np.zeros((16, 16), np.float32)
    with cube() as stream:
        source = local(L0C, float32)
        put(stream, source, cells)
        fixpipe(gm(out), source, FixpipeParamsV220(16, 16, 0, 16))
        assert stream.issued[-1].lint is None
    assert bits(out) == bits(cells)


def test_no_matrix_does_nothing() -> None:
    out = np.zeros(256, np.float32)
    with cube() as stream:
        fixpipe(gm(out), local(L0C, float32), FixpipeParamsV220(16, 16, 16, 16, nd_num=0))
        assert stream.issued[-1].writes == ()


@pytest.mark.parametrize(
    ("params", "code"),
    [
        (FixpipeParamsV220(32, 16, 8, 32), "src-stride-too-small"),
        (FixpipeParamsV220(32, 16, 16, 16), "rows-overlap"),
        (
            FixpipeParamsV220(16, 16, 16, 16, nd_num=2, src_nd_stride=1, dst_nd_stride=8),
            "rows-overlap",
        ),
    ],
)
def test_what_is_legal_but_hardly_meant(params: FixpipeParamsV220, code: str) -> None:
    with cube() as stream:
        fixpipe(gm(np.zeros(4096, np.float32)), local(L0C, float32), params)
        lint = stream.issued[-1].lint
        assert lint is not None
        assert lint[1] == code


F = FixpipeParamsV220
C = local(L0C, float32)
D = local(L0C, int32)
T = local(FB, uint64)
GM32 = gm(np.zeros(4096, np.float32), "c")
GM16 = gm(np.zeros(4096, np.float16), "c")
GM8 = gm(np.zeros(4096, np.int8), "c")
IN1 = local(L1, float16)
REFUSED = [
    (lambda: fixpipe(GM32, local(Space.L0A, float32), F(16, 16, 16, 16)), "wrong-position", "L0C (CO1)"),
    (lambda: fixpipe(local(Space.UB, float32), C, F(16, 16, 16, 16)), "wrong-position", "GM (a GlobalTensor) or L1"),
    (lambda: fixpipe(GM32, local(L0C, float16), F(16, 16, 16, 16)), "wrong-dtype", "float32, int32"),
    (lambda: fixpipe(gm(np.zeros(256, np.int16)), C, F(16, 16, 16, 16)), "wrong-dtype", "int16"),
    (lambda: fixpipe(GM16, C, F(16, 16, 16, 16)), "quant-dtype", "use F322F16"),
    (lambda: fixpipe(GM32, C, F(16, 16, 16, 16, Mode.F322F16)), "quant-dtype", "use NoQuant"),
    (lambda: fixpipe(GM16, D, F(16, 16, 16, 16, Mode.F322F16)), "quant-dtype", "use DEQF16 or VDEQF16"),
    (lambda: fixpipe(GM8, C, F(16, 16, 16, 16, Mode.REQ8)), "quant-dtype", "QF322B8_PRE or VQF322B8_PRE"),
    (lambda: fixpipe(gm(np.zeros(256, np.int32)), C, F(16, 16, 16, 16)), "quant-dtype", "no mode does that"),
    (lambda: fixpipe(GM32, C, F(16, 16, 16, 16, 99)), "quant-pre", "99"),
    (lambda: fixpipe(GM8, D, F(16, 16, 16, 16, Mode.REQ8, 0.5)), "not-an-integer", "quant_parameter"),
    (lambda: fixpipe(GM32, local(L0C, float32, 999, 32), F(16, 16, 16, 16)), "misaligned-operand", "64-byte"),
    (lambda: fixpipe(local(L1, float16, 999, 16), C, F(16, 16, 16, 16, Mode.F322F16), NZ), "misaligned-operand", "32"),
    (lambda: fixpipe(IN1, C, F(16, 16, 16, 16, Mode.F322F16)), "layout", "to L1 the layout is NZ only"),
    (lambda: fixpipe(GM32, C, F(16, 16, 16, 16), FixpipeConfig(CO2Layout.COLUMN_MAJOR)), "layout", "910B"),
    (lambda: fixpipe(GM32, C, F(17, 16, 16, 32), NZ), "n-size-alignment", "multiples of 16"),
    (lambda: fixpipe(GM32, C, F(12, 16, 16, 16, is_channel_split=True), NZ), "n-size-alignment", "of 8"),
    (lambda: fixpipe(GM32, C, F(16, 16, 16, 16, is_channel_split=True)), "channel-split", "NZ output only"),
    (lambda: fixpipe(GM16, C, F(16, 16, 16, 16, Mode.F322F16, is_channel_split=True), NZ), "channel-split", "float16"),
    (lambda: fixpipe(GM32, C, F(0, 16, 16, 16)), "n-size-limit", "1 to 4095"),
    (lambda: fixpipe(GM32, C, F(16, 8193, 16, 16)), "m-size-limit", "1 to 8192"),
    (lambda: fixpipe(GM32, C, F(16, 16, 65536, 16)), "src-stride-limit", ""),
    (lambda: fixpipe(GM32, C, F(16, 16, 16, 0)), "dst-stride-limit", "elements"),
    (lambda: fixpipe(GM32, C, F(16, 16, 16, 0), NZ), "dst-stride-limit", "blocks of 32 bytes"),
    (lambda: fixpipe(GM32, C, F(16, 16, 16, 16, nd_num=2, dst_nd_stride=1)), "src-nd-stride-limit", "1 to 512"),
    (lambda: fixpipe(GM32, C, F(16, 16, 16, 16, nd_num=2, src_nd_stride=1)), "dst-nd-stride-limit", ""),
    (lambda: fixpipe(GM32, C, F(16, 16, 16, 16, nd_num=2), NZ), "nd-num-limit", "0 to 1"),
    (lambda: fixpipe(GM32, C, F(16, 16, 16, 16, unit_flag=1)), "unit-flag-limit", "fixpipe: unit_flag is 1"),
    (lambda: fixpipe(GM32, C, F(16, 16, 16, 16, relu_en=3)), "not-a-bool", "relu_en"),
    (lambda: fixpipe(GM32, C, F(16, 257, 257, 16)), "gm-out-of-bounds", "dst_stride = 16 elements"),
    (lambda: fixpipe(GM32, local(L0C, float32, 255), F(16, 16, 16, 16)), "tensor-out-of-bounds", "src_stride"),
    (lambda: fixpipe(GM32, C, F(32, 16, 2048, 32)), "memory-out-of-bounds", "L0C has 131072"),
    (lambda: fixpipe(GM8, D, F(16, 16, 16, 16, Mode.VREQ8)), "no-workspace", "cbuf_workspace"),
    (lambda: fixpipe(GM8, D, local(L1, float32), F(16, 16, 16, 16, Mode.VREQ8)), "wrong-dtype", "uint64"),
    (lambda: fixpipe(GM8, D, local(L1, uint64, 15), F(16, 16, 16, 16, Mode.VREQ8)), "tensor-out-of-bounds",
     "one 64-bit parameter each"),
    (lambda: fixpipe(GM8, D, local(FB, uint64, 15), F(16, 16, 16, 16, Mode.VREQ8)), "tensor-out-of-bounds", ""),
    (lambda: fixpipe(GM8, D, local(L0C, uint64), F(16, 16, 16, 16, Mode.VREQ8)), "wrong-position", "L1"),
    (lambda: fixpipe(GM32, C, T, F(16, 16, 16, 16)), "unused-workspace", "NoQuant has no use for it"),
    (lambda: fixpipe(GM32, C), "wrong-params", "got NoneType"),
    (lambda: fixpipe(GM32, C, 5), "wrong-params", "got int"),
    (lambda: fixpipe(GM32, C, F(16, 16, 16, 16), 5), "wrong-params", "FixpipeConfig, got int"),
    (lambda: fixpipe(GM32, C, T, F(16, 16, 16, 16), NZ, 1), "form", "more arguments"),
    (lambda: fixpipe(None, C, F(16, 16, 16, 16)), "wrong-operand", "NoneType"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_refused_and_why(case: int) -> None:
    act, code, words = REFUSED[case]
    with cube() as stream:
        fault = refusal(act)
        assert fault.code == code
        assert words in fault.message
        assert stream.issued == []


def test_fixpipe_belongs_to_the_cube_core() -> None:
    with vector():
        assert refusal(lambda: fixpipe(GM32, C, F(16, 16, 16, 16))).code == "wrong-core"


FIELDS = [
    "n_size", "m_size", "src_stride", "dst_stride", "quant_pre", "deq_scalar", "nd_num", "src_nd_stride",
    "dst_nd_stride", "relu_en", "unit_flag", "is_channel_split",
]  # fmt: skip


@given(
    place=st.sampled_from(FIELDS),
    layout=st.sampled_from([NZ, ROWS]),
    value=st.one_of(
        st.integers(-(2**40), 2**40), st.integers(0, 40), st.floats(), st.text(max_size=2),
        st.none(), st.lists(st.integers(), max_size=2), st.booleans(),
    ),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_bad_fields_are_refused_and_nothing_is_broken(
    place: str, layout: FixpipeConfig, value: object
) -> None:
    params = FixpipeParamsV220(16, 16, 16, 16)
    setattr(params, place, value)
    with cube() as stream:
        try:
            fixpipe(GM32, C, params, layout)
        except IsaFault as fault:
            assert fault.message.startswith("fixpipe: ")
            assert stream.issued == []
        else:
            assert len(stream.issued) == 1
