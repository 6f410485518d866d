"""How a product is cut: for cores, into base blocks, and what of it stays in L1. Pure functions of sizes and a chip.

The vendor's tiling library is closed; this one is the simulator's own. It tries every cut that fits the memories and
takes the one with the least estimated time: the slowest of cube, loads to L0, loads to L1 and results going out, each
at the rate of the chip file. Sizes are in elements unless a name says bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ascend_sim.config import Chip
from ascend_sim.lang.enums import IterateOrder

ORDER_M, ORDER_N = IterateOrder.ORDER_M, IterateOrder.ORDER_N
FRACTAL = 16
_MAX_BASE = 512
_L0_BUFFERS = 2
_L1_BUFFERS = 2
_FINALISTS = 6


@dataclass(frozen=True)
class Rates:
    """What one cube core does in a cycle: cycles for a fractal, bytes on its ways, cycles before each way starts."""

    fractal: float
    k0: int
    mmad_head: float
    l0a: float
    l0b: float
    mte1_head: float
    l1_port: float
    flag: float
    gm_read: float
    move_head: float
    gm_write: float
    fix_head: float

    @classmethod
    def of(cls, chip: Chip, kind: str) -> Rates:
        """Return the rates of a chip for an input type (`hf32` for float32 in that mode)."""
        share = chip.bytes_per_cycle(chip.l2.read_gbps) / chip.cores.aic
        return cls(
            fractal=chip.cube.cycles_per_fractal[kind],
            k0=chip.cube.k0[kind],
            mmad_head=chip.cube.issue,
            l0a=chip.mte1.l0a_port,
            l0b=chip.mte1.l0b_port,
            mte1_head=chip.mte1.head,
            l1_port=chip.mte1.l1_port,
            flag=chip.sync.visible + chip.cube.depth / 2,
            gm_read=min(chip.gm.read_port_aic, share),
            move_head=chip.gm.move_issue,
            gm_write=chip.fixpipe.gm_port,
            fix_head=chip.fixpipe.gm_head,
        )


@dataclass(frozen=True)
class Limits:
    """Bytes that a product may use of each memory."""

    l1: int
    l0a: int
    l0b: int
    l0c: int
    bt: int
    result: int
    """Bytes of one result block: L0C's, or less where the result goes to UB."""


@dataclass(frozen=True)
class Product:
    """C [m, n] = A [m, k] · B [k, n] on one core, and what is fixed beforehand (0 where nothing is)."""

    m: int
    n: int
    k: int
    size_a: int
    size_b: int
    size_c: int
    bias: bool
    align_m: int = FRACTAL
    align_n: int = FRACTAL
    align_k: int = FRACTAL
    base_m: int = 0
    base_n: int = 0
    base_k: int = 0
    order: int | None = None


@dataclass(frozen=True)
class Cut:
    """One way to cut a product on one core, and the cycles that it is estimated to take."""

    base_m: int
    base_n: int
    base_k: int
    step_k_a: int
    step_k_b: int
    depth_a1: int
    depth_b1: int
    order: int
    db_l0a: int
    db_l0b: int
    db_l0c: int
    l1_bytes: int
    cycles: float


