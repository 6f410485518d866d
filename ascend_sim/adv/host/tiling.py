"""Tiling of matrix products, as a program on the host asks for it: `MultiCoreMatmulTiling` and its relatives.

The setters return 0, or −1 where a value makes no sense. `get_tiling` fills a TCubeTiling and returns 0, or −1 where
the product cannot be cut; the reason then goes to the log of the name `ascend_sim.tiling`, which Python prints.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from ascend_sim.adv.host import cut
from ascend_sim.adv.host.enums import (
    CubeFormat,
    DataType,
    DequantType,
    MatrixMadType,
    MatrixTraverse,
    ScheduleType,
    TPosition,
)
from ascend_sim.adv.host.platform import PlatformAscendC, get_ascendc_platform
from ascend_sim.adv.records import TCubeTiling

log = logging.getLogger("ascend_sim.tiling")

_INPUTS = {
    DataType.DT_FLOAT16: ("float16", 2, 16),
    DataType.DT_BF16: ("bfloat16", 2, 16),
    DataType.DT_FLOAT: ("float32", 4, 16),
    DataType.DT_INT8: ("int8", 1, 32),
}
"""Type of A and B: the chip file's name for it, bytes, and what base sizes of k are multiples of."""
_RESULTS = {
    DataType.DT_FLOAT: 4,
    DataType.DT_INT32: 4,
    DataType.DT_FLOAT16: 2,
    DataType.DT_BF16: 2,
    DataType.DT_INT8: 1,
    DataType.DT_UINT8: 1,
}
_ON_VECTOR_CORE = (TPosition.VECIN, TPosition.VECOUT, TPosition.VECCALC)


class Refused(Exception):
    """The product cannot be cut; the text says why."""


@dataclass
class _Operand:
    position: TPosition = TPosition.GM
    format: CubeFormat = CubeFormat.ND
    dtype: DataType = DataType.DT_FLOAT16
    trans: bool = False


class MatmulConfigParams:
    """What the tiling should know of the kernel's template."""

    def __init__(
        self,
        mm_config_type: int = 1,
        enable_l1_cache_ub: bool = False,
        schedule_type: ScheduleType = ScheduleType.INNER_PRODUCT,
        traverse: MatrixTraverse = MatrixTraverse.NOSET,
        en_vec_nd2nz: bool = False,
    ) -> None:
        self.mm_config_type = mm_config_type
        self.enable_l1_cache_ub = enable_l1_cache_ub
        self.schedule_type = schedule_type
        self.traverse = traverse
        self.en_vec_nd2nz = en_vec_nd2nz


def fits(*values: Any) -> int:
    """Return 0 where all values are whole numbers above 0, else −1."""
    fit = all(
        isinstance(value, int) and not isinstance(value, bool) and value > 0 for value in values
    )
    return 0 if fit else -1


