"""The chip model: how big and how fast one chip is, read from a YAML file and never changed.

This module knows no machine, no run and no report. A chip file may say `extends: <chip>` and give
only what differs. Unknown keys, wrong types and numbers without a source are refused, each with the
file, the line and the key path.

Units: sizes and windows are bytes, ports are bytes a cycle, times are core cycles; `_us` and `_gbps`
(1e9 bytes a second) keys do not depend on the clock.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from ascend_sim import chip_file
from ascend_sim.chip_file import Document, KeyPath, nearest
from ascend_sim.errors import ConfigError
from isa.types import DTYPES, CoreKind, Pipe, dtype_named

Size = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Cycles = Annotated[float, Field(ge=0, allow_inf_nan=False)]


_DTYPE_NAMES = frozenset(dtype.name for dtype in DTYPES)


def _known_types(key: str) -> str:
    for name in key.split("->"):
        if name not in _DTYPE_NAMES and key not in ("any", "int", "float"):
            known = [*sorted(_DTYPE_NAMES), "any", "int", "float"]
            raise ValueError(f"no type {name!r}{nearest(name, known)}")
    return key


CostKey = Annotated[str, AfterValidator(_known_types)]
"""A type, `int`, `float` or `any`, or of a cast `from->to`."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Cores(_Section):
    """Cores that the platform reports: cube (`aic`) and vector (`aiv`)."""

    aic: Size
    aiv: Size


class Memory(_Section):
    """One on-chip memory of one core. The framework keeps the last `reserved` bytes for itself."""

    bytes: Size
    reserved: Count

    @property
    def usable(self) -> int:
        """Bytes that a kernel may allocate."""
        return self.bytes - self.reserved

    @model_validator(mode="after")
    def _reserve_fits(self) -> Self:
        if self.reserved >= self.bytes:
            raise ValueError(f"reserved ({self.reserved}) leaves nothing of bytes ({self.bytes})")
        return self


class Memories(_Section):
    """The on-chip memories, by the vendor's names; `memories["UB"]` works as well."""

    UB: Memory
    L1: Memory
    L0A: Memory
    L0B: Memory
    L0C: Memory
    BT: Memory
    FB: Memory

    def __getitem__(self, name: str) -> Memory:
        if name not in type(self).model_fields:
            raise KeyError(name)
        memory: Memory = getattr(self, name)
        return memory


class UbBanks(_Section):
    """UB banks: consecutive rows go round the groups. `read_write_conflict` is cycles per conflict."""

    groups: Size
    banks_per_group: Size
    row_bytes: Size
    bank_bytes: Size
    read_write_conflict: Cycles


class Queues(_Section):
    """Depth of the instruction queue in front of each pipe."""

    V: Size
    M: Size
    MTE1: Size
    FIX: Size
    MTE2_aic: Size
    MTE2_aiv: Size
    MTE3_aic: Size
    MTE3_aiv: Size


class Scalar(_Section):
    """What the scalar unit pays: for issuing to a pipe, for memory accesses, for building a TPipe."""

    vector_issue: Cycles
    move_issue: Cycles
    cube_issue: Cycles
    flag_issue: Cycles
    barrier_issue: Cycles
    ub_access: Cycles
    gm_hit: Cycles
    gm_miss: Cycles
    pipe_init: Cycles


class DCache(_Section):
    """The scalar unit's data cache on GM."""

    aic_bytes: Size
    aiv_bytes: Size
    line: Size


class ICache(_Section):
    """The scalar unit's instruction cache: lines of `line` bytes, `prefetch` more fetched with each that is missed.

    `call_bytes`: code of one call of a kernel.
    """

    line: Size
    prefetch: Count
    call_bytes: Size
    miss: Cycles


class Vector(_Section):
    """The vector pipe. `drain`: from the last repeat to a visible result."""

    bytes_per_repeat: Size
    max_repeat: Size
    min_issue: Cycles
    drain: Cycles


