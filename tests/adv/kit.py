"""Products by Matmul objects: kernels of every kind over one set of arguments, and the oracle they are held to.

Operands are small whole numbers, so every sum is exact in float32 and results must be equal bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.asc.lib import host
from ascend_sim.run import Run

GM, ND, NZ = asc.TPosition.GM, asc.CubeFormat.ND, asc.CubeFormat.NZ
HOST_TYPE = {
    asc.float16: host.DataType.DT_FLOAT16,
    asc.bfloat16: host.DataType.DT_BF16,
    asc.float32: host.DataType.DT_FLOAT,
    asc.int8: host.DataType.DT_INT8,
    asc.int32: host.DataType.DT_INT32,
}
WORKSPACE = 1 << 21


@dataclass(frozen=True)
class Case:
    """A product and how its operands are stored."""

    m: int
    n: int
    k: int
    dtype: Any = asc.float16
    out: Any = None
    turn_a: bool = False
    turn_b: bool = False
    bias: bool = False
    bias_type: Any = None
    nz_a: bool = False
    nz_b: bool = False
    nz_c: bool = False
    base: tuple[int, int, int] = (-1, -1, -1)
    cores: int = 1
    traverse: Any = host.MatrixTraverse.NOSET
    unit_flags: bool = True

    @property
    def sums(self) -> Any:
        return asc.int32 if self.dtype is asc.int8 else asc.float32

    @property
    def result(self) -> Any:
        return self.out or self.sums


def tiling_of(case: Case, *, on_vector_core: bool = False) -> Any:
    """The tiling that the host side finds; `cores` parts."""
    where = host.TPosition.VECIN if on_vector_core else host.TPosition.GM
    kind = HOST_TYPE[case.dtype]
    made = host.MultiCoreMatmulTiling(host.get_ascendc_platform())
    made.set_dim(case.cores)
    made.set_a_type(host.TPosition.GM, host.CubeFormat.ND, kind, case.turn_a)
    made.set_b_type(host.TPosition.GM, host.CubeFormat.ND, kind, case.turn_b)
    made.set_c_type(where, host.CubeFormat.ND, HOST_TYPE[case.result])
    made.set_bias_type(host.TPosition.GM, host.CubeFormat.ND, HOST_TYPE[case.sums])
    made.set_shape(case.m, case.n, case.k)
    made.set_org_shape(case.m, case.n, case.k)
    made.enable_bias(case.bias)
    made.set_fix_split(*case.base)
    made.set_traverse(case.traverse)
    made.set_buffer_space(-1, -1, -1)
    tiling = asc.adv.TCubeTiling()
    assert made.get_tiling(tiling) == 0
    return tiling


def operands(case: Case, seed: int = 0) -> tuple[Any, Any, Any]:
    """A [m, k], B [k, n] and the bias [n] as whole numbers."""
    random = np.random.default_rng(seed)
    return (
        random.integers(-4, 5, (case.m, case.k)),
        random.integers(-4, 5, (case.k, case.n)),
        random.integers(-50, 50, case.n),
    )


def oracle(case: Case, a: Any, b: Any, bias: Any) -> Any:
    """The product in float64, which holds these sums exactly."""
    return a.astype(np.float64) @ b.astype(np.float64) + (bias if case.bias else 0)


def up(size: int, unit: int = 16) -> int:
    return -(-size // unit) * unit


def to_nz(matrix: Any, c0: int) -> Any:
    """Rows as columns of fractals, padded with zeros: written from the layout's formula."""
    rows, columns = matrix.shape
    stored = np.zeros((up(columns, c0) // c0, up(rows), c0), matrix.dtype)
    for column in range(columns):
        stored[column // c0, :rows, column % c0] = matrix[:, column]
    return stored


def from_nz(stored: Any, rows: int, columns: int, c0: int) -> Any:
    """The inverse of `to_nz`."""
    groups = stored.reshape(-1, up(rows), c0)
    return np.stack([groups[c // c0, :rows, c % c0] for c in range(columns)], axis=1)


def stored(case: Case, a: Any, b: Any) -> tuple[Any, Any]:
    """The operands as they lie in GM."""
    a = (a.T if case.turn_a else a).astype(case.dtype.numpy)
    b = (b.T if case.turn_b else b).astype(case.dtype.numpy)
    c0 = 32 // case.dtype.size
    return (
        np.ascontiguousarray(to_nz(a, c0) if case.nz_a else a),
        np.ascontiguousarray(to_nz(b, c0) if case.nz_b else b),
    )


def types_of(case: Case, position: Any = GM) -> list[Any]:
    """The MatmulTypes of A, B, C and the bias."""
    kind = asc.adv.MatmulType
    return [
        kind(GM, NZ if case.nz_a else ND, case.dtype, case.turn_a),
        kind(GM, NZ if case.nz_b else ND, case.dtype, case.turn_b),
        kind(position, NZ if case.nz_c else ND, case.result),
        kind(GM, ND, case.bias_type or case.sums),
    ]


def tensor(address: Any) -> Any:
    made = asc.GlobalTensor()
    made.set_global_buffer(address)
    return made


def offsets(case: Case, tiling: Any, index: int) -> tuple[int, int]:
    """Row and column of a core's part of C."""
    down = -(-tiling.m // tiling.single_core_m)
    return index % down * tiling.single_core_m, index // down * tiling.single_core_n


def set_operands(
    mm: Any, case: Case, tiling: Any, a: Any, b: Any, bias: Any, row: int, column: int
) -> None:
    """Point a Matmul object to one core's part, with its tails."""
    first_a = row if case.turn_a else row * case.k
    first_b = column * case.k if case.turn_b else column
    mm.set_tensor_a(tensor(a)[first_a:], case.turn_a)
    mm.set_tensor_b(tensor(b)[first_b:], case.turn_b)
    mm.set_tail(min(tiling.single_core_m, case.m - row), min(tiling.single_core_n, case.n - column))
    if case.bias:
        mm.set_bias(tensor(bias)[column:])


def body(
    a: Any, b: Any, bias: Any, c: Any, workspace: Any, tiling: Any, case: Any, blocks: Any
) -> None:
    """Each core its part of C: all at once, or (`blocks`) block by block."""
    pipe = asc.TPipe()
    a_type, b_type, c_type, bias_type = types_of(case)
    config = asc.adv.get_normal_config(en_unit_flag=case.unit_flags)
    mm = asc.adv.Matmul(a_type, b_type, c_type, bias_type, config)
    asc.adv.register_matmul(pipe, workspace, mm, tiling)
    index = asc.get_block_idx()
    if index >= tiling.used_core_num:
        return
    row, column = offsets(case, tiling, index)
    set_operands(mm, case, tiling, a, b, bias, row, column)
    place = column * up(case.m) + row * 16 if case.nz_c else row * case.n + column
    out = tensor(c)[place:]
    if blocks:
        with mm.iterate() as _:
            mm.get_tensor_c(out)
    else:
        mm.iterate_all(out)
    mm.end()


cube_only = asc.jit(matmul_cube_only=True, auto_sync=False)(body)
mix = asc.jit(auto_sync=False)(body)


def product(
    kernel: Any, case: Case, *, blocks: bool = False, tiling: Any = None, **options: Any
) -> tuple[Any, Any, Run]:
    """Run a kernel on a case; C as rows, what it should be, and the run."""
    if tiling is None:
        tiling = tiling_of(case)
    a, b, bias = operands(case)
    kind = case.result.numpy
    c = np.zeros(up(case.n) * up(case.m) if case.nz_c else (case.m, case.n), kind)
    if case.nz_c:
        options["outputs"] = ["c"]  # its padding rows stay as they are
    bias_array = bias.astype((case.bias_type or case.sums).numpy)
    run = sim.launch(
        kernel, *stored(case, a, b), bias_array, c, np.zeros(WORKSPACE, np.uint8), tiling, case, blocks,
        names=["a", "b", "bias", "c", "workspace", "tiling", "case", "blocks"], **options,
    )  # fmt: skip
    rows = from_nz(c, case.m, case.n, 16) if case.nz_c else c
    return rows.astype(np.float64), oracle(case, a, b, bias), run


def check(kernel: Any, case: Case, **options: Any) -> Run:
    """Run a case and hold it to the oracle: equal numbers, no findings."""
    c, expected, run = product(kernel, case, **options)
    assert np.array_equal(c, expected)
    assert run.findings == []
    return run


__all__ = ["Case", "check", "cube_only", "mix", "product", "replace"]
