"""Numbers that differ: by how much, where, in what pattern, and which instruction made them."""

from __future__ import annotations

from typing import Any

import numpy as np

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.compare import compare
from tests.user_cases.kit import (
    ALL,
    F16,
    F32,
    I32,
    E,
    Told,
    V,
    Want,
    case,
    fill,
    flag,
    ramp,
    told,
    ub,
    window,
    zeros,
)  # fmt: skip


def blamed(kernel: Any, *args: Any, **options: Any) -> Told:
    """Launch under watch: what is said of the numbers too."""
    found = sim.blame(kernel, *args, **{"chip": "toy", **options})
    return Told([*found.run.findings, *found.findings], found.run)


def cast_of(mode: asc.RoundMode, x: Any, dtype: Any) -> tuple[Any, Told]:
    """Cast float32 numbers on the machine."""
    wide, count = np.zeros(64, np.float32), len(x)
    wide[:count] = x
    out = np.zeros(64, dtype.numpy)

    def kernel(x: asc.GlobalAddress, out: asc.GlobalAddress) -> None:
        source, target = ub(F32, 64, 0), ub(dtype, 64, 4096)
        asc.data_copy(source, window(x), 64)
        flag(E.MTE2_V)
        asc.cast(target, source, mode, 64)
        flag(E.V_MTE3)
        asc.data_copy(window(out), target, 64)

    said = told(kernel, wide, out)
    return out[:count], said


@case(
    "NUM-01",
    Want("NUMERIC", "mismatch", says=("all of them ties", "rounds ties to even", "half away")),
)
def ties(wrong: bool) -> Told:
    """CAST_ROUND takes ties away from zero, the reference to even."""
    x, h = [0.5, 1.5, 2.5, -0.5, -2.5], [1.00390625, 1.01171875]
    mode = asc.RoundMode.CAST_ROUND if wrong else asc.RoundMode.CAST_RINT
    values, said = cast_of(mode, x, I32)
    assert values.tolist() == ([1, 2, 3, -1, -3] if wrong else [0, 2, 2, 0, -2])
    halves, _ = cast_of(mode, h, asc.bfloat16)
    assert halves.tolist() == ([1.0078125, 1.015625] if wrong else [1.0, 1.015625])
    said.findings += compare(values, np.rint(x).astype(np.int32), unrounded=x).findings
    return said


@case(
    "NUM-03",
    Want(
        "NUMERIC",
        "accumulator-stalls",
        "add",
        "UB[0:256]",
        None,
        ("since it ran 2048 times", "the sum is 2048 in float16", "half a spacing"),
    ),
)
def half_precision_sum(wrong: bool) -> Told:
    """Adding ones in float16 ends at 2048."""
    out, turns = zeros(64), 2150
    dtype = F16 if wrong else F32

    def kernel(out: asc.GlobalAddress) -> None:
        acc, ones, wide = ub(dtype, 128, 0), ub(dtype, 128, 4096), ub(F32, 64, 8192)
        asc.duplicate(acc, 0.0, 64)
        asc.duplicate(ones, 1.0, 64)
        for _ in range(turns):
            asc.pipe_barrier(V)
            asc.add(acc, acc, ones, 64)  # add
        asc.pipe_barrier(V)
        if wrong:
            asc.cast(wide, acc, asc.RoundMode.CAST_NONE, 64)
        else:
            asc.adds(wide, acc, 0.0, 64)
        flag(E.V_MTE3)
        asc.data_copy(window(out), wide, 64)

    said = blamed(kernel, out)
    assert (out == (2048 if wrong else turns)).all()
    return said