def up(size: int, unit: int) -> int:
    """Return a size rounded up to a multiple of a unit."""
    return -(-size // unit) * unit


def parts(size: int, unit: int) -> int:
    """Return how many units a size takes."""
    return -(-size // unit)


@lru_cache(maxsize=256)
def best_cut(product: Product, limits: Limits, rates: Rates) -> Cut | None:
    """Return the cut with the least estimated time; None where nothing fits the memories."""
    best: Cut | None = None
    for cut in _cuts(product, limits, rates):
        if best is None or (cut.cycles, -cut.base_m * cut.base_n) < (
            best.cycles,
            -best.base_m * best.base_n,
        ):
            best = cut
    return best


def _cuts(product: Product, limits: Limits, rates: Rates) -> Iterator[Cut]:
    for base_m in _bases(product.m, product.align_m, product.base_m):
        for base_n in _bases(product.n, product.align_n, product.base_n):
            cells = up(base_m, FRACTAL) * up(base_n, FRACTAL)
            if cells * 4 > limits.l0c or cells * product.size_c > limits.result:
                break
            if product.bias and up(base_n, FRACTAL) * 4 > limits.bt:
                break
            base_k = _base_k(product, limits, base_m, base_n)
            if base_k:
                yield from _with_l1(product, limits, rates, base_m, base_n, base_k)


def _bases(size: int, unit: int, fixed: int) -> list[int]:
    if fixed:
        return [fixed]
    most = min(up(size, unit), _MAX_BASE)
    return list(range(unit, most + 1, unit))


def _base_k(product: Product, limits: Limits, base_m: int, base_n: int) -> int:
    """Return the longest base block of k that two of fit in L0A and in L0B, evened out over k; 0 for none.

    A fixed one may be as long as one of fits.
    """
    unit = product.align_k
    room_a = limits.l0a // (up(base_m, product.align_m) * product.size_a)
    room_b = limits.l0b // (up(base_n, product.align_n) * product.size_b)
    if product.base_k:
        return product.base_k if product.base_k <= min(room_a, room_b) else 0
    longest = min(room_a, room_b) // _L0_BUFFERS // unit * unit
    if longest < unit:
        return 0
    return up(parts(product.k, parts(product.k, longest)), unit)


def _with_l1(
    product: Product, limits: Limits, rates: Rates, base_m: int, base_n: int, base_k: int
) -> Iterator[Cut]:
    """Yield the cuts that differ in what stays in L1: a panel of B (down M first), of A (along N first), or none."""
    steps = parts(product.k, base_k)
    rows, columns = parts(product.m, base_m), parts(product.n, base_n)
    block_a = up(base_m, product.align_m) * base_k * product.size_a
    block_b = up(base_n, product.align_n) * base_k * product.size_b
    room = limits.l1 - (up(base_n, FRACTAL) * 4 * _L1_BUFFERS if product.bias else 0)
    bytes_a = product.m * product.k * product.size_a
    bytes_b = product.n * product.k * product.size_b
    half = parts(steps, _L1_BUFFERS)
    for order in (ORDER_M, ORDER_N) if product.order is None else (product.order,):
        for resident in (True, False):
            step_a, step_b = _steps(
                room // _L1_BUFFERS, block_a, block_b, steps, half if resident else 0, order
            )
            if not step_a or not step_b:
                continue
            once_a, once_b = resident and order == ORDER_N, resident and order == ORDER_M
            traffic = bytes_a * (1 if once_a else columns) + bytes_b * (1 if once_b else rows)
            copies = rows * columns * (parts(steps, step_a) + parts(steps, step_b))
            depth_a = step_a * min(_L1_BUFFERS, rows * parts(steps, step_a))
            depth_b = step_b * min(_L1_BUFFERS, columns * parts(steps, step_b))
            l0c = 2 if 2 * up(base_m, FRACTAL) * up(base_n, FRACTAL) * 4 <= limits.l0c else 1
            yield Cut(
                base_m,
                base_n,
                base_k,
                step_a,
                step_b,
                depth_a,
                depth_b,
                order,
                _L0_BUFFERS if _L0_BUFFERS * block_a <= limits.l0a else 1,
                _L0_BUFFERS if _L0_BUFFERS * block_b <= limits.l0b else 1,
                l0c,
                depth_a * block_a + depth_b * block_b + limits.l1 - room,
                _estimate(product, rates, (base_m, base_n, base_k), traffic, copies, l0c),
            )


def _steps(
    room: int, block_a: int, block_b: int, steps: int, resident: int, order: int
) -> tuple[int, int]:
    """Return how many base blocks of k one copy of A and of B brings, `room` bytes for one copy of each; 0: no room.

    With `resident` the operand that the inner loop keeps comes in copies of that many blocks.
    """
    if not resident:
        both = min(room // (block_a + block_b), steps)
        return both, both
    kept, other = (block_b, block_a) if order == ORDER_M else (block_a, block_b)
    left = room - resident * kept
    step = min(left // other, steps) if left >= other else 0
    return (step, resident) if order == ORDER_M else (resident, step)


def _estimate(
    product: Product,
    rates: Rates,
    base: tuple[int, int, int],
    traffic: int,
    copies: int,
    l0c: int,
) -> float:
    base_m, base_n, base_k = base
    rows, columns, steps = (
        parts(size, unit)
        for size, unit in ((product.m, base_m), (product.n, base_n), (product.k, base_k))
    )
    padded_m, padded_n = up(product.m, product.align_m), up(product.n, product.align_n)
    padded_k = up(product.k, rates.k0)
    blocks = rows * columns
    fractals = padded_m // FRACTAL * padded_n // FRACTAL * padded_k // rates.k0
    cube = fractals * rates.fractal + blocks * steps * rates.mmad_head
    mte1 = (
        columns * padded_m * padded_k * product.size_a / rates.l0a
        + rows * padded_n * padded_k * product.size_b / rates.l0b
        + 2 * blocks * steps * rates.mte1_head
        + traffic / rates.l1_port  # what comes from GM goes into L1 by the same port
    )
    # Two buffers of L0 in turn: a round of two steps is no shorter than one load, one product and two flags.
    turn = (cube + mte1) / 2 + blocks * steps * rates.flag
    mte2 = traffic / rates.gm_read + copies * rates.move_head
    out = product.m * product.n * product.size_c / rates.gm_write + blocks * rates.fix_head
    fill = (base_m * product.size_a + base_n * product.size_b) * base_k / rates.gm_read
    drain = out / blocks
    if l0c == 1:
        cube += out - drain
    return max(cube, mte1, turn, mte2, out) + fill + drain


@dataclass(frozen=True)
class Split:
    """A product cut for several cores: the size of each core's part."""

    m: int
    n: int
    k: int
    m_dim: int
    n_dim: int
    k_dim: int

    @property
    def cores(self) -> int:
        """How many cores it takes."""
        return self.m_dim * self.n_dim * self.k_dim


def splits(
    m: int, n: int, k: int, cores: int, align: tuple[int, int, int], most: tuple[int, int, int],
    least: tuple[int, int, int], *, split_k: bool,
) -> list[Split]:  # fmt: skip
    """Return all ways to give at most `cores` cores one part each, sizes in multiples of `align`.

    `most` and `least` limit the sizes of a part (0 where they do not).
    """
    found: dict[tuple[int, int, int], Split] = {}
    for m_dim in range(1, cores + 1):
        for n_dim in range(1, cores // m_dim + 1):
            for k_dim in range(1, cores // (m_dim * n_dim) + 1) if split_k else (1,):
                sizes = (
                    min(up(parts(m, m_dim), align[0]), m),
                    min(up(parts(n, n_dim), align[1]), n),
                    min(up(parts(k, k_dim), align[2]), k),
                )
                inside = all(
                    (not high or size <= high) and (not low or size >= low)
                    for size, high, low in zip(sizes, most, least, strict=True)
                )
                if inside and sizes not in found:
                    found[sizes] = Split(
                        *sizes, parts(m, sizes[0]), parts(n, sizes[1]), parts(k, sizes[2])
                    )
    return list(found.values())


def best_split(
    ways: list[Split], product: Product, limits: Limits, rates: Rates
) -> tuple[Split, Cut] | None:
    """Return the way with the least estimated time and its cut; `product` says everything but the sizes."""

    def part(split: Split) -> Product:
        values = {**product.__dict__, "m": split.m, "n": split.n, "k": split.k}
        return Product(**values)

    def rough(split: Split) -> tuple[float, int, int]:
        tile = 256
        traffic = split.k * (
            split.m * parts(split.n, tile) * product.size_a
            + split.n * parts(split.m, tile) * product.size_b
        )
        fractals = parts(split.m, FRACTAL) * parts(split.n, FRACTAL) * parts(split.k, rates.k0)
        cycles = max(
            fractals * rates.fractal,
            traffic / rates.gm_read,
            split.m * split.n * product.size_c / rates.gm_write,
        )
        return cycles, traffic, split.cores

    finalists = sorted(ways, key=rough)[:_FINALISTS]
    found = [
        (split, cut)
        for split in finalists
        if (cut := best_cut(part(split), limits, rates)) is not None
    ]
    if not found:
        return None
    return min(found, key=lambda pair: (pair[1].cycles, pair[0].cores, pair[0].n_dim))
