"""How a matrix product is cut into base blocks, and which core takes which of them in which order."""

from __future__ import annotations

from dataclasses import dataclass

from ._kit import pieces

ALIGN = 16  # rows and columns of a fractal


def round_up(value: int, unit: int = ALIGN) -> int:
    return -(-value // unit) * unit


@dataclass(frozen=True)
class Plan:
    """How a product is cut. Sizes in elements."""

    size: tuple[int, int, int]
    """M, N, K."""
    base: tuple[int, int, int]
    """Rows, columns and depth of one `mmad`."""
    step: tuple[int, int] = (1, 1)
    """Base blocks along K in one packet of A, of B: one copy from GM."""
    slots: tuple[int, int] = (2, 2)
    """Packets of A, of B that L1 holds; one that is still there is not loaded again."""
    ahead: int = 0
    """Packets that are requested before the current one is used, beyond what queues allow anyway."""
    l0_buffers: int = 2
    unit_flag: bool = False
    stored_b: str = "NK"
    atomic: bool = False


@dataclass(frozen=True)
class Tile:
    """One base block of C and its part of K: first row, column and depth, and how many of each."""

    row: int
    column: int
    rows: int
    columns: int
    first: int
    depth: int
    turn: int = 0
    """Large packets that the walk along K is turned by: it starts there and wraps."""


def band(
    plan: Plan,
    rows: tuple[int, int],
    columns: tuple[int, int],
    by_column: bool = False,
    turn: int = 0,
) -> list[Tile]:
    """Return the base blocks of some rows and columns (first, how many): along a row, or down a column."""
    down = [(rows[0] + start, count) for start, count in pieces(rows[1], plan.base[0])]
    across = [(columns[0] + start, count) for start, count in pieces(columns[1], plan.base[1])]
    order = (
        [(r, c) for c in across for r in down]
        if by_column
        else [(r, c) for r in down for c in across]
    )
    return [Tile(r[0], c[0], r[1], c[1], 0, plan.size[2], turn) for r, c in order]


def grid(
    plan: Plan,
    cores: tuple[int, int],
    *,
    single: tuple[int, int] | None = None,
    parts: int = 1,
    by_column: bool = False,
    stagger: bool = False,
) -> list[list[Tile]]:
    """Return each core's base blocks, M and N dealt to a grid of cores; M of a core may be walked in parts.

    `single` is a core's rows and columns; whole base blocks where it is not given. The last cores have what is left.
    """
    result = []
    whole = [round_up(-(-plan.size[i] // cores[i]), plan.base[i]) for i in (0, 1)]
    high, wide = single or whole
    for core in range(cores[0] * cores[1]):
        rows = slice_of(plan.size[0], core // cores[1], high)
        columns = slice_of(plan.size[1], core % cores[1], wide)
        turn = _turn(plan, core, cores[0] * cores[1]) if stagger else 0
        tiles: list[Tile] = []
        for start, count in pieces(rows[1], -(-rows[1] // parts)):
            tiles += band(plan, (rows[0] + start, count), columns, by_column, turn)
        result.append(tiles)
    return result


def grid_of(cores: int, size: tuple[int, int, int]) -> tuple[int, int]:
    """Return the grid of cores, rows and columns, on which all cores together load least."""
    pairs = [(rows, cores // rows) for rows in range(1, cores + 1) if cores % rows == 0]
    return min(pairs, key=lambda pair: (size[0] / pair[0] + size[1] / pair[1], pair[0]))


def slice_of(total: int, number: int, size: int) -> tuple[int, int]:
    """Return first and count of the slice of this number, of slices of `size`; the last ones are short or empty."""
    first = min(total, number * size)
    return first, min(size, total - first)


def _turn(plan: Plan, core: int, cores: int) -> int:
    """Return the large packet along K that a core starts with, of those dealt to all cores."""
    return core * -(-plan.size[2] // (plan.base[2] * max(plan.step))) // cores


def cyclic(
    plan: Plan,
    cores: int,
    *,
    swizzle: int = 0,
    along_columns: bool = False,
    stagger: bool = False,
) -> list[list[Tile]]:
    """Return each core's base blocks, dealt in turn.

    Row by row; or in bands of `swizzle` rows of blocks, each walked column by column and every second one backward;
    `along_columns`: bands of columns instead, walked row by row.
    """
    rows, columns = pieces(plan.size[0], plan.base[0]), pieces(plan.size[1], plan.base[1])
    outer, inner = (columns, rows) if along_columns else (rows, columns)
    pairs = []
    for number, first in enumerate(range(0, len(outer), swizzle or 1)):
        across = inner[::-1] if swizzle and number % 2 else inner
        pairs += [(one, other) for other in across for one in outer[first : first + (swizzle or 1)]]
    result = []
    for core in range(cores):
        turn = _turn(plan, core, cores) if stagger else 0
        own = [pair[::-1] if along_columns else pair for pair in pairs[core::cores]]
        result.append([Tile(r[0], c[0], r[1], c[1], 0, plan.size[2], turn) for r, c in own])
    return result