class VectorCost(_Section):
    """`startup + slope * repeats` cycles: the first instruction of a stream pays the startup."""

    startup: Annotated[float, Field(allow_inf_nan=False)]
    slope: Rate

    @model_validator(mode="after")
    def _positive(self) -> Self:
        if self.startup + self.slope <= 0:
            raise ValueError("one repeat would cost no time: startup + slope must be positive")
        return self


class Gm(_Section):
    """The way of one core to GM, before it meets the shared L2 and HBM.

    `window_*` and `store_window` bound the bytes in flight (misses, stores, what cores ask for that meet in the same
    lines), of which each burst takes whole entries of `window_entry`. `move_issue` is the time from one instruction's
    start to its successor's, `same_line` how long a line is taken by each further core, `crowd` the extra on a miss for
    each other port with misses in flight. A cube core fetches `granule_aic` bytes at a time, a vector core a sector;
    `nd2nz_port` is the rate of loads that turn rows into fractals.
    """

    latency_l2_read: Cycles
    latency_l2_write: Cycles
    latency_hbm: Cycles
    read_port_aiv: Rate
    read_port_aic: Rate
    nd2nz_port: Rate
    granule_aic: Size
    write_port_aiv: Rate
    write_port_aic: Rate
    write_head: Cycles
    read_write_sum_aiv: Rate
    window_core: Size
    window_aiv: Size
    window_entry: Size
    store_window: Size
    move_issue: Cycles
    line: Size
    sector: Size
    same_line: Cycles
    crowd: Cycles

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.granule_aic % self.sector or self.line % self.granule_aic:
            raise ValueError(
                f"granule_aic ({self.granule_aic}) is no multiple of a sector ({self.sector}) that divides a line "
                f"({self.line})"
            )
        if self.latency_hbm < self.latency_l2_read:
            raise ValueError(
                f"latency_hbm ({self.latency_hbm:g}) is below latency_l2_read ({self.latency_l2_read:g}): what L2 does "
                f"not have goes through it all the same"
            )
        return self


class L2(_Section):
    """The shared cache: size, and rates for reads alone and for reads with writes, all cores together."""

    bytes: Size
    read_gbps: Rate
    mixed_gbps: Rate


class Hbm(_Section):
    """The memory behind L2: one rate that reads and writes share.

    Where both are on the way, each byte of the lesser direction costs `turnaround` more. Around L2 a burst takes as
    long as `least` bytes, and a `page` serves one core after the other, `row_cycle` each.
    """

    bytes: Size
    gbps: Rate
    turnaround: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    least: Size
    page: Size
    row_cycle: Cycles


class Cube(_Section):
    """The cube pipe, by input type (`hf32` is float32 in that mode).

    A fractal is 16 x 16 results over `k0` products each. `issue`: before the first one, `depth`: from the last
    one to a visible result, `dependency_window`: L0C fractals below which accumulation needs a barrier.
    """

    k0: dict[str, Size]
    cycles_per_fractal: dict[str, Rate]
    issue: Cycles
    depth: Cycles
    dependency_window: Count


class Mte1(_Section):
    """L1 to L0A, L0B, BT (MTE1) and FB (fixpipe): `head + bytes / port`.

    `l1_port` is what L1 takes and gives together: MTE1 is slower while MTE2 writes.
    """

    head: Cycles
    bt_head: Cycles
    fb_head: Cycles
    l0a_port: Rate
    l0b_port: Rate
    bt_port: Rate
    fb_port: Rate
    l1_port: Rate


class Fixpipe(_Section):
    """L0C to GM and to L1: `head + bytes / port`; unit flags free `unit_flag_granule` bytes at a time."""

    gm_head: Cycles
    gm_port: Rate
    l1_head: Cycles
    l1_port: Rate
    unit_flag_granule: Size
    unit_flag_latency: Cycles


class Sync(_Section):
    """Flags and barriers. `visible`: from the set to the wait's release; `sync_all_soft_us` polls GM."""

    event_ids: Size
    set: Cycles
    visible: Cycles
    cross_core: Cycles
    cross_flags: Size
    counter_max: Size
    sync_all_us: Cycles
    sync_all_soft_us: Cycles


class Launch(_Section):
    """Cost of a launch: `base_us + per_core_us * cores started`."""

    base_us: Cycles
    per_core_us: Cycles


