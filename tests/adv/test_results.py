"""What Matmul objects do besides C in GM: results in UB, operands in UB, waiting later, adding up, scales, batches."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from tests.adv.kit import (
    GM,
    ND,
    NZ,
    WORKSPACE,
    Case,
    cube_only,
    from_nz,
    mix,
    offsets,
    operands,
    oracle,
    product,
    set_operands,
    stored,
    tensor,
    tiling_of,
    types_of,
    up,
)

VECIN, VECOUT = asc.TPosition.VECIN, asc.TPosition.VECOUT
E = asc.HardEvent
BASE = (32, 32, 32)


def launch(kernel: Any, case: Case, tiling: Any, *arrays: Any, **options: Any) -> Any:
    """Run a mix kernel (a, b, bias, workspace, tiling, case, arrays…) on operands of a case; nothing is found."""
    a, b, bias = operands(case)
    blocks = options.pop("blocks", 1)
    run = sim.launch(
        kernel, *stored(case, a, b), bias.astype(case.sums.numpy), np.zeros(WORKSPACE, np.uint8), tiling, case,
        *arrays, cores=blocks, **options,
    )  # fmt: skip
    assert run.findings == []
    return oracle(case, a, b, bias)


def ready(
    a: Any, b: Any, bias: Any, workspace: Any, tiling: Any, case: Any, position: Any = VECIN
) -> Any:
    """A registered object with its operands set, its row and column, and the TPipe."""
    pipe = asc.TPipe()
    mm = asc.adv.Matmul(*types_of(case, position))
    asc.adv.register_matmul(pipe, workspace, mm, tiling)
    row, column = offsets(case, tiling, asc.get_block_idx())
    set_operands(mm, case, tiling, a, b, bias, row, column)
    return mm, row, column, pipe


# ---- results in UB ----------------------------------------------------------------------------


@asc.jit(auto_sync=False)
def leaky_blocks(a: Any, b: Any, bias: Any, workspace: Any, tiling: Any, case: Any, c: Any) -> None:
    """Matmul + leaky relu: each block to UB, through the vector unit, and to its place in C."""
    mm, row, column, pipe = ready(a, b, bias, workspace, tiling, case)
    que = asc.TQue(VECOUT, 1)
    pipe.init_buffer(que=que, num=2, len=tiling.base_m * tiling.base_n * 4)
    out = tensor(c)[row * case.n + column :]
    with mm.iterate() as _:
        block = que.alloc_tensor(asc.float32)
        mm.get_tensor_c(block, 0, True)
        place = mm.get_offset_c()
        width = up(place.width, 8)
        asc.leaky_relu(block, block, 0.125, place.height * width)
        que.enque(block)
        block = que.deque(asc.float32)
        gap = (case.n - place.width) * 4
        asc.data_copy_pad(
            out[place.offset :], block, asc.DataCopyExtParams(place.height, place.width * 4, 0, gap)
        )
        que.free_tensor(block)
    mm.end()


@pytest.mark.parametrize("shape", [(64, 128, 64), (70, 50, 40), (1, 100, 30)])
@pytest.mark.parametrize("blocks", [1, 2])
def test_matmul_and_leaky_relu(shape: tuple[int, int, int], blocks: int) -> None:
    case = Case(*shape, bias=True, base=BASE, cores=2 * blocks)
    c = np.zeros(shape[:2], np.float32)
    tiling = tiling_of(case, on_vector_core=True)
    expected = launch(leaky_blocks, case, tiling, c, blocks=blocks)
    assert np.array_equal(c, np.where(expected > 0, expected, expected / 8))


@asc.jit(auto_sync=False)
def both_places(
    a: Any, b: Any, bias: Any, workspace: Any, tiling: Any, case: Any, c: Any, twice: Any
) -> None:
    """Each block to GM and to UB at once; the one in UB is doubled and stored elsewhere."""
    mm, _, _, pipe = ready(a, b, bias, workspace, tiling, case)
    buffer = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(buffer, tiling.base_m * tiling.base_n * 4)
    block = buffer.get(asc.float32)
    size = tiling.base_m * tiling.base_n
    for count in mm.iterate():
        mm.get_tensor_c(tensor(c)[count * size :], 0, True, optional_tensor=block)
        asc.add(block, block, block, size)
        asc.set_flag(E.V_MTE3, 0)
        asc.wait_flag(E.V_MTE3, 0)
        asc.data_copy(tensor(twice)[count * size :], block, size)
        asc.set_flag(E.MTE3_V, 0)
        asc.wait_flag(E.MTE3_V, 0)
    mm.end()


def test_a_block_to_gm_and_ub() -> None:
    case = Case(64, 64, 32, base=BASE, cores=1)
    c, twice = np.zeros((4, 32, 32), np.float32), np.zeros((4, 32, 32), np.float32)
    tiling = tiling_of(case, on_vector_core=True)
    expected = launch(both_places, case, tiling, c, twice, kernel_type="MIX_AIC_1_1")
    down = tiling.iterate_order == 0
    for number in range(4):
        row, column = (number % 2, number // 2) if down else (number // 2, number % 2)
        block = expected[32 * row : 32 * row + 32, 32 * column : 32 * column + 32]
        assert np.array_equal(c[number], block)
        assert np.array_equal(twice[number], 2 * block)


@asc.jit(auto_sync=False)
def all_to_ub(a: Any, b: Any, bias: Any, workspace: Any, tiling: Any, case: Any, c: Any) -> None:
    """All of this core's C to UB, in the layout that the MatmulType says."""
    mm, _, _, pipe = ready(a, b, bias, workspace, tiling, case)
    buffer = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(buffer, up(case.m) * up(case.n) * 4)
    whole = buffer.get(case.result)
    mm.iterate_all(whole)
    asc.set_flag(E.MTE2_MTE3, 0)
    asc.wait_flag(E.MTE2_MTE3, 0)
    if case.nz_c:
        asc.data_copy(tensor(c), whole, up(case.m) * up(case.n))
    else:
        asc.data_copy_pad(
            tensor(c), whole, asc.DataCopyExtParams(case.m, case.n * whole.dtype.size, 0, 0)
        )
    mm.end()


