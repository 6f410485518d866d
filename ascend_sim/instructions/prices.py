"""What an instruction costs on a chip: the chip file's own numbers, each with its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ascend_sim.config import Chip, Source
from isa.instruction import REGISTRY
from isa.types import Pipe

_MOVES = ("scalar.move_issue", "gm", "vector_costs.data_copy_ub", "vector.drain")
_FLAGS = ("scalar.flag_issue", "sync.set", "sync.visible")
_CROSS = ("scalar.flag_issue", "sync.cross_core")

KEYS: dict[str, tuple[str, ...]] = {
    "data_copy": (*_MOVES, "mte1.bt_head", "mte1.bt_port", "mte1.fb_head", "mte1.fb_port"),
    "data_copy_pad": _MOVES,
    "mmad": ("scalar.cube_issue", "cube"),
    "load_data": (
        "scalar.cube_issue",
        "mte1.head",
        "mte1.l0a_port",
        "mte1.l0b_port",
        "gm.read_port_aic",
    ),
    "load_data_with_transpose": (
        "scalar.cube_issue",
        "mte1.head",
        "mte1.l0a_port",
        "mte1.l0b_port",
    ),
    "init_const_value": ("scalar.cube_issue", "mte1.bt_head", "mte1.bt_port"),
    "fixpipe": ("scalar.cube_issue", "fixpipe", "gm.write_port_aic"),
    "set_flag": _FLAGS,
    "wait_flag": _FLAGS,
    "pipe_barrier": ("scalar.barrier_issue",),
    "cross_core_set_flag": _CROSS,
    "cross_core_wait_flag": _CROSS,
    "sync_all": ("sync.sync_all_us", "sync.sync_all_soft_us"),
    "ib_set": ("scalar.barrier_issue", "gm.latency_l2_read", "gm.write_head"),
    "ib_wait": ("scalar.barrier_issue", "gm.latency_l2_read", "gm.write_head"),
    "notify_next_block": ("scalar.barrier_issue", "gm.latency_l2_read", "gm.write_head"),
    "wait_pre_block": ("scalar.barrier_issue", "gm.latency_l2_read"),
    "data_cache_clean_and_invalid": ("scalar.gm_hit", "gm.latency_l2_write"),
    "TPipe": ("scalar.pipe_init",),
    "get_value": ("scalar.ub_access", "scalar.gm_hit", "scalar.gm_miss"),
    "set_value": ("scalar.ub_access", "scalar.gm_hit", "scalar.gm_miss"),
}
"""Key paths in a chip file, of what is not priced by `vector_costs` alone."""

COMMON_V = ("scalar.vector_issue", "vector.min_issue", "vector.drain")
"""What every vector instruction pays besides its own cost."""


@dataclass(frozen=True, slots=True)
class Price:
    """One number of a chip file: key path, value in words, where it comes from, how far to trust it."""

    key: str
    value: str
    source: str
    confidence: str


def prices(name: str, chip: Chip) -> list[Price]:
    """Return the numbers that decide what `name` costs; none for what takes no time of its own."""
    keys = list(KEYS.get(name, ()))
    record = REGISTRY.get(name)
    if record is not None and record.pipe is Pipe.V:
        keys = [f"vector_costs.{record.cost}", *COMMON_V]
    return [price for key in keys for price in _under(chip, key)]


def _under(chip: Chip, key: str) -> Iterator[Price]:
    value: Any = chip.model_dump()
    for part in key.split("."):
        value = value[part]
    yield from leaves(chip, key, value)


def leaves(chip: Chip, key: str, value: Any) -> Iterator[Price]:
    """Yield every number under a key path."""
    if not isinstance(value, Mapping):
        source = chip.source_of(key)
        text = f"{value:g}" if isinstance(value, float) else str(value)
        yield Price(key, text, _told(source), str(source.confidence))
        return
    if set(value) == {"startup", "slope"}:
        startup, slope = (chip.source_of(f"{key}.{name}") for name in ("startup", "slope"))
        if startup == slope:  # a line of its own says it best
            text = f"{value['startup']:g} + {value['slope']:g} a repeat"
            yield Price(key, text, slope.source, str(slope.confidence))
            return
    for name, inner in value.items():
        yield from leaves(chip, f"{key}.{name}", inner)


def _told(source: Source) -> str:
    ends = "" if source.low is None else f"; range {source.low:g} to {source.high:g}"
    return source.source + ends
