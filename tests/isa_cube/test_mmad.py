"""mmad against sums over elements read by the layouts' formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isa import layout
from isa.cube import mmad, set_hf32_mode, set_hf32_trans_mode, to_hf32
from isa.cube_forms import CubeCall
from isa.cube_params import MmadParams
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
)
from tests.isa_cube.kit import bits, cube, get, local, numbers, put, refusal, vector

L0A, L0B, L0C, BT, L1 = Space.L0A, Space.L0B, Space.L0C, Space.BT, Space.L1
TYPES = [float16, bfloat16, int8, float32]
SIZE = st.integers(1, 50)


def _result_type(dtype: DType) -> DType:
    return int32 if dtype is int8 else float32


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _operands(m: int, n: int, k: int, dtype: DType, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return numbers(seed, (m, k), dtype), numbers(seed + 1, (k, n), dtype)


def _garbage(flat: np.ndarray, seed: int, dtype: DType) -> np.ndarray:
    """What stands in the padding: NaN or large numbers."""
    bad = np.full(flat.shape, 0xFF, np.uint8) if dtype is int8 else None
    return bad.view(np.int8) if bad is not None else np.full(flat.shape, np.nan, flat.dtype)


def _place_a(a: np.ndarray, dtype: DType) -> np.ndarray:
    """A in ZZ by the formula, garbage in the padding; a plain row where it has one row."""
    if a.shape[0] == 1:
        return a.reshape(-1)
    c0 = 32 // dtype.size
    width = _up(a.shape[1], c0)
    flat = _garbage(np.zeros(_up(a.shape[0], 16) * width, a.dtype), 1, dtype)
    for r in range(a.shape[0]):
        for k in range(a.shape[1]):
            flat[(r // 16) * (width * 16) + (k // c0) * (16 * c0) + (r % 16) * c0 + k % c0] = a[
                r, k
            ]
    return flat


def _place_b(b: np.ndarray, dtype: DType) -> np.ndarray:
    """B in ZN by the formula, garbage in the padding."""
    c0 = 32 // dtype.size
    width = _up(b.shape[1], 16)
    flat = _garbage(np.zeros(_up(b.shape[0], c0) * width, b.dtype), 2, dtype)
    for k in range(b.shape[0]):
        for n in range(b.shape[1]):
            flat[(k // c0) * (width * c0) + (n // 16) * (16 * c0) + (n % 16) * c0 + k % c0] = b[
                k, n
            ]
    return flat


def _read_c(flat: np.ndarray, m: int, n: int) -> np.ndarray:
    """C from L0C by the formula."""
    rows = _up(m, 16)
    return np.array(
        [[flat[(j // 16) * (rows * 16) + i * 16 + j % 16] for j in range(n)] for i in range(m)]
    )


def _ordered_sum(a: np.ndarray, b: np.ndarray, begin: np.ndarray) -> np.ndarray:
    """The documented order of additions, element by element: blocks of 16 in float64, then float32."""
    m, k = a.shape
    n = b.shape[1]
    out = np.array(begin, np.float32)
    for i in range(m):
        for j in range(n):
            total = np.float32(out[i, j])
            for low in range(0, k, 16):
                part = 0.0
                for x in range(low, min(low + 16, k)):
                    part += float(a[i, x]) * float(b[x, j])
                total = np.float32(total + np.float32(part))
            out[i, j] = total
    return out


@pytest.mark.parametrize("dtype", TYPES)
@given(m=SIZE, n=SIZE, k=SIZE, start=st.sampled_from(["zero", "L0C", "bias", "source", "old"]))
@settings(max_examples=25, deadline=None)
def test_mmad_adds_products(dtype: DType, m: int, n: int, k: int, start: str) -> None:
    a, b = _operands(m, n, k, dtype, m)
    kind = _result_type(dtype)
    earlier = numbers(5, (m, n), kind)
    bias = numbers(6, n, kind)
    with cube() as stream:
        fm, weights, c = local(L0A, dtype), local(L0B, dtype), local(L0C, kind)
        put(stream, fm, _place_a(a, dtype))
        put(stream, weights, _place_b(b, dtype))
        put(stream, c, layout.nd_to_nz(earlier, c0=16))
        table = local(BT, kind, n, 64 if start == "bias" else 0)
        put(stream, table, bias)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        if start == "zero":
            mmad(c, fm, weights, MmadParams(m, n, k))
        elif start == "L0C":
            mmad(c, fm, weights, MmadParams(m, n, k, 0, False, False))
            exact += earlier
        elif start == "old":
            mmad(c, fm, weights, MmadParams(m, n, k, is_bias=True))
            exact += earlier
        elif start == "bias":
            mmad(c, fm, weights, table, MmadParams(m, n, k))
            exact += bias
        else:
            mmad(c, fm, weights, MmadParams(m, n, k, 0, True, False))
            exact += bias
        result = _read_c(get(stream, c), m, n)
        if dtype is int8:
            assert np.array_equal(result, exact)
        else:
            scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)) + np.abs(exact) + 1
            assert np.all(np.abs(result - exact) <= scale * 2.0**-20)
        call = stream.issued[-1]
        k0 = 32 // dtype.size
        assert call.pipe is Pipe.M
        assert call.work == -(-m // 16) * -(-n // 16) * -(-k // k0)
        assert call.cost == ("mmad", dtype.name)
        assert len(call.reads) == (2 if start == "zero" else 3)
        assert (call.lint is not None) == (m == 1 and k > k0)  # GEMV, said in a note


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32])
@given(m=st.integers(1, 20), n=st.integers(1, 20), k=st.integers(1, 50), fresh=st.booleans())
@settings(max_examples=15, deadline=None)
def test_the_exact_mode_adds_in_the_documented_order(
    dtype: DType, m: int, n: int, k: int, fresh: bool
) -> None:
    # Small whole numbers scaled by powers of two: sums in float64 are exact in whatever order they are taken.
    random = np.random.default_rng(m + 100 * n + 10000 * k)
    a = (random.integers(-99, 99, (m, k)) * 2.0 ** random.integers(-6, 6, (m, k))).astype(
        dtype.numpy
    )
    b = (random.integers(-99, 99, (k, n)) * 2.0 ** random.integers(-6, 6, (k, n))).astype(
        dtype.numpy
    )
    begin = np.zeros((m, n), np.float32) if fresh else numbers(3, (m, n), float32)
    with cube(exact=True) as stream:
        fm, weights, c = local(L0A, dtype), local(L0B, dtype), local(L0C, float32)
        put(stream, fm, _place_a(a, dtype))
        put(stream, weights, _place_b(b, dtype))
        put(stream, c, layout.nd_to_nz(begin, c0=16))
        mmad(c, fm, weights, MmadParams(m, n, k, 0, False, fresh))
        assert bits(_read_c(get(stream, c), m, n)) == bits(_ordered_sum(a, b, begin))


def test_a_stream_that_turns_exact_is_believed() -> None:
    random = np.random.default_rng(1)
    a = random.standard_normal((16, 512)).astype(np.float16)
    b = random.standard_normal((512, 16)).astype(np.float16)
    results = []
    with cube() as stream:
        fm, weights, c = local(L0A, float16), local(L0B, float16), local(L0C, float32)
        put(stream, fm, layout.nd_to_zz(a))
        put(stream, weights, layout.nd_to_zn(b))
        for exact in (False, True):
            stream.exact = exact  # type: ignore[attr-defined]
            mmad(c, fm, weights, MmadParams(16, 16, 512))
            results.append(_read_c(get(stream, c), 16, 16))
    assert bits(results[1]) == bits(_ordered_sum(a, b, np.zeros((16, 16))))
    assert np.allclose(results[0], results[1], atol=1e-3)


@given(m=st.integers(2, 40), n=SIZE)
@settings(max_examples=20, deadline=None)
def test_whole_fractals_are_written_and_nothing_else(m: int, n: int) -> None:
    a, b = _operands(m, n, 16, float16, 1)
    with cube() as stream:
        fm, weights, c = local(L0A, float16), local(L0B, float16), local(L0C, float32)
        put(stream, fm, layout.nd_to_zz(a))
        put(stream, weights, layout.nd_to_zn(b))
        mmad(c, fm, weights, MmadParams(m, n, 16))
        used = _up(m, 16) * _up(n, 16)
        result = get(stream, c)
        assert set(bits(result[used:])) == {0xFF}
        padded = result[:used].reshape(-1, _up(m, 16), 16)
        assert not padded[:, m:].any()  # zero rows of A make zero rows of C


def test_sums_of_int8_do_not_round() -> None:
    m = n = 16
    k = 4095
    a = np.full((m, k), -128, np.int8)
    b = np.full((k, n), -128, np.int8)
    with cube() as stream:
        stream.memories[L0A] = np.zeros(
            1 << 17, np.uint8
        )  # more than the chip has: the sizes' own limit
        stream.memories[L0B] = np.zeros(1 << 17, np.uint8)
        from isa.tensor import LocalTensor
        from isa.types import TPosition

        fm = LocalTensor(int8, TPosition.A2, 0, 1 << 17)
        weights = LocalTensor(int8, TPosition.B2, 0, 1 << 17)
        put(stream, fm, layout.nd_to_zz(a))
        put(stream, weights, layout.nd_to_zn(b))
        c = local(L0C, int32)
        mmad(c, fm, weights, MmadParams(m, n, k))
        mmad(c, fm, weights, MmadParams(m, n, k, cmatrix_init_val=False))
        assert set(get(stream, c, 256).tolist()) == {2 * k * 128 * 128}


def _hf32(value: float, toward_zero: bool) -> float:
    """Keep 12 significant bits of one number, in exact arithmetic."""
    if value == 0 or not np.isfinite(value):
        return value
    mantissa, exponent = np.frexp(np.float64(value))
    scaled = mantissa * 4096
    kept = np.trunc(scaled) if toward_zero else np.rint(scaled)
    return float(np.float32(np.ldexp(kept / 4096, exponent)))


@given(
    st.lists(st.floats(width=32, allow_subnormal=False, allow_nan=False), min_size=1, max_size=20),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_hf32_keeps_twelve_significant_bits(values: list[float], toward_zero: bool) -> None:
    given_values = np.array(values, np.float32)
    with np.errstate(all="ignore"):
        expected = np.array([_hf32(value, toward_zero) for value in values], np.float32)
    assert bits(to_hf32(given_values, toward_zero)) == bits(expected)


def test_hf32_leaves_nan_and_infinity() -> None:
    values = np.array([np.nan, np.inf, -np.inf, np.float32(3.4e38)], np.float32)
    for toward_zero in (False, True):
        result = to_hf32(values, toward_zero)
        assert np.isnan(result[0])
        assert result[1:3].tolist() == [np.inf, -np.inf]
    assert to_hf32(values, True)[3] < np.inf


def test_hf32_mode_rounds_operands_and_changes_the_price() -> None:
    a, b = _operands(16, 16, 8, float32, 3)
    with cube(exact=True) as stream:
        fm, weights, c = local(L0A, float32), local(L0B, float32), local(L0C, float32)
        put(stream, fm, layout.nd_to_zz(a))
        put(stream, weights, layout.nd_to_zn(b))
        seen = []
        for mode, toward_zero in ((False, True), (True, False), (True, True), (False, False)):
            set_hf32_mode(mode)
            set_hf32_trans_mode(toward_zero)
            mmad(c, fm, weights, MmadParams(16, 16, 8))
            left, right = (
                np.array([[_hf32(x, toward_zero) if mode else x for x in row] for row in side])
                for side in (a, b)
            )
            expected = (left.astype(np.float64) @ right.astype(np.float64)).astype(np.float32)
            assert np.allclose(_read_c(get(stream, c), 16, 16), expected, rtol=0, atol=1e-6)
            seen.append((bits(get(stream, c, 256)), stream.issued[-1].cost[1]))
        assert [cost for _, cost in seen] == ["float32", "hf32", "hf32", "float32"]
        assert len({content for content, _ in seen}) == 3
        half = local(L0A, float16), local(L0B, float16)
        set_hf32_mode(True)
        mmad(c, *half, MmadParams(16, 16, 16))
        assert stream.issued[-1].cost == ("mmad", "float16")
        stream.registers.reset()
        assert stream.registers.hf32 is False


def test_unit_flags_travel_with_the_call() -> None:
    with cube() as stream:
        for flag in (0, 2, 3):
            mmad(local(L0C, float32), local(L0A, float16), local(L0B, float16),
                 MmadParams(16, 16, 16, flag, False, True))  # fmt: skip
            call = stream.issued[-1]
            assert isinstance(call, CubeCall)
            assert call.unit_flag == flag


@pytest.mark.parametrize("sizes", [(0, 16, 16), (16, 0, 16), (16, 16, 0)])
def test_a_size_of_zero_does_nothing(sizes: tuple[int, int, int]) -> None:
    with cube() as stream:
        mmad(local(L0C, float32), local(L0A, float16), local(L0B, float16), MmadParams(*sizes))
        assert stream.issued[-1].writes == ()


@given(m=SIZE, n=SIZE, k=SIZE, dtype=st.sampled_from(TYPES))
@settings(max_examples=40, deadline=None)
def test_reads_are_the_real_elements(m: int, n: int, k: int, dtype: DType) -> None:
    assume(m > 1)
    with cube() as stream:
        c = local(L0C, _result_type(dtype))
        mmad(c, local(L0A, dtype), local(L0B, dtype), MmadParams(m, n, k, 0, False, False))
        left, right, old = (
            int(np.diff(access.ranges(), axis=1).sum()) for access in stream.issued[-1].reads
        )
        assert (left, right, old) == (m * k * dtype.size, k * n * dtype.size, m * n * 4)


def test_a_tile_that_starts_between_two_fractals_of_c_is_told() -> None:
    with cube() as stream:
        c = local(L0C, float32, 256, 512)
        mmad(c, local(L0A, float16), local(L0B, float16), MmadParams(16, 16, 16))
        lint = stream.issued[-1].lint
        assert lint is not None
        assert "L0C byte 512" in lint[2]


A, B, C, Q = (
    local(s, d) for s, d in ((L0A, float16), (L0B, float16), (L0C, float32), (BT, float32))
)
P = MmadParams
REFUSED = [
    (lambda: mmad(C, B, B, P(16, 16, 16)), "wrong-position", "fm L0B[0:65536] is in L0B, it must be in L0A (A2)"),
    (lambda: mmad(C, A, A, P(16, 16, 16)), "wrong-position", "filter"),
    (lambda: mmad(local(Space.UB, float32), A, B, P(16, 16, 16)), "wrong-position", "L0C (CO1)"),
    (lambda: mmad(C, A, B, local(L1, float32), P(16, 16, 16)), "wrong-position", "BT (C2)"),
    (lambda: mmad(C, A, local(L0B, bfloat16), P(16, 16, 16)), "dtype-mismatch", "both have one type"),
    (lambda: mmad(C, local(L0A, int16), B, P(16, 16, 16)), "wrong-dtype", "float16, bfloat16, float32, int8"),
    (lambda: mmad(local(L0C, float16), A, B, P(16, 16, 16)), "wrong-dtype", "takes float32"),
    (lambda: mmad(C, local(L0A, int8), local(L0B, int8), P(16, 16, 32)), "wrong-dtype", "takes int32"),
    (lambda: mmad(C, A, B, local(BT, int32), P(16, 16, 16)), "wrong-dtype", "takes float32"),
    (lambda: mmad(local(L0C, float32, 256, 256), A, B, P(16, 16, 16)), "misaligned-operand", "256 past a 512-byte"),
    (lambda: mmad(C, local(L0A, float16, 256, 32), B, P(16, 16, 16)), "misaligned-operand", "512-byte"),
    (lambda: mmad(C, A, B, local(BT, float32, 16, 32), P(16, 16, 16)), "misaligned-operand", "64-byte"),
    (lambda: mmad(C, A, B, P(4096, 16, 16)), "m-limit", "m is 4096, allowed is 0 to 4095"),
    (lambda: mmad(C, A, B, P(16, -1, 16)), "n-limit", "-1"),
    (lambda: mmad(C, A, B, P(16, 16, 1.5)), "not-an-integer", "1.5"),
    (lambda: mmad(C, A, B, P(16, 16, 16, 1)), "unit-flag-limit", "0 (off), 2"),
    (lambda: mmad(C, A, B, P(16, 16, 16, 4)), "unit-flag-limit", "0 to 3"),
    (lambda: mmad(C, A, B, P(16, 16, 16, False)), "not-an-integer", "is_bias is given by name"),
    (lambda: mmad(C, A, B, P(16, 16, 16, 0, 5)), "not-a-bool", "cmatrix_source"),
    (lambda: mmad(C, A, B, P(16, 16, 16, en_ssparse=True)), "unsupported-form", "en_ssparse"),
    (lambda: mmad(C, A, B, P(16, 16, 16, fm_offset=1)), "fm-offset-limit", "reserved"),
    (lambda: mmad(C, A, B, P(513, 16, 64)), "memory-out-of-bounds", "33 × 4 fractals of 512 bytes"),
    (lambda: mmad(C, A, B, P(16, 513, 64)), "memory-out-of-bounds", "B of 64 × 513"),
    (lambda: mmad(C, A, B, P(256, 256, 16)), "memory-out-of-bounds", "L0C has 131072"),
    (lambda: mmad(local(L0C, float32, 255), A, B, P(16, 16, 16)), "tensor-out-of-bounds", "4 bytes too many"),
    (lambda: mmad(C, A, B, local(BT, float32, 15), P(16, 16, 16)), "tensor-out-of-bounds", ""),
    (lambda: mmad(C, A, B, Q, Q), "wrong-params", "MmadParams, got LocalTensor"),
    (lambda: mmad(C, A, B), "wrong-params", "got NoneType"),
    (lambda: mmad(C, A, B, Q, P(16, 16, 16), 3), "form", "more arguments"),
    (lambda: mmad(C, A, None, P(16, 16, 16)), "wrong-operand", "filter must be a tensor"),
    (lambda: mmad(C, 3, B, P(16, 16, 16)), "wrong-operand", "got int"),
    (lambda: set_hf32_mode(2), "not-a-bool", "hf32_mode"),
    (lambda: set_hf32_trans_mode("on"), "not-a-bool", "trans_mode"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_refused_and_why(case: int) -> None:
    act, code, words = REFUSED[case]
    with cube() as stream:
        fault = refusal(act)
        assert fault.code == code
        assert words in fault.message
        assert stream.issued == []


def test_mmad_belongs_to_the_cube_core() -> None:
    with vector():
        assert refusal(lambda: mmad(C, A, B, P(16, 16, 16))).code == "wrong-core"


@given(
    place=st.sampled_from(["m", "n", "k", "unit_flag", "cmatrix_source", "cmatrix_init_val"]),
    value=st.one_of(
        st.integers(-(2**40), 2**40), st.floats(), st.text(max_size=2), st.none(),
        st.lists(st.integers(), max_size=2), st.booleans(),
    ),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_bad_fields_are_refused_and_nothing_is_broken(place: str, value: object) -> None:
    from isa.faults import IsaFault

    params = MmadParams(16, 16, 16)
    setattr(params, place, value)
    with cube() as stream:
        try:
            mmad(C, A, B, params)
        except IsaFault as fault:
            assert fault.message.startswith("mmad: ")
            assert stream.issued == []
        else:
            assert len(stream.issued) == 1