@pytest.mark.parametrize("nz", [False, True], ids=["rows", "fractals"])
@pytest.mark.parametrize("shape", [(64, 48, 64), (33, 40, 70)])
@pytest.mark.parametrize("out", [asc.float32, asc.float16], ids=str)
def test_all_of_c_in_ub(nz: bool, shape: tuple[int, int, int], out: Any) -> None:
    if nz and shape[0] % 16:
        shape = (48, 48, 64)
    case = Case(*shape, out=out, nz_c=nz, base=BASE)
    c = np.zeros((up(case.m) * up(case.n)) if nz else case.m * case.n, out.numpy)
    expected = launch(all_to_ub, case, tiling_of(case), c, kernel_type="MIX_AIC_1_1")
    rows = from_nz(c, case.m, case.n, 16) if nz else c.reshape(case.m, case.n)
    assert np.array_equal(rows, expected)


# ---- operands in UB ---------------------------------------------------------------------------


@asc.jit(auto_sync=False)
def operand_in_ub(
    a: Any, b: Any, bias: Any, workspace: Any, tiling: Any, case: Any, c: Any
) -> None:
    """A comes to UB, is doubled there, and goes into the product; twice over, so that its room is used again."""
    pipe = asc.TPipe()
    kinds = types_of(case)
    kinds[0] = asc.adv.MatmulType(VECOUT, NZ if case.nz_a else ND, case.dtype, case.turn_a)
    mm = asc.adv.Matmul(*kinds)
    asc.adv.register_matmul(pipe, workspace, mm, tiling)
    que = asc.TQue(VECOUT, 1)
    size = up(case.m) * up(case.k)
    pipe.init_buffer(que=que, num=1, len=size * 2)
    room = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(room, size * 2)
    source = room.get(case.dtype)
    asc.data_copy(source, tensor(a), size)
    asc.set_flag(E.MTE2_V, 0)
    asc.wait_flag(E.MTE2_V, 0)
    for turn in range(2):
        local = que.alloc_tensor(case.dtype)
        asc.muls(local, source, 2.0 * (turn + 1), size)
        que.enque(local)
        local = que.deque(case.dtype)
        mm.set_tensor_a(local, case.turn_a)
        mm.set_tensor_b(tensor(b), case.turn_b)
        mm.iterate_all(tensor(c)[turn * case.m * case.n :])
        que.free_tensor(local)
    mm.end()