def product(a: Any, b: Any, c: Any, steps: list[tuple[int, int, int]]) -> Told:
    """C = A B for one tile of 16 rows; steps along K: where in A and B, elements loaded, elements multiplied."""
    k, n = b.shape

    def kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress) -> None:
        P = asc.TPosition
        a1, b1 = asc.LocalTensor(F16, P.A1, 0, 16 * 128), asc.LocalTensor(F16, P.B1, 65536, 128 * n)
        a2, b2 = asc.LocalTensor(F16, P.A2, 0, 16 * 128), asc.LocalTensor(F16, P.B2, 0, 128 * n)
        co = asc.LocalTensor(F32, P.CO1, 0, 16 * n)
        for number, (at, length, used) in enumerate(steps):
            whole = -(-length // 16) * 16
            asc.data_copy(a1, window(a)[at:], asc.Nd2NzParams(1, 16, length, 0, k, 16, 1, 0))
            asc.data_copy(b1, window(b)[at * n :], asc.Nd2NzParams(1, length, n, 0, n, whole, 1, 0))
            flag(E.MTE2_MTE1)
            fractals = whole // 16
            asc.load_data(a2, a1, asc.LoadData2DParams(repeat_times=fractals, src_stride=1))
            asc.load_data(
                b2, b1, asc.LoadData2DParams(repeat_times=fractals, src_stride=1, if_transpose=True)
            )
            flag(E.MTE1_M)
            asc.mmad(co, a2, b2, asc.MmadParams(16, n, used, cmatrix_init_val=number == 0))  # mmad
            flag(E.M_MTE1)
            flag(E.MTE1_MTE2)
            asc.pipe_barrier(asc.PipeID.PIPE_M)
        flag(E.M_FIX)
        asc.fixpipe(
            window(c), co, asc.FixpipeParamsV220(n, 16, 16, n), asc.FixpipeConfig.cfg_row_major()
        )

    return told(kernel, a, b, c, kernel_type="AIC_ONLY", whole=("a", "b"))


@case(
    "NUM-04",
    Want(
        "UNINIT", "uninitialised-read", "", "L0B", None, ("mmad reads L0B", "nothing had written")
    ),
    Want("NUMERIC", "mismatch", says=("192", "0.96 of the reference")),
    Want("COVERAGE", "input-not-read", says=("a: columns 192 to 199 of every row",)),
)
def tail_of_k(wrong: bool) -> Told:
    """K = 200 is 128 and 72: the tail neither cut to 64 nor taken as 80 with what lay there."""
    a, b = np.ones((16, 200), np.float16), np.ones((200, 16), np.float16)
    c = zeros(16, 16)
    if not wrong:
        said = product(a, b, c, [(0, 128, 128), (128, 72, 72)])
        assert (c == 200).all()
        return said
    said = product(a[:, :72].copy(), b[:72].copy(), c, [(0, 72, 80)])
    said.findings += product(a, b, c, [(0, 128, 128), (128, 64, 64)]).findings
    assert (c == 192).all()
    said.findings += compare(c, np.full((16, 16), 200.0, np.float32), name="c").findings
    return said


@case(
    "NUM-05",
    Want("COVERAGE", "input-not-read", says=("a: columns 128 to 191 of every row",)),
)
def tail_from_the_wrong_place(wrong: bool) -> Told:
    """The second step starts where the first one's tail length would put it."""
    a = np.tile(np.arange(192, dtype=np.float16), (16, 1))
    b, c = np.ones((192, 16), np.float16), zeros(16, 16)
    said = product(a, b, c, [(0, 128, 128), (64 if wrong else 128, 64, 64)])
    assert (c == (14240 if wrong else 18336)).all()
    return said


@case(
    "NUM-07",
    Want(
        "NUMERIC",
        "nan-born",
        "sub",
        "UB[0:256]",
        None,
        ("adds makes the first NaN", "64 in all", "it read -inf", "64 of 128 elements of out"),
    ),
)
def row_fully_masked(wrong: bool) -> Told:
    """-inf less -inf is no number, and spreads."""
    x, out = np.full((2, 64), -np.inf, np.float32), zeros(2, 64)
    x[0] = ramp(64) / 64

    def kernel(x: asc.GlobalAddress, out: asc.GlobalAddress) -> None:
        for row in range(2):
            s, m, tmp = ub(F32, 64, 0), ub(F32, 8, 4096), ub(F32, 64, 8192)
            asc.data_copy(s, window(x)[64 * row :], 64)
            flag(E.MTE2_V)
            asc.reduce_max(m, s, tmp, 64)
            flag(E.V_S)
            top = m.get_value(0)
            if not wrong and top == -np.inf:
                asc.duplicate(s, 0.0, 64)
            else:
                asc.adds(s, s, -top, 64)  # sub
                asc.pipe_barrier(V)
                asc.exp(s, s, 64)
            flag(E.V_MTE3)
            asc.data_copy(window(out)[64 * row :], s, 64)
            asc.pipe_barrier(ALL)

    said = blamed(kernel, x, out)
    assert np.isnan(out[1]).all() if wrong else (out[1] == 0).all()
    return said


@case(
    "NUM-08",
    Want("INFO", "discontinuous", says=("within 1 ulp", "step")),
)
def one_ulp_before_a_floor(wrong: bool) -> Told:
    """The sum is within an ulp or two of 1, and floor makes a whole 1 of it."""
    t, one = np.array([0.99999988], np.float32), np.ones(1, np.float32)
    given = np.floor(t) if wrong else one
    said = Told()
    said.findings += compare(given, one, name="y", argument=(t, one)).findings
    return said


@case(
    "NUM-09",
    Want(
        "NUMERIC",
        "first-difference",
        "div",
        "",
        None,
        (
            "div is the first stage",
            "is 1.7615941, the reference 0.88079708",
            "read 2 and 1.1353353",
        ),
    ),
)
def swish_for_sigmoid(wrong: bool) -> Told:
    """The stage that departs is the division."""
    x, out = np.full(64, 2.0, np.float32), zeros(64)

    def kernel(x: asc.GlobalAddress, out: asc.GlobalAddress) -> None:
        v, t, one = ub(F32, 64, 0), ub(F32, 64, 4096), ub(F32, 64, 8192)
        asc.data_copy(v, window(x), 64)
        asc.duplicate(one, 1.0, 64)
        flag(E.MTE2_V)
        asc.muls(t, v, -1.0, 64)
        asc.pipe_barrier(V)
        asc.exp(t, t, 64)
        asc.pipe_barrier(V)
        asc.adds(t, t, 1.0, 64)
        asc.pipe_barrier(V)
        asc.div(t, v if wrong else one, t, 64)  # div
        flag(E.V_MTE3)
        asc.data_copy(window(out), t, 64)

    e = np.exp(-2.0)
    said = blamed(kernel, x, out, stages=[("exp", [e]), ("adds", [1 + e]), ("div", [1 / (1 + e)])])
    assert abs(out[0] - (1.7616 if wrong else 0.8808)) < 1e-4
    return said


@case(
    "NUM-12",
    Want(
        "ILLEGAL_PARAM", "repeat-times-limit", "add", "",
        None, ("repeat_times is 256", "0 to 255", "256 wraps to 0"),
    ),
)  # fmt: skip
def repeats_wrap(wrong: bool) -> Told:
    """The field has 8 bits; the form with a count takes as many elements as there are."""

    def kernel() -> None:
        a, b = ub(F16, 32768, 0), ub(F16, 32768, 65536)
        fill(a, b)
        if wrong:
            asc.add(a, a, b, 128, 256, asc.BinaryRepeatParams())  # add
        else:
            asc.add(a, a, b, 32768)

    return told(kernel)


@case(
    "NUM-15",
    Want(
        "STATE", "atomic-left-on", "atomic", "z",
        None, ("into y at", "and z at", "set_atomic_none", "float32"),
    ),
)  # fmt: skip
def atomic_mode_left_on(wrong: bool) -> Told:
    """The second store accumulates too, and so do those of the next kernel."""
    y, z = zeros(64), zeros(64)

    def kernel(y: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        t = ub(F32, 64, 0)
        fill(t)
        asc.set_atomic_add(F32)  # atomic
        asc.data_copy(window(y), t, 64)
        if not wrong:
            asc.set_atomic_none()
        asc.data_copy(window(z), t, 64)

    said = told(kernel, y, z)
    told(kernel, y, z)
    assert (y == 2).all()
    assert (z == (2 if wrong else 1)).all()
    return said


@case(
    "NUM-18",
    Want("NUMERIC", "mismatch", says=("0.25 of the reference", "scale")),
    Want("NUMERIC", "nothing-compared"),
)
def scaled_twice(wrong: bool) -> Told:
    """The gradient lacks a factor everywhere; and a comparison that compares nothing says so."""
    generator = np.random.default_rng(3)
    ds, k = generator.standard_normal((4, 16)), generator.standard_normal((16, 16))
    reference = ds @ k
    given = 0.25 * reference if wrong else reference
    said = Told()
    said.findings += compare(
        given, reference, name="dq", rtol=1e-6, factors={"scale": 0.25}
    ).findings
    if wrong:
        said.findings += compare(given[:0], reference[:0], name="dq").findings
    return said


@case(
    "NUM-21",
    Want("NUMERIC", "mismatch", says=("rounded after every update", "equal to")),
)
def rounding_after_every_update(wrong: bool) -> Told:
    """The reference rounds to the storage type after each addition."""
    y = zeros(64, dtype=np.float16)
    y[:] = 2048

    def kernel(y: asc.GlobalAddress) -> None:
        row, one = ub(F16, 64, 0), ub(F16, 64, 4096)
        wide, sums = ub(F32, 64, 8192), ub(F32, 64, 12288)
        fill(one)
        asc.data_copy(row, window(y), 64)
        flag(E.MTE2_V)
        if wrong:
            asc.cast(sums, row, asc.RoundMode.CAST_NONE, 64)
            asc.cast(wide, one, asc.RoundMode.CAST_NONE, 64)
        for _ in range(2):
            asc.pipe_barrier(V)
            if wrong:
                asc.add(sums, sums, wide, 64)
            else:
                asc.add(row, row, one, 64)
        asc.pipe_barrier(V)
        if wrong:
            asc.cast(row, sums, asc.RoundMode.CAST_RINT, 64)
        flag(E.V_MTE3)
        asc.data_copy(window(y), row, 64)

    said = told(kernel, y)
    models = {
        "rounded after every update": np.full(64, 2048, np.float16),
        "accumulated in float32": np.full(64, 2050, np.float16),
    }
    said.findings += compare(
        y, models["rounded after every update"], name="y", models=models
    ).findings
    assert np.int8(100) + np.int8(28 - 128) == 0
    return said
