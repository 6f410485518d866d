"""Loads into L0A and L0B against loops over fractals and elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isa import layout
from isa.cube_forms import LoadCall
from isa.cube_params import (
    InitConstValueParams,
    LoadData2DParams,
    LoadData2dTransposeParams,
    LoadData3DParamsV2,
    LoadDataRepeatParam,
)
from isa.load import (
    init_const_value,
    load_data,
    load_data_with_transpose,
    set_load_data_boundary,
    set_load_data_padding_value,
    set_load_data_repeat,
)
from isa.types import (
    DType,
    Pipe,
    Space,
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    uint8,
)
from tests.isa_cube.kit import bits, cube, get, gm, local, numbers, put, refusal, vector

QUICK = settings(max_examples=60, deadline=None)
L0 = st.sampled_from([Space.L0A, Space.L0B])


@given(
    space=L0,
    dtype=st.sampled_from([int8, uint8, float16, bfloat16, int16, float32, int32]),
    start=st.integers(0, 20),
    times=st.integers(1, 12),
    stride=st.integers(0, 6),
    gap=st.integers(0, 5),
    transpose=st.booleans(),
    down=st.booleans(),
    from_gm=st.booleans(),
)
@QUICK
def test_load_data_moves_fractals(
    space: Space,
    dtype: DType,
    start: int,
    times: int,
    stride: int,
    gap: int,
    transpose: bool,
    down: bool,
    from_gm: bool,
) -> None:
    assume(not transpose or (dtype.size == 2 and not from_gm))
    assume(not down or start >= (times - 1) * stride)
    per = 512 // dtype.size
    source = numbers(start + times, 120 * per, dtype)
    params = LoadData2DParams(start, times, stride, 0, gap, transpose, int(down))
    with cube() as stream:
        destination = local(space, dtype)
        expected = get(stream, destination)
        for i in range(times):
            index = start - i * stride if down else start + i * stride
            fractal = source[index * per : (index + 1) * per]
            if transpose:
                fractal = np.array([[fractal[c * 16 + r] for c in range(16)] for r in range(16)])
            place = i * (1 + gap) * per
            expected[place : place + per] = fractal.reshape(-1)
        if from_gm:
            load_data(destination, gm(source), params)
        else:
            inside = local(Space.L1, dtype, source.size, 1024 + 32)
            put(stream, inside, source)
            load_data(destination, inside, params)
        assert bits(get(stream, destination)) == bits(expected)
        call = stream.issued[-1]
        assert call.pipe is (Pipe.MTE2 if from_gm else Pipe.MTE1)
        assert call.bytes == times * 512
        if not from_gm:
            assert call.cost == ("mte1", "l0a" if space is Space.L0A else "l0b")
        assert (call.lint is not None) == (times > 1 and stride == 0)


def test_load_data_from_gm_to_l1_keeps_to_512_bytes() -> None:
    source = numbers(1, 1024, float16)
    with cube() as stream:
        target = local(Space.L1, float16, 4096, 32)
        load_data(target, gm(source), LoadData2DParams(1, 2, 1))
        assert bits(get(stream, target, 512)) == bits(source[256:768])


def _square(source: np.ndarray, block: int, dtype: DType) -> np.ndarray:
    """The square block as rows and columns, read element by element."""
    side = 32 if dtype.size == 1 else 16
    c0 = 32 // dtype.size
    base = block * side * side
    rows = np.empty((side, side), source.dtype)
    for r in range(side):
        for c in range(side):
            rows[r, c] = source[base + (c // c0) * (16 * c0) + r * c0 + c % c0]
    return rows


@given(
    space=L0,
    dtype=st.sampled_from([int8, uint8, float16, bfloat16, float32, int32]),
    start=st.integers(0, 3),
    times=st.integers(0, 6),
    stride=st.integers(1, 3),
    gap=st.integers(0, 5),
    fractal_gap=st.integers(0, 5),
)
@QUICK
def test_load_data_with_transpose_turns_square_blocks(
    space: Space, dtype: DType, start: int, times: int, stride: int, gap: int, fractal_gap: int
) -> None:
    fractals = 1 if dtype.size == 2 else 2
    steps = [i * (1 + gap) + j * (1 + fractal_gap) for i in range(times) for j in range(fractals)]
    assume(len(set(steps)) == len(steps))
    side, c0, per = 32 if dtype.size == 1 else 16, 32 // dtype.size, 512 // dtype.size
    source = numbers(times, 30 * side * side, dtype)
    with cube() as stream:
        inside = local(Space.L1, dtype, source.size, 64)
        put(stream, inside, source)
        destination = local(space, dtype)
        expected = get(stream, destination)
        for i in range(times):
            square = _square(source, start + i * stride, dtype)
            for j in range(fractals):
                place = (i * (1 + gap) + j * (1 + fractal_gap)) * per
                for r in range(16):
                    for c in range(c0):
                        # 8-bit blocks split by rows of the result, 32-bit ones by its columns
                        row, column = (16 * j + r, c) if dtype.size == 1 else (r, c0 * j + c)
                        expected[place + r * c0 + c] = square[column, row]
        params = LoadData2dTransposeParams(start, times, stride, gap, fractal_gap)
        load_data_with_transpose(destination, inside, params)
        assert bits(get(stream, destination)) == bits(expected)
        call = stream.issued[-1]
        assert (call.pipe, call.bytes) == (Pipe.MTE1, times * fractals * 512)
        assert call.lint is None


def test_transposed_fractals_on_one_place_are_told() -> None:
    with cube() as stream:
        params = LoadData2dTransposeParams(0, 2, 1, 0, 0)
        load_data_with_transpose(local(Space.L0B, float32), local(Space.L1, float32), params)
        lint = stream.issued[-1].lint
        assert lint is not None
        assert lint[1] == "blocks-overlap"


@given(
    space=L0,
    dtype=st.sampled_from([float16, bfloat16, float32, int8]),
    shape=st.tuples(st.integers(20, 50), st.integers(20, 50)),
    part=st.tuples(st.integers(0, 20), st.integers(0, 2), st.integers(1, 40), st.integers(1, 40)),
    turned=st.booleans(),
    upright=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_3d_load_of_a_plain_matrix(
    space: Space,
    dtype: DType,
    shape: tuple[int, int],
    part: tuple[int, int, int, int],
    turned: bool,
    upright: bool,
) -> None:
    rows, columns = shape
    c0 = 32 // dtype.size
    first_row, first_group, count, width = part
    first_column = first_group * c0
    assume(first_row + count <= rows and first_column + width <= columns)
    assume(dtype.size > 1 or (space is Space.L0A and not turned))
    matrix = numbers(rows, (rows, columns), dtype)
    groups = -(-columns // c0)
    image = np.zeros(
        groups * rows * c0, matrix.dtype
    )  # NZ without padded rows: the pitch is the image's
    for r in range(rows):
        for c in range(columns):
            image[(c // c0) * rows * c0 + r * c0 + c % c0] = matrix[r, c]
    height, breadth = (rows, 1) if upright else (1, rows)
    params = LoadData3DParamsV2(
        (0, 0, 0, 0),
        height,
        breadth,
        columns,
        width,
        count,
        first_column,
        first_row,
        en_transpose=turned,
    )
    with cube() as stream:
        inside = local(Space.L1, dtype, image.size, 96)
        put(stream, inside, image)
        destination = local(space, dtype)
        load_data(destination, inside, params)
        result = get(stream, destination)
        transposed = turned or space is Space.L0B
        height_up, width_up = (width, count) if transposed else (count, width)
        across, down = -(-width_up // c0), -(-height_up // 16)
        for r in range(count):
            for c in range(width):
                x, y = (c, r) if transposed else (r, c)  # row and column of L0's matrix
                block = (
                    (y // c0) * down + x // 16
                    if space is Space.L0B
                    else (x // 16) * across + y // c0
                )
                place = block * 16 * c0 + (x % 16) * c0 + y % c0
                assert bits(result[place]) == bits(matrix[first_row + r, first_column + c])
        call = stream.issued[-1]
        assert call.bytes == down * across * 512
        assert bits(result[down * across * 16 * c0 :]) == b"\xff" * (
            result.nbytes - down * across * 512
        )
        padding = np.zeros(result.nbytes, bool)
        for access in call.undefined:
            assert set(bits(access.view(stream.memories[space]))) == {0xFF}
            access.byte_view(padding)[...] = True
        channels = -(-width // c0) * c0  # whole groups come from L1, what fits L0's rows stays
        kept = min(channels, down * 16) if transposed else channels
        assert padding.sum() == down * across * 512 - count * kept * dtype.size


def test_3d_load_equals_the_layouts() -> None:
    a = numbers(3, (32, 48), float16)
    with cube() as stream:
        inside = local(Space.L1, float16, a.size)
        put(stream, inside, layout.nd_to_nz(a))
        params = LoadData3DParamsV2(
            l1_h=32, l1_w=1, channel_size=48, k_extension=48, m_extension=32
        )
        load_data(local(Space.L0A, float16), inside, params)
        load_data(local(Space.L0B, float16), inside, params)
        assert bits(get(stream, local(Space.L0A, float16, a.size))) == bits(layout.nd_to_zz(a))
        assert bits(get(stream, local(Space.L0B, float16, a.size))) == bits(layout.nd_to_zn(a))
        assert [call.undefined for call in stream.issued] == [(), ()]


@given(data=st.data())
@QUICK
def test_3d_load_unfolds_images(data: st.DataObject) -> None:
    """Every element against the definition: the pixel under a tap, or the padding's value."""
    draw = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    height, width, groups = draw(1, 5), draw(1, 6), draw(1, 3)
    left, right, top, bottom = (draw(0, 2) for _ in range(4))
    down, across = (
        draw(1, min(3, height + top + bottom)),
        draw(1, min(3, width + left + right)),
    )
    stride, dilation = (draw(1, 2), draw(1, 2)), (draw(1, 2), draw(1, 2))
    out_h = (height + top + bottom - dilation[0] * (down - 1) - 1) // stride[0] + 1
    out_w = (width + left + right - dilation[1] * (across - 1) - 1) // stride[1] + 1
    assume(out_h > 0 and out_w > 0)
    image = numbers(groups, (groups * height * width * 16,), float16).reshape(
        groups, height, width, 16
    )
    padding = 2.5
    matrix = np.full((out_h * out_w, groups * down * across * 16), padding, np.float16)
    for place in range(out_h * out_w):
        for column in range(groups * down * across * 16):
            group, rest = divmod(column, down * across * 16)
            tap, channel = divmod(rest, 16)
            y = place // out_w * stride[0] - top + tap // across * dilation[0]
            x = place % out_w * stride[1] - left + tap % across * dilation[1]
            if 0 <= y < height and 0 <= x < width:
                matrix[place, column] = image[group, y, x, channel]
    first_row, first_tap = draw(0, out_h * out_w - 1), draw(0, groups * down * across - 1)
    rows = draw(1, out_h * out_w - first_row)
    taps = draw(1, groups * down * across - first_tap)
    params = LoadData3DParamsV2(
        (left, right, top, bottom), height, width, groups * 16, taps * 16, rows, first_tap * 16,
        first_row, stride[1], stride[0], across, down, dilation[1], dilation[0],
        pad_value=padding,
    )  # fmt: skip
    with cube() as stream:
        inside = local(Space.L1, float16, image.size)
        put(stream, inside, image)
        load_data(local(Space.L0A, float16), inside, params)
        part = matrix[first_row : first_row + rows, first_tap * 16 : (first_tap + taps) * 16]
        result = get(stream, local(Space.L0A, float16, -(-rows // 16) * taps * 256))
        result = result.reshape(-1, taps, 16, 16).transpose(0, 2, 1, 3).reshape(-1, taps * 16)
        assert bits(result[:rows]) == bits(part)
        (source,) = stream.issued[-1].reads
        assert source.low >= inside.addr
        assert source.high <= inside.addr + image.nbytes


@pytest.mark.parametrize("field", ["l1_h", "l1_w", "channel_size", "k_extension", "m_extension"])
def test_3d_load_of_nothing_does_nothing(field: str) -> None:
    sizes = dict.fromkeys(("l1_h", "l1_w", "channel_size", "k_extension", "m_extension"), 16)
    with cube() as stream:
        load_data(
            local(Space.L0A, float16),
            local(Space.L1, float16),
            LoadData3DParamsV2(**(sizes | {field: 0})),
        )
        assert stream.issued[-1].writes == ()
        assert set(stream.memories[Space.L0A].tolist()) == {0xFF}


@given(
    space=st.sampled_from([Space.L1, Space.L0A, Space.L0B]),
    dtype=st.sampled_from([float16, bfloat16, float32, int32, int16]),
    times=st.integers(0, 5),
    count=st.integers(0, 5),
    gap=st.integers(0, 4),
)
@QUICK
def test_init_const_value_fills_blocks(
    space: Space, dtype: DType, times: int, count: int, gap: int
) -> None:
    unit = (32 if space is Space.L1 else 512) // dtype.size
    with cube() as stream:
        target = local(space, dtype)
        expected = get(stream, target)
        for i in range(times):
            first = i * (count + gap) * unit
            expected[first : first + count * unit] = 3
        init_const_value(target, InitConstValueParams(times, count, gap, 3))
        assert bits(get(stream, target)) == bits(expected)
        call = stream.issued[-1]
        assert call.pipe is (Pipe.MTE2 if space is Space.L1 else Pipe.MTE1)
        assert call.bytes == times * count * unit * dtype.size
        if call.writes:
            assert call.cost == (("mte2", "fill_l1") if space is Space.L1 else ("mte1", "fill_l0"))


def test_a_fill_with_another_value_is_another_call() -> None:
    with cube() as stream:
        target = local(Space.L0A, float16, 256)
        for value in (0.0, -0.0, 2.0, np.inf):
            init_const_value(target, InitConstValueParams(1, 1, 0, value))
            assert bits(get(stream, target, 1)) == bits(np.array([value]).astype(np.float16))


@pytest.mark.parametrize("value", [-32768, 32767, np.int16(5)])
def test_a_fill_takes_every_value_of_its_type(value: int) -> None:
    with cube() as stream:
        target = local(Space.L1, int16, 16)
        init_const_value(target, InitConstValueParams(1, 1, 0, value))
        assert get(stream, target).tolist() == [value] * 16


L0A, L0B, L1 = Space.L0A, Space.L0B, Space.L1
H = float16
P2 = LoadData2DParams
PT = LoadData2dTransposeParams
P3 = LoadData3DParamsV2
PLAIN = {"l1_h": 16, "channel_size": 16, "k_extension": 16, "m_extension": 16}
REFUSED = [
    (lambda: load_data(local(L0A, H), local(Space.UB, H), P2()), "wrong-position", "must be in L1"),
    (lambda: load_data(local(L1, H), local(L1, H), P2()), "wrong-position", "L0A (A2) or L0B (B2)"),
    (lambda: load_data(local(Space.L0C, H), local(L1, H), P2()), "wrong-position", "L0C"),
    (lambda: load_data(local(L0A, float64), local(L1, float64), P2()), "wrong-dtype", "float64"),
    (lambda: load_data(local(L0A, H), local(L1, bfloat16), P2()), "dtype-mismatch", "convert"),
    (lambda: load_data(local(L0A, H, 256, 64), local(L1, H), P2()), "misaligned-operand",
     "64 past a 512-byte border"),
    (lambda: load_data(local(L0B, H), local(L1, H, 999, 16), P2()), "misaligned-operand",
     "16 past a 32-byte border"),
    (lambda: load_data(local(L0A, H), local(L1, H), P2(repeat_times=256)), "repeat-times-limit",
     "256, allowed is 1 to 255"),
    (lambda: load_data(local(L0A, H), local(L1, H), P2(repeat_times=0)), "repeat-times-limit", "0"),
    (lambda: load_data(local(L0A, H), local(L1, H), P2(src_stride=65536)), "src-stride-limit", ""),
    (lambda: load_data(local(L0A, H), local(L1, H), P2(dst_gap=-1)), "dst-gap-limit", "-1"),
    (lambda: load_data(local(L0A, H), local(L1, H), P2(start_index=1.5)), "not-an-integer", "1.5"),
    (lambda: load_data(local(L0A, H), local(L1, H), P2(if_transpose=2)), "not-a-bool", "2"),
    (lambda: load_data(local(L0A, H), local(L1, H), P2(addr_mode=2)), "addr-mode-limit", ""),
    (lambda: load_data(local(L0A, H), local(L1, H), P2(1, 3, 1, addr_mode=1)),
     "tensor-out-of-bounds", "leaves the start of src"),
    (lambda: load_data(local(L0A, int8), local(L1, int8), P2(if_transpose=True)),
     "transpose-dtype", "load_data_with_transpose"),
    (lambda: load_data(local(L0A, H), gm(numbers(1, 256, H)), P2(if_transpose=True)),
     "transpose-from-gm", "from L1 only"),
    (lambda: load_data(local(L0A, H), local(L1, H), P2(0, 129, 1)), "memory-out-of-bounds",
     "L0A has 65536 bytes, so 512 are outside"),
    (lambda: load_data(local(L0A, H), local(L1, H, 512), P2(0, 3, 1)), "tensor-out-of-bounds",
     "512 bytes too many"),
    (lambda: load_data(local(L0A, H), gm(numbers(1, 300, H)), P2(1)), "gm-out-of-bounds", "GM"),
    (lambda: load_data(local(L0A, H), local(L1, H), 3), "wrong-params", "LoadData2DParams or"),
    (lambda: load_data(3, local(L1, H), P2()), "wrong-operand", "got int"),
    (lambda: load_data(local(L0A, H), None, P2()), "wrong-operand", "got NoneType"),
    (lambda: load_data_with_transpose(local(L0A, H), gm(numbers(1, 256, H)), PT()),
     "wrong-position", "must be in L1"),
    (lambda: load_data_with_transpose(local(L0A, H), local(L1, H), PT(repeat_times=300)),
     "repeat-times-limit", "allowed is 0 to 255"),
    (lambda: load_data_with_transpose(local(L0A, H), local(L1, H), P2()), "wrong-params",
     "LoadData2dTransposeParams, got LoadData2DParams"),
    (lambda: load_data_with_transpose(local(L0A, H), local(L1, H), PT(addr_mode=1)),
     "addr-mode-limit", "reserved"),
    (lambda: load_data_with_transpose(local(L0A, int8), local(L1, int8, 1000), PT()),
     "tensor-out-of-bounds", "square blocks of 1024 bytes"),
    (lambda: load_data(local(L0A, H), local(L1, H), P3(**PLAIN, filter_w=3)), "filter-size",
     "1 x 3 (dilation 1 x 1) does not fit the 16 x 1 pixels"),
    (lambda: load_data(local(L0A, H), local(L1, H), P3(**PLAIN, filter_size_w=True)),
     "unsupported-form", "filter_size_w"),
    (lambda: load_data(local(L0A, H), local(L1, H), P3((1, 0), **PLAIN)), "pad-list", "4 numbers"),
    (lambda: load_data(local(L0A, H), local(L1, H), P3(**PLAIN, k_start_pt=8)),
     "k-start-pt-alignment", "multiple of 16"),
    (lambda: load_data(local(L0A, H), local(L1, H), P3(**PLAIN, m_start_pt=1)),
     "image-out-of-bounds", "16 pixels"),
    (lambda: load_data(local(L0A, H), local(L1, H), P3(**PLAIN, k_start_pt=16)),
     "image-out-of-bounds", "16 channels"),
    (lambda: load_data(local(L0B, int8), local(L1, int8), P3(**PLAIN)), "transpose-dtype", "int8"),
    (lambda: load_data(local(L0A, H), local(L1, H, 200), P3(**PLAIN)), "tensor-out-of-bounds",
     "image in L1"),
    (lambda: init_const_value(local(Space.L0C, float32), InitConstValueParams(1, 1)),
     "wrong-position", "L0C"),
    (lambda: init_const_value(local(L0A, int8), InitConstValueParams(1, 1)), "wrong-dtype", "int8"),
    (lambda: init_const_value(local(L0A, int16), InitConstValueParams(1, 1, 0, 40000)),
     "init-value", "-32768 to 32767"),
    (lambda: init_const_value(local(L0A, H), InitConstValueParams(1, 1, 0, "a")), "not-a-number", ""),
    (lambda: init_const_value(local(L0A, H), InitConstValueParams(1, 129)),
     "memory-out-of-bounds", "count 512 bytes here"),
    (lambda: init_const_value(local(L1, H), InitConstValueParams(40000, 1)),
     "repeat-times-limit", "0 to 32767"),
    (lambda: set_load_data_boundary(1023), "boundary-limit", "at least 1024"),
    (lambda: set_load_data_padding_value("x"), "not-a-number", "'x'"),
    (lambda: set_load_data_repeat(LoadDataRepeatParam(256)), "repeat-time-limit", ""),
    (lambda: set_load_data_repeat(2), "wrong-params", "LoadDataRepeatParam"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_refused_and_why(case: int) -> None:
    act, code, words = REFUSED[case]
    with cube() as stream:
        fault = refusal(act)
        assert fault.code == code
        assert words in fault.message
        assert stream.issued == []


def test_loads_belong_to_the_cube_core() -> None:
    with vector():
        for act in (
            lambda: load_data(local(L0A, H), local(L1, H), P2()),
            lambda: load_data_with_transpose(local(L0A, H), local(L1, H), PT()),
            lambda: init_const_value(local(L0A, H), InitConstValueParams(1, 1)),
            lambda: set_load_data_boundary(0),
        ):
            fault = refusal(act)
            assert fault.code == "wrong-core"
    assert refusal(lambda: load_data(local(L0A, H), local(L1, H), P2())).code == "no-kernel"


def test_registers_of_the_3d_load() -> None:
    params = P3(**PLAIN)
    with cube() as stream:
        set_load_data_padding_value(2.5)
        assert stream.registers.load_padding == 2.5
        set_load_data_boundary(1024)
        load_data(local(L0A, H), local(L1, H), params)
        fault = refusal(lambda: load_data(local(L0A, H), local(L1, H, None, 1024), params))
        assert "past the boundary of 1024" in fault.message
        set_load_data_repeat(LoadDataRepeatParam(2, 1, 0))
        fault = refusal(lambda: load_data(local(L0A, H), local(L1, H), params))
        assert "set_load_data_repeat" in fault.message
        set_load_data_repeat(LoadDataRepeatParam())
        load_data(local(L0A, H), local(L1, H), params)
        stream.registers.reset()
        assert (stream.registers.load_boundary, stream.registers.load_padding) == (0, 0)


def test_a_repeated_load_is_bound_once() -> None:
    with cube() as stream:
        for _ in range(3):
            load_data(local(L0A, H), local(L1, H), P2(0, 4, 1))
        load_data(local(L0B, H), local(L1, H), P2(0, 4, 1))
        first, second, third, other = stream.issued
        assert first is second is third
        assert other is not first


@given(
    dtype=st.sampled_from([int8, float16, float32]),
    seed=st.integers(0, 1000),
    form=st.sampled_from(["2d", "transpose", "square", "3d"]),
)
@QUICK
def test_what_was_never_written_stays_known_as_such(dtype: DType, seed: int, form: str) -> None:
    assume(form != "transpose" or dtype.size == 2)
    random = np.random.default_rng(seed)
    c0 = 32 // dtype.size
    good = random.random(64 * c0) < 0.7  # 4 fractals of L1 as 64 rows of one column group
    values = np.where(good, 1, -1).astype(dtype.numpy)
    with cube() as stream:
        inside = local(L1, dtype, values.size)
        put(stream, inside, values)
        target = local(L0A, dtype)
        if form == "square":
            fractals = 1 if dtype.size == 2 else 2
            load_data_with_transpose(target, inside, PT(0, 4 // fractals, 1, fractals - 1, 0))
        elif form == "3d":
            load_data(target, inside, P3(l1_h=64, channel_size=c0, k_extension=c0, m_extension=50))
        else:
            load_data(target, inside, P2(3, 4, 1, 0, 0, form == "transpose", 1))
        call = stream.issued[-1]
        assert isinstance(call, LoadCall)
        source = call.reads[0].view(stream.memories[L1])
        arrived = call.writes[0].view(stream.memories[L0A])
        assert np.array_equal(call.arrives(source == 1), arrived == 1)