@pytest.mark.parametrize("turned", [False, True], ids=["rows", "turned"])
@pytest.mark.parametrize("nz", [False, True], ids=["nd", "nz"])
def test_a_comes_from_ub(turned: bool, nz: bool) -> None:
    case = Case(48, 32, 64, turn_a=turned, nz_a=nz, base=BASE)
    c = np.zeros((2, 48, 32), np.float32)
    expected = launch(operand_in_ub, case, tiling_of(case), c, kernel_type="MIX_AIC_1_1")
    assert np.array_equal(c[0], 2 * expected)
    assert np.array_equal(c[1], 4 * expected)


# ---- waiting later ----------------------------------------------------------------------------


@asc.jit(auto_sync=False)
def waits_later(
    a: Any, b: Any, bias: Any, workspace: Any, tiling: Any, case: Any, c: Any, copy: Any
) -> None:
    """iterate_all that is waited for later, then its result through UB to another place."""
    mm, _, _, pipe = ready(a, b, bias, workspace, tiling, case, GM)
    buffer = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(buffer, case.m * case.n * 4)
    local = buffer.get(asc.float32)
    mm.iterate_all(tensor(c), 0, sync=False, wait_iterate_all=True)
    asc.duplicate(local, 0.0, 64)
    mm.wait_iterate_all()
    asc.set_flag(E.V_MTE2, 0)
    asc.wait_flag(E.V_MTE2, 0)
    asc.data_copy(local, tensor(c), case.m * case.n)
    asc.set_flag(E.MTE2_MTE3, 0)
    asc.wait_flag(E.MTE2_MTE3, 0)
    asc.data_copy(tensor(copy), local, case.m * case.n)
    mm.end()


def test_a_later_wait() -> None:
    case = Case(64, 64, 64, base=BASE)
    c, copy = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    expected = launch(waits_later, case, tiling_of(case), c, copy, kernel_type="MIX_AIC_1_1")
    assert np.array_equal(c, expected)
    assert np.array_equal(copy, expected)


@asc.jit(auto_sync=False)
def computes_ahead(
    a: Any, b: Any, bias: Any, workspace: Any, tiling: Any, case: Any, room: Any, c: Any
) -> None:
    """All blocks into GM without waiting; then each fetched to UB (or found in GM), and stored one behind another."""
    mm, _, _, pipe = ready(a, b, bias, workspace, tiling, case)
    buffer = asc.TBuf(asc.TPosition.VECCALC)
    size = tiling.base_m * tiling.base_n
    pipe.init_buffer(buffer, size * 4)
    local = buffer.get(asc.float32)
    mm.set_workspace(tensor(room))
    blocks = mm.iterate(sync=False)
    for count in blocks:
        if count % 2:
            place = mm.get_tensor_c(sync=False)
            asc.set_flag(E.MTE3_MTE2, 0)
            asc.wait_flag(E.MTE3_MTE2, 0)
            asc.data_copy(local, place, size)
            asc.set_flag(E.MTE2_V, 0)
            asc.wait_flag(E.MTE2_V, 0)
        else:
            mm.get_tensor_c(local, sync=False)
            mm.wait_get_tensor_c()
        asc.muls(local, local, 2.0, size)
        asc.set_flag(E.V_MTE3, 0)
        asc.wait_flag(E.V_MTE3, 0)
        asc.data_copy(tensor(c)[count * size :], local, size)
        asc.set_flag(E.MTE3_V, 0)
        asc.wait_flag(E.MTE3_V, 0)
    mm.end()


def test_blocks_computed_ahead() -> None:
    case = Case(64, 64, 48, base=BASE)
    room, c = np.zeros((4, 32, 32), np.float32), np.zeros((4, 32, 32), np.float32)
    tiling = tiling_of(case, on_vector_core=True)
    expected = launch(computes_ahead, case, tiling, room, c, kernel_type="MIX_AIC_1_1")
    blocks = expected.reshape(2, 32, 2, 32).transpose(0, 2, 1, 3)
    if tiling.iterate_order == 0:
        blocks = blocks.transpose(1, 0, 2, 3)
    assert np.array_equal(c, 2 * blocks.reshape(4, 32, 32))


