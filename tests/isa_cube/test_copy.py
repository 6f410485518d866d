"""data_copy's layout changes and the copies to BT and FB, against loops over elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isa import layout
from isa.cube_params import (
    DataCopyCO12DstParams,
    Nd2NzParams,
    Nz2NdParamsFull,
    QuantModes,
    quant_parameter,
)
from isa.fixpipe import set_fix_pipe_pre_quant_flag
from isa.move import data_copy
from isa.params import DataCopyParams
from isa.types import (
    DType,
    Pipe,
    Space,
    bfloat16,
    float16,
    float32,
    int8,
    int16,
    int32,
    uint64,
)
from tests.isa_cube.kit import bits, cube, get, gm, local, numbers, put, refusal, vector

QUICK = settings(max_examples=80, deadline=None)
TYPES = st.sampled_from([int8, float16, bfloat16, int16, float32, int32])


@given(
    dtype=TYPES,
    matrices=st.integers(1, 3),
    rows=st.integers(1, 20),
    columns=st.integers(1, 50),
    spare=st.tuples(st.integers(0, 7), st.integers(0, 9), st.integers(0, 3), st.integers(0, 2)),
    row_step=st.integers(1, 3),
)
@QUICK
def test_nd2nz_puts_each_element_where_the_formula_says(
    dtype: DType,
    matrices: int,
    rows: int,
    columns: int,
    spare: tuple[int, int, int, int],
    row_step: int,
) -> None:
    c0 = 32 // dtype.size
    groups = -(-columns // c0)
    pitch = columns + spare[0]
    src_matrix = rows * pitch + spare[1]
    group_step = rows * row_step + spare[2]
    dst_matrix = (groups * group_step + spare[3]) * c0
    source = numbers(rows, matrices * src_matrix, dtype)
    params = Nd2NzParams(
        matrices, rows, columns, src_matrix, pitch, group_step, row_step, dst_matrix
    )
    with cube() as stream:
        target = local(Space.L1, dtype, matrices * dst_matrix + 64, 32)
        expected = get(stream, target)
        for m in range(matrices):
            for r in range(rows):
                for c in range(groups * c0):
                    place = (
                        m * dst_matrix + (c // c0) * group_step * c0 + r * row_step * c0 + c % c0
                    )
                    value = source[m * src_matrix + r * pitch + c] if c < columns else 0
                    expected[place] = value
        data_copy(target, gm(source), params)
        assert bits(get(stream, target)) == bits(expected)
        call = stream.issued[-1]
        assert (call.pipe, call.bytes) == (Pipe.MTE2, matrices * rows * columns * dtype.size)
        assert call.extra.startswith("nd2nz")
        assert call.lint is None


@pytest.mark.parametrize("shape", [(16, 32), (20, 40), (1, 1)])
def test_the_ordinary_call_makes_nz(shape: tuple[int, int]) -> None:
    rows, columns = shape
    a = numbers(2, shape, float16)
    padded = -(-rows // 16) * 16
    expected = layout.nd_to_nz(a)
    with cube() as stream:
        target = local(Space.L1, float16, expected.size)
        put(stream, target, np.zeros(expected.size, np.float16))
        data_copy(target, gm(a), Nd2NzParams(1, rows, columns, 0, columns, padded, 1, 0))
        assert bits(get(stream, target)) == bits(expected)


def test_nd2nz_follows_the_view_that_it_is_given() -> None:
    a = numbers(2, (64, 32), float16)
    source = gm(a)
    with cube() as stream:
        target = local(Space.L1, float16, 16 * 32)
        for tile in range(4):
            part = source[tile * 16 * 32 :]
            data_copy(target, part, intri_params=Nd2NzParams(1, 16, 32, 0, 32, 16, 1, 0))
            expected = layout.nd_to_nz(a[tile * 16 : tile * 16 + 16])
            assert bits(get(stream, target)) == bits(expected)
        assert {call.template for call in stream.issued} == {stream.issued[0]}
        fault = refusal(
            lambda: data_copy(target, source[49 * 32 :], Nd2NzParams(1, 16, 32, 0, 32, 16, 1, 0))
        )
        assert fault.code == "gm-out-of-bounds"


def test_params_that_are_changed_after_the_call_change_nothing() -> None:
    a = numbers(2, (16, 16), float16)
    params = Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0)
    with cube() as stream:
        target = local(Space.L1, float16, 256)
        data_copy(target, gm(a), params)
        params.n_value = 1
        put(stream, target, np.zeros(256, np.float16))
        data_copy(target, gm(a), params)
        assert np.count_nonzero(get(stream, target)) == np.count_nonzero(a[0])
        params.n_value = 16
        data_copy(target, gm(a), params)
        assert bits(get(stream, target)) == bits(a)


@pytest.mark.parametrize("field", ["nd_num", "n_value", "d_value"])
def test_nd2nz_of_nothing_does_nothing(field: str) -> None:
    params = Nd2NzParams(1, 4, 16, 0, 16, 16, 1, 0)
    setattr(params, field, 0)
    with cube() as stream:
        data_copy(local(Space.L1, float16), gm(numbers(1, 64, float16)), params)
        assert stream.issued[-1].writes == ()


def test_strides_of_a_single_group_and_row_may_be_zero() -> None:
    a = numbers(2, 16, float16)
    with cube() as stream:
        target = local(Space.L1, float16, 16)
        data_copy(target, gm(a), Nd2NzParams(1, 1, 16, 0, 0, 0, 0, 0))
        assert bits(get(stream, target)) == bits(a)
        assert stream.issued[-1].lint is None


def test_loops_over_a_single_group_need_no_group_stride() -> None:
    a, out = numbers(2, 16, float16), np.zeros(16, np.float16)
    with vector() as stream:
        target = local(Space.UB, float16, 16)
        data_copy(target, gm(a), Nd2NzParams(1, 1, 16, 0, 16, 0, 1, 0))
        data_copy(gm(out), target, Nz2NdParamsFull(1, 1, 16, 0, 0, 16, 0))
        assert len(stream.issued) == 2
    assert bits(out) == bits(a)


def test_nd2nz_that_overwrites_itself_is_told() -> None:
    with cube() as stream:
        params = Nd2NzParams(1, 16, 32, 0, 32, 1, 1, 0)  # the column groups one block apart
        data_copy(local(Space.L1, float16), gm(numbers(1, 512, float16)), params)
        lint = stream.issued[-1].lint
        assert lint is not None
        assert "dst_nz_c0_stride 1" in lint[2]


@given(
    dtype=TYPES,
    sizes=st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(0, 4)),
    spare=st.tuples(st.integers(0, 7), st.integers(0, 9), st.integers(0, 3), st.integers(0, 2)),
)
@QUICK
def test_nd2nz_to_ub_is_a_loop_of_plain_copies(
    dtype: DType, sizes: tuple[int, int, int], spare: tuple[int, int, int, int]
) -> None:
    c0 = 32 // dtype.size
    matrices, rows, groups = sizes
    columns = groups * c0
    pitch, src_matrix = columns + spare[0], rows * (columns + spare[0]) + spare[1]
    group_step = max(rows + spare[2], 1)
    dst_matrix = (groups * group_step + spare[3]) * c0
    source = numbers(rows, matrices * src_matrix + 64, dtype)
    params = Nd2NzParams(matrices, rows, columns, src_matrix, pitch, group_step, 1, dst_matrix)
    with vector() as stream:
        target = local(Space.UB, dtype, matrices * dst_matrix + 64)
        expected = get(stream, target)
        for m in range(matrices):
            for r in range(rows):
                for c in range(columns):
                    place = m * dst_matrix + (c // c0) * group_step * c0 + r * c0 + c % c0
                    expected[place] = source[m * src_matrix + r * pitch + c]
        data_copy(target, gm(source), params)
        assert bits(get(stream, target)) == bits(expected)
        assert len(stream.issued) == (matrices * rows if columns else 0)


@given(
    dtype=st.sampled_from([float16, bfloat16, int16, float32, int32]),
    sizes=st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(0, 4)),
    spare=st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 3), st.integers(0, 20)),
)
@QUICK
def test_nz2nd_from_ub_gathers_rows(
    dtype: DType, sizes: tuple[int, int, int], spare: tuple[int, int, int, int]
) -> None:
    matrices, rows, groups = sizes
    columns = groups * 16
    group_step = max(rows + spare[2], 1)
    src_matrix = -(-groups * group_step * 16 // 256) + spare[0]  # in 256 elements
    dst_row = columns + spare[1]
    dst_matrix = rows * dst_row + spare[3]
    values = numbers(rows, matrices * src_matrix * 256 + 256, dtype)
    out = numbers(7, matrices * dst_matrix + 64, dtype)
    expected = out.copy()
    for m in range(matrices):
        for r in range(rows):
            for c in range(columns):
                place = m * src_matrix * 256 + (c // 16) * group_step * 16 + r * 16 + c % 16
                expected[m * dst_matrix + r * dst_row + c] = values[place]
    params = Nz2NdParamsFull(matrices, rows, columns, src_matrix, group_step, dst_row, dst_matrix)
    with vector() as stream:
        source = local(Space.UB, dtype, values.size)
        put(stream, source, values)
        data_copy(gm(out), source, params)
    assert bits(out) == bits(expected)


@given(
    space=st.sampled_from([Space.BT, Space.FB]),
    times=st.integers(0, 3),
    length=st.integers(0, 2),
    gaps=st.tuples(st.integers(0, 3), st.integers(0, 2)),
)
@QUICK
def test_copies_to_the_tables_count_their_own_units(
    space: Space, times: int, length: int, gaps: tuple[int, int]
) -> None:
    unit, dtype = (64, float32) if space is Space.BT else (128, uint64)
    assume(times * (length + gaps[1]) * unit <= 1024)
    values = numbers(times, 4096 // dtype.size, dtype)
    with cube() as stream:
        source = local(Space.L1, dtype, values.size, 32)
        put(stream, source, values)
        target = local(space, dtype)
        expected = bytearray(bits(get(stream, target)))
        raw = bits(values)
        for i in range(times):
            low, place = i * (length * unit + gaps[0] * 32), i * (length + gaps[1]) * unit
            expected[place : place + length * unit] = raw[low : low + length * unit]
        data_copy(target, source, DataCopyParams(times, length, *gaps))
        assert bits(get(stream, target)) == bytes(expected)
        call = stream.issued[-1]
        assert call.pipe is (Pipe.MTE1 if space is Space.BT else Pipe.FIX)
        assert call.bytes == times * length * unit
        if call.writes:
            assert call.cost == (("mte1", "bt") if space is Space.BT else ("fixpipe", "fb"))


def test_the_count_form_to_a_table_tells_what_it_drops() -> None:
    values = numbers(1, 40, float32)
    with cube() as stream:
        source, target = local(Space.L1, float32, 40), local(Space.BT, float32)
        put(stream, source, values)
        data_copy(target, source, 40)
        assert bits(get(stream, target, 32)) == bits(values[:32])
        assert set(bits(get(stream, target)[32:])) == {0xFF}
        lint = stream.issued[-1].lint
        assert lint is not None
        assert "the last 32 bytes are not copied" in lint[2]
        data_copy(target, source, 32)
        assert stream.issued[-1].lint is None


def test_data_copy_out_of_l0c_is_a_fixpipe() -> None:
    c = numbers(4, (20, 32), float32)
    out = np.zeros((20, 40), np.float16)
    with cube() as stream:
        source = local(Space.L0C, float32)
        put(stream, source, layout.nd_to_nz(c, c0=16))
        params = DataCopyCO12DstParams(32, 20, 40, 32, QuantModes.F322F16, 1, False, True)
        data_copy(gm(out), source, params)
        assert bits(out[:, :32]) == bits(np.maximum(c, 0).astype(np.float16))
        assert not out[:, 32:].any()
        call = stream.issued[-1]
        assert (call.pipe, call.cost, call.bytes) == (Pipe.FIX, ("fixpipe", "gm"), 20 * 32 * 2)
        inside = local(Space.L1, float16)
        data_copy(inside, source, DataCopyCO12DstParams(32, 20, 32, 32, QuantModes.F322F16))
        got = layout.nz_to_nd(get(stream, inside, 32 * 32), 20, 32)
        assert bits(got) == bits(c.astype(np.float16))


def test_data_copy_out_of_l0c_takes_the_scale_from_the_register() -> None:
    c = numbers(4, (16, 16), int32)
    out = np.zeros((16, 16), np.int8)
    with cube() as stream:
        source = local(Space.L0C, int32)
        put(stream, source, layout.nd_to_nz(c, c0=16))
        for scale in (0.5, 2.0):
            set_fix_pipe_pre_quant_flag(quant_parameter(scale, 3))
            params = DataCopyCO12DstParams(16, 16, 16, 16, QuantModes.REQ8, nz2nd_en=True)
            data_copy(gm(out), source, params)
            expected = np.clip(np.rint(c * scale) + 3, -128, 127)
            assert np.array_equal(out, expected)


H, F = float16, float32
L1, L0C, UB, BT, FB = Space.L1, Space.L0C, Space.UB, Space.BT, Space.FB
X = numbers(1, 4096, H)
ND = Nd2NzParams
CO = DataCopyCO12DstParams
REFUSED = [
    (lambda: data_copy(local(L1, H), local(UB, H), ND(1, 1, 16, 0, 16, 1, 1, 0)),
     "wrong-position", "must be in GM"),
    (lambda: data_copy(local(Space.L0A, H), gm(X), ND(1, 1, 16, 0, 16, 1, 1, 0)),
     "wrong-position", "must be in L1 (A1, B1, C1) or UB"),
    (lambda: data_copy(local(L1, bfloat16), gm(X), ND(1, 1, 16, 0, 16, 1, 1, 0)),
     "dtype-mismatch", "does not convert"),
    (lambda: data_copy(local(L1, H), gm(X), ND(4096, 1, 16, 0, 16, 1, 1, 0)), "nd-num-limit", "4095"),
    (lambda: data_copy(local(L1, H), gm(X), ND(1, 16385, 16, 0, 16, 1, 1, 0)), "n-value-limit",
     "16384"),
    (lambda: data_copy(local(L1, H), gm(X), ND(1, 1, 65536, 0, 16, 1, 1, 0)), "d-value-limit", ""),
    (lambda: data_copy(local(L1, H), gm(X), ND(1, 1, 16.0, 0, 16, 1, 1, 0)), "not-an-integer", "16.0"),
    (lambda: data_copy(local(L1, H), gm(X), ND(2, 1, 16, 16, 16, 1, 1, 24)), "misaligned-operand",
     "multiple of 16"),
    (lambda: data_copy(local(L1, H, 999, 16), gm(X), ND(1, 1, 16, 0, 16, 1, 1, 0)),
     "misaligned-operand", "16 past a 32-byte border"),
    (lambda: data_copy(local(L1, H), gm(X), ND(1, 17, 16, 0, 256, 17, 1, 0)), "gm-out-of-bounds",
     "src_d_value = 256"),
    (lambda: data_copy(local(L1, H, 255), gm(X), ND(1, 16, 16, 0, 16, 16, 1, 0)),
     "tensor-out-of-bounds", "count 32-byte blocks"),
    (lambda: data_copy(local(BT, F), gm(numbers(1, 64, F)), 64), "wrong-position", "L1"),
    (lambda: data_copy(local(BT, H), local(L1, H), 64), "wrong-dtype", "float32, int32"),
    (lambda: data_copy(local(FB, F), local(L1, F), 64), "wrong-dtype", "uint64"),
    (lambda: data_copy(local(BT, F), local(L1, F), 512), "memory-out-of-bounds", "BT has 1024"),
    (lambda: data_copy(local(BT, F, 16, 32), local(L1, F), 16), "misaligned-operand",
     "32 past a 64-byte border"),
    (lambda: data_copy(local(BT, F), local(L1, F), DataCopyParams(1, 17)), "memory-out-of-bounds",
     "block_len counts 64 bytes when dst is in BT"),
    (lambda: data_copy(local(BT, F), local(L1, F), DataCopyParams(4096, 1)), "block-count-limit", ""),
    (lambda: data_copy(local(BT, F), local(L1, F)), "form", "exactly one"),
    (lambda: data_copy(gm(X), local(L0C, F), CO(16, 16, 16, 16, QuantModes.VDEQF16)),
     "unsupported-form", "cbuf_workspace"),
    (lambda: data_copy(gm(X), local(L0C, F), CO(16, 16, 16, 16, QuantModes.F322F16, 2)),
     "relu-pre-limit", ""),
    (lambda: set_fix_pipe_pre_quant_flag(0.5), "not-an-integer", "quant_parameter(scale)"),
    (lambda: set_fix_pipe_pre_quant_flag(-1), "config-limit", ""),
    (lambda: quant_parameter(1.0, 256), "quant-offset-limit", "-256 to 255"),
    (lambda: data_copy(local(L1, H), gm(X), Nz2NdParamsFull(1, 1, 16, 0, 1, 16, 0)), None, ""),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_refused_and_why(case: int) -> None:
    act, code, words = REFUSED[case]
    with cube() as stream:
        if code is None:  # a vector core's copy: nothing on this core
            act()
        else:
            fault = refusal(act)
            assert fault.code == code
            assert words in fault.message
        assert stream.issued == []


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda: data_copy(local(L1, H), gm(X), ND(1, 1, 16, 0, 16, 1, 1, 0)), "wrong-core"),
        (lambda: data_copy(local(BT, F), local(L1, F), 16), "wrong-core"),
        (lambda: data_copy(local(UB, H), gm(X), ND(1, 1, 15, 0, 16, 1, 1, 0)), "d-value-alignment"),
        (lambda: data_copy(local(UB, H), gm(X), ND(1, 1, 32, 0, 32, 0, 1, 0)), "dst-nz-c0-stride-limit"),
        (lambda: data_copy(gm(X), local(UB, H), Nz2NdParamsFull(1, 1, 8, 0, 1, 16, 0)), "d-value-alignment"),
        (lambda: data_copy(gm(X), local(UB, H), Nz2NdParamsFull(1, 1, 32, 0, 0, 16, 0)), "src-n-stride-limit"),
        (lambda: data_copy(local(UB, H), gm(X), Nz2NdParamsFull(1, 1, 16, 0, 1, 16, 0)), "wrong-position"),
    ],
)  # fmt: skip
def test_what_a_vector_core_refuses(act: object, code: str) -> None:
    with vector() as stream:
        assert refusal(act).code == code  # type: ignore[arg-type]
        assert stream.issued == []