class Source(_Section):
    """Where a number comes from, and how far to trust it: H(igh), M(edium) or L(ow).

    Where sources conflict, or it is an estimate, `low` and `high` say what else it may be.
    """

    source: Annotated[str, Field(min_length=1)]
    confidence: Literal["H", "M", "L"]
    low: Annotated[float, Field(allow_inf_nan=False)] | None = None
    high: Annotated[float, Field(allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _both_ends(self) -> Self:
        if (self.low is None) != (self.high is None):
            raise ValueError("a range has both ends: give low and high, or none of them")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low ({self.low:g}) is above high ({self.high:g})")
        return self


class Chip(_Section):
    """One chip. Made by `load_chip`; a copy with other numbers is a new file that `extends` this one."""

    name: str
    soc: str
    description: str = ""
    revision: Size = 1
    clock_mhz: Rate
    cores: Cores
    memories: Memories
    ub_banks: UbBanks
    queues: Queues
    scalar: Scalar
    dcache: DCache
    icache: ICache
    vector: Vector
    vector_costs: dict[str, dict[CostKey, VectorCost]]
    gm: Gm
    l2: L2
    hbm: Hbm
    cube: Cube
    mte1: Mte1
    fixpipe: Fixpipe
    sync: Sync
    launch: Launch
    sources: dict[str, Source]

    def cycles(self, us: float) -> int:
        """Return microseconds as whole core cycles, half a cycle rounded up."""
        return math.floor(us * self.clock_mhz + 0.5)

    def us(self, cycles: float) -> float:
        """Return core cycles as microseconds."""
        return cycles / self.clock_mhz

    def bytes_per_cycle(self, gbps: float) -> float:
        """Return a rate in 1e9 bytes a second as bytes a core cycle."""
        return gbps * 1000 / self.clock_mhz

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return lowest and highest value of each number that has a range, by key path."""
        return {
            key: (source.low, source.high)
            for key, source in self.sources.items()
            if source.low is not None and source.high is not None
        }

    def vector_cost(self, instruction: str, dtype_name: str) -> VectorCost:
        """Return the cost of `instruction` on `dtype_name` (a cast: `"float16->float32"`).

        Without an entry for the very type, `int` or `float` holds, then `any`. Raises `ConfigError` for an
        instruction or a type that the chip does not price.
        """
        costs = self.vector_costs.get(instruction)
        if costs is None:
            hint = nearest(instruction, self.vector_costs)
            raise ConfigError(f"chip {self.name}: vector_costs.{instruction} has no price{hint}")
        cost = costs.get(dtype_name) or costs.get(_family(dtype_name)) or costs.get("any")
        if cost is None:
            raise ConfigError(
                f"chip {self.name}: vector_costs.{instruction} has no price for {dtype_name}; "
                f"priced: {', '.join(costs)} (a key 'any' would hold for all types)"
            )
        return cost

    def source_of(self, key: str) -> Source:
        """Return the source of the number at the key path `key`. Raises `ConfigError` if there is none."""
        source = _source_for(key, self.sources)
        if source is None:
            hint = nearest(key, self.sources)
            raise ConfigError(f"chip {self.name}: sources names no source for {key}{hint}")
        return source

    def queue_depth(self, pipe: Pipe, core_kind: CoreKind) -> int:
        """Return how many instructions the queue of `pipe` holds. Raises `ConfigError` for the scalar unit."""
        name = pipe.name
        if pipe in (Pipe.MTE2, Pipe.MTE3):
            name = f"{name}_{core_kind.value}"
        if name not in Queues.model_fields:
            raise ConfigError(f"chip {self.name}: queues has no {name}: that unit has no queue")
        depth: int = getattr(self.queues, name)
        return depth


def _family(dtype_name: str) -> str:
    if dtype_name not in _DTYPE_NAMES:
        return ""
    return "float" if dtype_named(dtype_name).is_float() else "int"


_T = TypeVar("_T")


def _source_for(key: str, sources: Mapping[str, _T]) -> _T | None:
    """Return the entry of the longest prefix of the dotted path `key`."""
    while key:
        if key in sources:
            return sources[key]
        key = key.rpartition(".")[0]
    return None


def list_chips() -> list[str]:
    """Return the names of the chips that come with the simulator, sorted."""
    return chip_file.shipped_chips()


def load_chip(chip: str | os.PathLike[str] | Chip) -> Chip:
    """Return the chip of a name (`"ascend910b1"`, also `"Ascend910B1"`), of a YAML file's path, or itself.

    Raises `ConfigError`: no such chip, no valid YAML, `extends` in a circle, an unknown or missing key, a
    value out of range, a number that the file itself gives no source for.
    """
    if isinstance(chip, Chip):
        return chip
    path = chip_file.find(os.fspath(chip)).resolve()
    built = _BUILT.get(path)
    if built is None or built[0] != chip_file.stamps(stamp[0] for stamp in built[0]):
        documents = chip_file.read_chain(path)
        files = chip_file.stamps(document.path for document in documents)
        built = _BUILT[path] = (files, _build(documents))
    return built[1]


# Chips by file. Reading one takes ten times as long as a small launch; edited files are read again.
_BUILT: dict[Path, tuple[list[chip_file.Stamp], Chip]] = {}


# What a file says about itself and hands on to no file that extends it.
_OWN_KEYS = ("name", "description", "revision")


def _build(documents: list[Document]) -> Chip:
    data: dict[str, Any] = {}
    places: dict[KeyPath, str] = {}
    for document in documents:
        inherited = {key: value for key, value in data.items() if key not in _OWN_KEYS}
        _refuse_unknown_instructions(document, inherited.get("vector_costs"))
        data = chip_file.merge(inherited, document.data)
        places |= document.places
    file = str(documents[-1].path)
    data.setdefault("name", documents[-1].path.stem)
    try:
        chip = Chip.model_validate(data)
    except ValidationError as error:
        raise ConfigError("\n".join(chip_file.complaints(error, Chip, places, file))) from None
    # Number by number, and each file for its own: a number that a file changes does not keep the
    # source of the number it replaced.
    sources: dict[str, Source] = {}
    for document in documents:
        sources |= _sources_of(document, chip.sources)
    return chip.model_copy(update={"sources": sources})


def _refuse_unknown_instructions(document: Document, known: dict[str, Any] | None) -> None:
    """A price for an instruction that the base does not have would hold for nothing: a misspelling."""
    named = document.data.get("vector_costs")
    if not known or not isinstance(named, dict):
        return
    for instruction in named:
        if instruction not in known:
            place = document.place("vector_costs", instruction)
            raise ConfigError(
                f"{place}: vector_costs.{instruction}: the extended chip has no such instruction"
                f"{nearest(instruction, known)}"
            )


def _sources_of(document: Document, known: Mapping[str, Source]) -> dict[str, Source]:
    """Return the source of each number that `document` sets, by key path. `known`: parsed sources."""
    named = document.data.get("sources") or {}
    own = {key: known[key] for key in named}
    result: dict[str, Source] = {}
    for at, value in document.numbers():
        key = ".".join(at)
        if key in _OWN_KEYS:
            continue
        source = _source_for(key, own)
        if source is None:
            raise ConfigError(
                f"{document.place(*at)}: {key} = {value} has no source; say under sources "
                f"where it comes from: `{key}: {{source: ..., confidence: H|M|L}}`, or once for its section"
            )
        if source.low is not None and source.high is not None:
            if key not in own:
                raise ConfigError(
                    f"{document.place(*at)}: {key} takes its range from a section; a range is of one number: "
                    f"`{key}: {{source: ..., low: ..., high: ...}}`"
                )
            if not source.low <= value <= source.high:
                raise ConfigError(
                    f"{document.place(*at)}: {key} = {value} is outside its own range, {source.low:g} to "
                    f"{source.high:g}"
                )
        result[key] = source
    for key in own:
        if not any(number == key or number.startswith(f"{key}.") for number in result):
            place = document.place("sources", key)
            raise ConfigError(
                f"{place}: sources.{key}: this file has no such number{nearest(key, result)}"
            )
    return result
