"""Tiling of a product for several cores, and of batches of products."""

from __future__ import annotations

from typing import Any

from ascend_sim.adv.host import cut
from ascend_sim.adv.host.platform import PlatformAscendC
from ascend_sim.adv.host.tiling import MatmulApiTilingBase, Refused, fits


class MultiCoreMatmulTiling(MatmulApiTilingBase):
    """Tiling of a product that several cores share: each computes one part of C."""

    def __init__(self, ascendc_platform: PlatformAscendC | None = None) -> None:
        super().__init__(ascendc_platform)
        self._dim = 1
        self._align = [0, 0, 0]
        self._single = [0, 0, 0]
        self._most, self._least = (0, 0, 0), (0, 0, 0)
        self._split_k = False
        self._found: cut.Split | None = None

    def set_dim(self, dim: int) -> int:
        """Set how many cores there are: vector cores in a mix kernel, where each commands its part, else cube cores."""
        self._dim = dim
        return fits(dim)

    def set_single_shape(
        self, single_m_in: int = -1, single_n_in: int = -1, single_k_in: int = -1
    ) -> int:
        """Fix the size of one core's part; −1 leaves one free."""
        self._single = [max(value, 0) for value in (single_m_in, single_n_in, single_k_in)]
        return 0

    def set_single_range(
        self,
        max_m: int = -1,
        max_n: int = -1,
        max_k: int = -1,
        min_m: int = -1,
        min_n: int = -1,
        min_k: int = -1,
    ) -> int:
        """Limit the size of one core's part; −1 for no limit."""
        self._most = (max(max_m, 0), max(max_n, 0), max(max_k, 0))
        self._least = (max(min_m, 0), max(min_n, 0), max(min_k, 0))
        return 0

    def set_align_split(self, align_m: int, align_n: int, align_k: int) -> int:
        """Make the size of one core's part a multiple of these; −1 or 0 for no wish."""
        self._align = [max(value, 0) for value in (align_m, align_n, align_k)]
        return 0

    def enable_multi_core_split_k(self, flag: bool) -> None:
        """Allow cores to share K: their parts of C then add up in GM, which the kernel clears first."""
        self._split_k = bool(flag)

    def get_core_num(self) -> Any:
        """Return (cores, parts of M, parts of N) of the last tiling; None before."""
        if self._found is None:
            return None
        return self._found.cores, self._found.m_dim, self._found.n_dim

    def get_single_shape(self) -> Any:
        """Return the size (m, n, k) of one core's part of the last tiling; None before."""
        if self._found is None:
            return None
        return self._found.m, self._found.n, self._found.k

    def _solve(self) -> tuple[cut.Split, cut.Cut]:
        product = self._product()
        m, n, k = product.m, product.n, product.k
        if any(self._single):
            sizes = [given or size for given, size in zip(self._single, (m, n, k), strict=True)]
            dims = [cut.parts(size, part) for size, part in zip((m, n, k), sizes, strict=True)]
            ways = [cut.Split(*sizes, *dims)]
            if ways[0].cores > self._dim:
                raise Refused(
                    f"parts of {sizes[0]} × {sizes[1]} × {sizes[2]} need {ways[0].cores} cores, "
                    f"set_dim says {self._dim}"
                )
        else:
            units = (product.align_m, product.align_n, product.align_k)
            align = tuple(given or unit for given, unit in zip(self._align, units, strict=True))
            ways = cut.splits(
                m, n, k, self._dim, align, self._most, self._least, split_k=self._split_k  # type: ignore[arg-type]
            )  # fmt: skip
        if not ways:
            raise Refused(
                "no part of the product is inside the range that set_single_range asks for"
            )
        best = cut.best_split(ways, product, self._limits(), self._rates())
        if best is None:
            raise Refused(self._why_not(product))
        self._found = best[0]
        return best


class BatchMatmulTiling(MatmulApiTilingBase):
    """Tiling of a batch of products: every core computes whole products."""

    def get_core_num(self) -> Any:
        """Return (cores, parts of M, parts of N, batches of A a core, batches of B a core); None before get_tiling."""
        if not any(self._base):
            return None
        a = self._batch.get("a_layout_info_b", 1)
        b = self._batch.get("b_layout_info_b", 1)
        return 1, 1, 1, a, b