class MatmulApiTilingBase:
    """What all tilings have in common: the product's description, and its cut for one core."""

    def __init__(self, ascendc_platform: PlatformAscendC | None = None) -> None:
        platform = ascendc_platform if ascendc_platform is not None else get_ascendc_platform()
        self.chip = platform.chip
        self._a, self._b, self._c = (
            _Operand(),
            _Operand(),
            _Operand(dtype=DataType.DT_FLOAT),
        )
        self._bias = _Operand(dtype=DataType.DT_FLOAT)
        self._has_bias = False
        self._shape: tuple[int, int, int] | None = None
        self._org: tuple[int, int, int, int] | None = None
        self._fixed = [0, 0, 0]
        self._space = {"L1": -1, "L0C": -1, "UB": -1, "BT": -1}
        self._traverse = MatrixTraverse.NOSET
        self._mad = MatrixMadType.NORMAL
        self._batch: dict[str, int] = {}
        self._base = (0, 0, 0)
        self.config_params = MatmulConfigParams()
        self.dequant_type: DequantType | None = None

    # ---- the product --------------------------------------------------------------------------

    def set_a_type(
        self, pos: TPosition, type: CubeFormat, data_type: DataType, is_trans: bool = False
    ) -> int:
        """Say where A is, how it lies there, its element type, and whether it is stored as [K, M]."""
        self._a = _Operand(pos, type, data_type, is_trans)
        return 0

    def set_b_type(
        self, pos: TPosition, type: CubeFormat, data_type: DataType, is_trans: bool = False
    ) -> int:
        """Say where B is, how it lies there, its element type, and whether it is stored as [N, K]."""
        self._b = _Operand(pos, type, data_type, is_trans)
        return 0

    def set_c_type(
        self, pos: TPosition, type: CubeFormat, data_type: DataType, is_trans: bool = False
    ) -> int:
        """Say where C goes, how it lies there, and its element type."""
        self._c = _Operand(pos, type, data_type, is_trans)
        return 0

    def set_bias_type(self, pos: TPosition, type: CubeFormat, data_type: DataType) -> int:
        """Say where the bias is and its element type."""
        self._bias = _Operand(pos, type, data_type)
        return 0

    def enable_bias(self, is_bias_in: bool = False) -> int:
        """Say whether there is a bias."""
        self._has_bias = bool(is_bias_in)
        return 0

    set_bias = enable_bias
    """The name that pyasc's examples use."""

    def set_shape(self, m: int, n: int, k: int) -> int:
        """Set the sizes that are computed, by one core or by all."""
        if fits(m, n, k):
            return -1
        self._shape = (m, n, k)
        return 0

    def set_org_shape(
        self, org_m_in: int, org_n_in: int, org_k_in: int = 0, org_kb_in: int = 0, **named: int
    ) -> int:
        """Set the sizes of the whole matrices in memory: (m, n, k), or (m, n, ka, kb)."""
        org_k_in = named.get("org_ka_in", org_k_in)
        if fits(org_m_in, org_n_in, org_k_in) or org_kb_in < 0:
            return -1
        self._org = (org_m_in, org_n_in, org_k_in, org_kb_in or org_k_in)
        return 0

    def set_mad_type(self, mad_type: MatrixMadType) -> int:
        """Set how float32 is multiplied: exactly or as HF32."""
        self._mad = mad_type
        return 0 if mad_type is not MatrixMadType.MXMODE else -1

    def set_dequant_type(self, dequant_type: DequantType) -> int:
        """Say whether the kernel sets one scale or one for each column; the cut does not depend on it."""
        self.dequant_type = dequant_type
        return 0

    def set_sparse(self, is_sparse_in: bool = False) -> int:
        """Refuse sparse products: they are not simulated."""
        return -1 if is_sparse_in else 0

    # ---- the cut ------------------------------------------------------------------------------

    def set_fix_split(self, base_m_in: int = -1, base_n_in: int = -1, base_k_in: int = -1) -> int:
        """Fix base block sizes; −1 leaves one free."""
        if any(value != -1 and fits(value) for value in (base_m_in, base_n_in, base_k_in)):
            return -1
        self._fixed = [max(value, 0) for value in (base_m_in, base_n_in, base_k_in)]
        return 0

    def set_buffer_space(
        self, l1_size: int = -1, l0_c_size: int = -1, ub_size: int = -1, bt_size: int = -1
    ) -> int:
        """Limit the bytes of L1, L0C, UB and BT that a product may use; −1 for all there are."""
        self._space = {"L1": l1_size, "L0C": l0_c_size, "UB": ub_size, "BT": bt_size}
        return 0

    def set_traverse(self, traverse: MatrixTraverse) -> int:
        """Fix which way the blocks of C are gone through."""
        self._traverse = traverse
        return 0

    def set_double_buffer(
        self,
        a: bool,
        b: bool,
        c: bool,
        bias: bool,
        trans_nd2nz: bool = True,
        trans_nz2nd: bool = True,
    ) -> int:
        """Accept what the vendor's own tuning uses; here L0A and L0B always have two buffers."""
        return 0

    def set_split_range(
        self,
        max_base_m: int = -1,
        max_base_n: int = -1,
        max_base_k: int = -1,
        min_base_m: int = -1,
        min_base_n: int = -1,
        min_base_k: int = -1,
    ) -> int:
        """Accept limits of base sizes without effect, as the vendor's tiling does."""
        return 0

    def set_matmul_config_params(self, *args: Any, **kwargs: Any) -> None:
        """Take the kernel's template: MatmulConfigParams, or its fields with `_in` behind their names."""
        given = kwargs.get("config_params", args[0] if args else None)
        if not isinstance(given, MatmulConfigParams):
            given = MatmulConfigParams(
                *args, **{name.removesuffix("_in"): value for name, value in kwargs.items()}
            )
        self.config_params = given
        if given.traverse is not MatrixTraverse.NOSET:
            self._traverse = given.traverse

    # ---- batches ------------------------------------------------------------------------------

    def set_batch_num(self, batch: int) -> int:
        """Set how many products one iterate_batch computes at most."""
        self._batch["batch_num"] = batch
        return fits(batch)

    def set_batch_info_for_normal(self, batch_a: int, batch_b: int, m: int, n: int, k: int) -> int:
        """Set the sizes of batches whose matrices lie one behind another."""
        if fits(batch_a, batch_b, m, n, k):
            return -1
        a = (k, m) if self._a.trans else (m, k)
        b = (n, k) if self._b.trans else (k, n)
        self.set_a_layout(batch_a, a[0], 1, 1, a[1])
        self.set_b_layout(batch_b, b[0], 1, 1, b[1])
        self.set_c_layout(max(batch_a, batch_b), m, 1, 1, n)
        return self.set_batch_num(max(batch_a, batch_b))

    def _layout(self, which: str, names: str, values: tuple[int, ...]) -> int:
        for name, value in zip(names.split(), values, strict=True):
            self._batch[f"{which}_layout_info_{name}"] = value
        return fits(*values)

    def set_a_layout(self, b: int, s: int, n: int, g: int, d: int) -> int:
        """Set the axes of a batch of A."""
        return self._layout("a", "b s n g d", (b, s, n, g, d))

    def set_b_layout(self, b: int, s: int, n: int, g: int, d: int) -> int:
        """Set the axes of a batch of B."""
        return self._layout("b", "b s n g d", (b, s, n, g, d))

    def set_c_layout(self, b: int, s: int, n: int, g: int, d: int) -> int:
        """Set the axes of a batch of C; `s` and `d` are its rows and columns."""
        return self._layout("c", "b s1 n g s2", (b, s, n, g, d))

    # ---- the result ---------------------------------------------------------------------------

    def get_tiling(self, tiling: TCubeTiling) -> int:
        """Fill a tiling; return 0, or −1 where the product cannot be cut (the log says why)."""
        try:
            split, found = self._solve()
        except Refused as reason:
            log.warning("MatmulApi Tiling: %s", reason)
            return -1
        assert self._shape is not None
        m, n, k = self._shape
        org = self._org or (m, n, k, k)
        self._base = (found.base_m, found.base_n, found.base_k)
        values = {
            "used_core_num": split.cores,
            "m": org[0], "n": org[1], "k_a": org[2], "k_b": org[3],
            "single_core_m": split.m, "single_core_n": split.n, "single_core_k": split.k,
            "base_m": found.base_m, "base_n": found.base_n, "base_k": found.base_k,
            "depth_a1": found.depth_a1, "depth_b1": found.depth_b1,
            "step_m": 1, "step_n": 1, "step_k_a": found.step_k_a, "step_k_b": found.step_k_b,
            "is_bias": int(self._has_bias),
            "iterate_order": int(found.order),
            "share_l1_size": found.l1_bytes,
            "share_l0c_size": found.db_l0c * found.base_m * found.base_n * 4,
            "batch_m": 1, "batch_n": 1, "single_batch_m": 1, "single_batch_n": 1,
            "db_l0a": found.db_l0a, "db_l0b": found.db_l0b, "db_l0c": found.db_l0c,
            **self._batch,
        }  # fmt: skip
        for name, value in values.items():
            setattr(tiling, name, value)
        return 0

    def get_base_m(self) -> int:
        """Return base_m of the last tiling; 0 before."""
        return self._base[0]

    def get_base_n(self) -> int:
        """Return base_n of the last tiling; 0 before."""
        return self._base[1]

    def get_base_k(self) -> int:
        """Return base_k of the last tiling; 0 before."""
        return self._base[2]

    # ---- solving ------------------------------------------------------------------------------

    def _solve(self) -> tuple[cut.Split, cut.Cut]:
        product = self._product()
        return self._cut(cut.Split(product.m, product.n, product.k, 1, 1, 1), product)

    def _cut(self, split: cut.Split, product: cut.Product) -> tuple[cut.Split, cut.Cut]:
        found = cut.best_cut(product, self._limits(), self._rates())
        if found is None:
            raise Refused(self._why_not(product))
        return split, found

    def _product(self) -> cut.Product:
        if self._shape is None:
            raise Refused("set_shape has not said what is computed")
        m, n, k = self._shape
        _, size_a, align_k = self._input("A", self._a)
        _, size_b, _ = self._input("B", self._b)
        if self._a.dtype is not self._b.dtype:
            raise Refused(
                f"A is {self._a.dtype.name}, B is {self._b.dtype.name}: both have one type"
            )
        if self._c.dtype not in _RESULTS:
            raise Refused(f"C cannot be {self._c.dtype.name}")
        wide = size_a == 1
        order = {MatrixTraverse.FIRSTM: cut.ORDER_M, MatrixTraverse.FIRSTN: cut.ORDER_N}
        fixed_m, fixed_n, fixed_k = self._fixed
        product = cut.Product(
            m,
            n,
            k,
            size_a,
            size_b,
            _RESULTS[self._c.dtype],
            self._has_bias,
            align_m=32 if wide and self._a.trans else 16,
            align_n=32 if wide and not self._b.trans else 16,
            align_k=align_k,
            base_m=fixed_m and cut.up(fixed_m, 16),
            base_n=fixed_n and cut.up(fixed_n, 16),
            base_k=fixed_k and cut.up(fixed_k, align_k),
            order=order.get(self._traverse, cut.ORDER_M),  # as get_normal_config has it
        )
        return product

    def _input(self, name: str, operand: _Operand) -> tuple[str, int, int]:
        found = _INPUTS.get(operand.dtype)
        if found is None:
            known = ", ".join(one.name for one in _INPUTS)
            raise Refused(f"{name} cannot be {operand.dtype.name}; simulated are {known}")
        return found

    def _limits(self) -> cut.Limits:
        memories = self.chip.memories
        given = {
            name: size if size > 0 else memories[name].usable for name, size in self._space.items()
        }
        result = given["L0C"]
        if self._c.position in _ON_VECTOR_CORE:
            result = min(result, given["UB"] // 2)
        return cut.Limits(
            given["L1"],
            memories.L0A.usable,
            memories.L0B.usable,
            given["L0C"],
            given["BT"],
            result,
        )

    def _rates(self) -> cut.Rates:
        kind = _INPUTS[self._a.dtype][0]
        if kind == "float32" and self._mad is MatrixMadType.HF32:
            kind = "hf32"
        return cut.Rates.of(self.chip, kind)

    def _why_not(self, product: cut.Product) -> str:
        base = (product.base_m, product.base_n, product.base_k)
        if not any(base):
            return f"no base block of {product.m} × {product.n} × {product.k} fits the memories left to it"
        limits = self._limits()
        return (
            f"base blocks of {base[0] or 'any'} × {base[1] or 'any'} × {base[2] or 'any'} do not fit: the result may "
            f"have {min(limits.l0c // 4, limits.result // product.size_c)} elements, a block of A {limits.l0a} "
            f"bytes, one of B {limits.l0b} bytes"
            + (f", a row of the bias {limits.bt} bytes" if product.bias else "")
        )


class MatmulApiTiling(MatmulApiTilingBase):
    """Tiling of a product that one core computes."""