# ---- adding up --------------------------------------------------------------------------------


@asc.jit(auto_sync=False)
def adds_up(a: Any, b: Any, bias: Any, workspace: Any, tiling: Any, case: Any, c: Any) -> None:
    """K shared by the cores: each adds its product to C."""
    pipe = asc.TPipe()
    mm = asc.adv.Matmul(*types_of(case))
    asc.adv.register_matmul(pipe, workspace, mm, tiling)
    depth = case.k // 4
    first = asc.get_block_idx() * depth
    mm.set_tensor_a(tensor(a)[first:])
    mm.set_tensor_b(tensor(b)[first * case.n :])
    mm.set_tail(case.m, case.n, depth)
    mm.iterate_all(tensor(c), 1)
    mm.end()


def test_cores_that_share_k_add_to_c() -> None:
    case = Case(40, 48, 128, base=BASE)
    c = np.ones((40, 48), np.float32)
    expected = launch(adds_up, case, tiling_of(case), c, blocks=2)
    assert np.array_equal(c, expected + 1)


@asc.jit(matmul_cube_only=True, auto_sync=False)
def partial_sums(a: Any, b: Any, bias: Any, workspace: Any, tiling: Any, case: Any, c: Any) -> None:
    """K in two halves: the second product adds to what the first one left in L0C."""
    pipe = asc.TPipe()
    mm = asc.adv.Matmul(*types_of(case))
    asc.adv.register_matmul(pipe, workspace, mm, tiling)
    half = case.k // 2
    for part in range(2):
        mm.set_tensor_a(tensor(a)[part * half :])
        mm.set_tensor_b(tensor(b)[part * half * case.n :])
        mm.set_tail(case.m, case.n, half)
        for _ in mm.iterate(en_partial_sum=part > 0):
            if part:
                mm.get_tensor_c(tensor(c))
    mm.end()


def test_partial_sums_stay_in_l0c() -> None:
    case = Case(32, 32, 64, base=(32, 32, 16))
    c = np.zeros((32, 32), np.float32)
    assert np.array_equal(launch(partial_sums, case, tiling_of(case), c), c)
    assert c.any()


# ---- scales -----------------------------------------------------------------------------------


def _bits(scale: float) -> int:
    """The scale as pyasc's documentation of set_quant_scalar makes it."""
    return int.from_bytes(struct.pack("<f", scale), "little")


@asc.jit(matmul_cube_only=True, auto_sync=False)
def scaled(
    a: Any, b: Any, bias: Any, workspace: Any, tiling: Any, case: Any, c: Any, scale: Any
) -> None:
    """One scale for all, or one a column."""
    pipe = asc.TPipe()
    mm = asc.adv.Matmul(*types_of(case))
    asc.adv.register_matmul(pipe, workspace, mm, tiling)
    if isinstance(scale, int):
        mm.set_quant_scalar(scale)
    else:
        mm.set_quant_vector(tensor(scale))
    set_operands(mm, case, tiling, a, b, bias, 0, 0)
    mm.iterate_all(tensor(c))
    mm.end()


@pytest.mark.parametrize("by_column", [False, True], ids=["scalar", "vector"])
@pytest.mark.parametrize(
    ("dtype", "out"),
    [(asc.int8, asc.float16), (asc.int8, asc.int8), (asc.float16, asc.int8)],
    ids=str,
)
def test_scales(dtype: Any, out: Any, by_column: bool) -> None:
    case = Case(40, 70, 64, dtype, out, base=BASE)
    shifts = np.arange(70) % 5
    powers = 2.0**-shifts if by_column else np.full(70, 0.25)
    words = np.array(
        [asc.quant_parameter(power, signed=out is asc.int8) for power in powers], np.uint64
    )
    c = np.zeros((40, 70), out.numpy)
    expected = (
        launch(scaled, case, tiling_of(case), c, words if by_column else _bits(0.25)) * powers
    )
    if out is asc.int8:
        expected = np.clip(np.rint(expected), -128, 127)
    assert np.array_equal(c, expected.astype(out.numpy))


def test_hf32_rounds_operands_and_halves_the_work() -> None:
    @asc.jit(matmul_cube_only=True, auto_sync=False)
    def kernel(a: Any, b: Any, c: Any, tiling: Any, case: Any, hf32: Any) -> None:
        pipe = asc.TPipe()
        mm = asc.adv.Matmul(*types_of(case))
        asc.adv.register_matmul(pipe, None, mm, tiling)
        mm.set_hf32(hf32)
        set_operands(mm, case, tiling, a, b, None, 0, 0)
        mm.iterate_all(tensor(c))
        mm.end()

    case = Case(64, 64, 64, asc.float32)
    random = np.random.default_rng(8)
    a, b = random.normal(size=(2, 64, 64)).astype(np.float32)
    out, work = {}, {}
    for hf32 in (False, True):
        out[hf32] = np.zeros((64, 64), np.float32)
        run = sim.launch(kernel, a, b, out[hf32], tiling_of(case), case, hf32)
        assert run.findings == []
        work[hf32] = run.summary["work"]["aic"]["M"]
    true = a.astype(np.float64) @ b
    assert np.max(np.abs(out[False] - true)) < 1e-4
    assert 1e-4 < np.max(np.abs(out[True] - true)) < 0.05
    assert work[True] * 2 == work[False]


# ---- batches ----------------------------------------------------------------------------------


@asc.jit(auto_sync=False)
def batch(
    a: Any, b: Any, c: Any, workspace: Any, tiling: Any, layouts: Any, sizes: Any, cube: Any
) -> None:
    """A batch in one call."""
    pipe = asc.TPipe()
    kinds = [
        asc.adv.MatmulType(GM, ND, dtype, turned, layout)
        for dtype, turned, layout in zip(
            (asc.float16, asc.float16, asc.float32), (False, True, False), layouts, strict=True
        )
    ]
    mm = asc.adv.Matmul(*kinds)
    asc.adv.register_matmul(pipe, workspace, mm, tiling)
    mm.set_tensor_a(tensor(a))
    mm.set_tensor_b(tensor(b), True)
    if cube:
        mm.set_batch_num(*sizes)
        mm.iterate_batch(tensor(c), False, 0, False)
    else:
        mm.iterate_batch(tensor(c), sizes[0], sizes[1], False)
    mm.end()


@pytest.mark.parametrize("kernel_type", ["MIX_AIC_1_1", "AIC_ONLY"])
@pytest.mark.parametrize("layout", ["NORMAL", "BSNGD"])
@pytest.mark.parametrize("sizes", [(3, 3), (3, 1), (1, 3)])
def test_batches(kernel_type: str, layout: str, sizes: tuple[int, int]) -> None:
    m, n, k = 32, 48, 64
    random = np.random.default_rng(9)
    a = random.integers(-3, 4, (sizes[0], m, k)).astype(np.float16)
    b = random.integers(-3, 4, (sizes[1], n, k)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)
    tiling = tiling_of(Case(m, n, k, turn_b=True, base=BASE))
    spread = layout == "BSNGD"
    mode = asc.LayoutMode[layout]
    for which, rows, columns, count in (
        ("a", m, k, sizes[0]),
        ("b", n, k, sizes[1]),
        ("c", m, n, max(sizes)),
    ):
        names = ("b", "s1", "n", "g", "s2") if which == "c" else ("b", "s", "n", "g", "d")
        for name, value in zip(names, (1, rows, 1, count, columns), strict=True):
            setattr(tiling, f"{which}_layout_info_{name}", value)
    # [B, S, N, G, D] with B = N = 1: the matrices of a batch lie side by side.
    lay = (lambda x: np.ascontiguousarray(x.transpose(1, 0, 2))) if spread else (lambda x: x)
    c = np.zeros_like(lay(expected), np.float32)
    run = sim.launch(
        batch, lay(a), lay(b), c, np.zeros(WORKSPACE, np.uint8), tiling, (mode, mode, mode), sizes,
        kernel_type == "AIC_ONLY", kernel_type=kernel_type,
    )  # fmt: skip
    assert run.findings == []
    assert np.array_equal(c, lay(expected))


def test_numerics_exact_gives_the_same() -> None:
    case = Case(40, 50, 60, bias=True, base=BASE)
    for kernel in (cube_only, mix):
        c, expected, run = product(kernel, case, numerics="exact")
        assert np.array_equal(c, expected)
        assert run.findings == []
