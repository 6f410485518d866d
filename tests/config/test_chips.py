"""The shipped chips: they load, every number has a source, and the figures are the published ones."""

from __future__ import annotations

import pytest

from ascend_sim.config import Chip, list_chips, load_chip
from ascend_sim.errors import ConfigError
from isa.types import CoreKind, Pipe

CHIPS = list_chips()

# Typed in from the published tables, not from the chip files: cores, clock, L2 MiB, HBM GiB, HBM GB/s,
# L2 read GB/s.
PUBLISHED = {
    "ascend910b1": (24, 48, 1850, 192, 64, 1530, 4900),
    "ascend910b2": (24, 48, 1800, 192, 64, 1530, 4700),
    "ascend910b3": (20, 40, 1800, 192, 64, 1540, 3950),
    "ascend910b4": (20, 40, 1650, 96, 32, 760, 3300),
    "ascend910_93": (24, 48, 1850, 192, 64, 1530, 4900),
}


@pytest.fixture(scope="module")
def b1() -> Chip:
    return load_chip("ascend910b1")


def _numbers(value: object, at: str = "") -> list[str]:
    if isinstance(value, dict):
        return [key for k, v in value.items() for key in _numbers(v, f"{at}.{k}" if at else k)]
    return [at] if isinstance(value, int | float) else []


def test_the_chips_that_ship() -> None:
    assert list_chips() == sorted([*PUBLISHED, "toy"])


@pytest.mark.parametrize("name", CHIPS)
def test_every_number_has_a_source(name: str) -> None:
    chip = load_chip(name)
    assert chip.name == name
    keys = _numbers(chip.model_dump(exclude={"sources", "revision"}))
    assert len(keys) > 200
    assert [key for key in keys if len(chip.source_of(key).source) < 5] == []


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_figures_of_each_part(name: str) -> None:
    chip = load_chip(name)
    mib, gib = 1 << 20, 1 << 30
    assert (
        chip.cores.aic,
        chip.cores.aiv,
        chip.clock_mhz,
        chip.l2.bytes / mib,
        chip.hbm.bytes / gib,
        chip.l2.read_gbps,
    ) == (*PUBLISHED[name][:5], PUBLISHED[name][6])
    # Published are means over cores that begin one after the other: 1490 (data_copy) to 1530 GB/s on the 910B1.
    assert chip.hbm.gbps == pytest.approx(PUBLISHED[name][5], rel=0.02)
    assert chip.soc.lower() == name


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_figures_of_the_architecture(name: str) -> None:
    chip = load_chip(name)
    kib = {"UB": 192, "L1": 512, "L0A": 64, "L0B": 64, "L0C": 128, "BT": 1, "FB": 2}
    assert {memory: chip.memories[memory].bytes / 1024 for memory in kib} == kib
    assert chip.memories.UB.usable == 192 * 1024 - 256
    assert (chip.gm.latency_l2_read, chip.gm.latency_l2_write, chip.gm.latency_hbm) == (
        216,
        238,
        420,
    )
    assert (chip.gm.read_port_aiv, chip.gm.write_port_aiv, chip.gm.read_write_sum_aiv) == (
        128,
        77,
        110,
    )
    assert (chip.vector.min_issue, chip.vector.drain) == (3, 16)
    assert (chip.sync.visible, chip.sync.cross_core, chip.sync.sync_all_us) == (10, 300, 1.9)


def test_the_banks_cover_the_unified_buffer(b1: Chip) -> None:
    banks = b1.ub_banks
    assert banks.groups * banks.banks_per_group * banks.bank_bytes == b1.memories.UB.bytes


def test_measured_cycles_of_a_vector_add(b1: Chip) -> None:
    # asc-devkit, bank_conflict_ub: 64 repeats and a barrier take 86.0 cycles without a conflict.
    cost = b1.vector_cost("add", "float32")
    assert cost.startup + 64 * cost.slope + b1.vector.drain == pytest.approx(86.0, abs=0.5)


@pytest.mark.parametrize(
    ("instruction", "dtype", "repeats", "cycles"),
    [
        # pto-isa, isolated operations on 64 x 64 float32, drain included; two sources in conflict.
        ("div", "float32", 64, 288),
        ("exp", "float32", 64, 159),
        # mskpp, in a stream: 36.08 cycles for eight repeats of fp16 division, less the startup of 13.
        ("div", "float16", 8, 36 + 13 + 16),
    ],
)
def test_measured_cycles_of_slow_instructions(
    b1: Chip, instruction: str, dtype: str, repeats: int, cycles: float
) -> None:
    cost = b1.vector_cost(instruction, dtype)
    total = cost.startup + repeats * cost.slope + b1.vector.drain
    assert total == pytest.approx(cycles, rel=0.02)


def test_an_empty_mix_kernel_on_all_cores(b1: Chip) -> None:
    # CANN 9.0.0 guide, figure 3-90: 24 mix blocks start 72 cores and take 12.66 us.
    assert b1.launch.base_us + 72 * b1.launch.per_core_us == pytest.approx(12.66, rel=0.03)


def test_a_stream_of_misses_on_one_vector_core(b1: Chip) -> None:
    # tilesim: one vector core reads 54.5 bytes a cycle from HBM.
    assert b1.gm.window_aiv / b1.gm.latency_hbm == pytest.approx(54.5, rel=0.02)


def test_all_chips_price_the_same_instructions() -> None:
    priced = {name: sorted(load_chip(name).vector_costs) for name in CHIPS}
    assert priced == dict.fromkeys(CHIPS, priced["toy"])
    assert len(priced["toy"]) > 60


def test_conversions(toy: Chip, b1: Chip) -> None:
    assert (toy.cycles(2.0), toy.us(2000), toy.bytes_per_cycle(64)) == (2000, 2.0, 64.0)
    assert b1.bytes_per_cycle(1850) == 1000.0
    assert [toy.cycles(us) for us in (0.0014, 0.0015, 0.0025)] == [1, 2, 3]
    assert isinstance(b1.cycles(2.3), int)


def test_a_price_falls_back_to_the_family_and_then_to_any(b1: Chip) -> None:
    costs = b1.vector_costs
    assert b1.vector_cost("exp", "float16") == costs["exp"]["float16"]
    assert b1.vector_cost("add", "int16") == costs["add"]["int"]
    assert b1.vector_cost("add", "bfloat16") == costs["add"]["float"]
    assert b1.vector_cost("copy", "uint32") == costs["copy"]["any"]
    assert b1.vector_cost("cast", "float16->float32") == costs["cast"]["float16->float32"]
    assert b1.vector_cost("cast", "int32->int64") == costs["cast"]["any"]


def test_no_price_names_the_nearest_instruction(b1: Chip) -> None:
    with pytest.raises(ConfigError, match=r"vector_costs\.ads has no price; did you mean 'adds'\?"):
        b1.vector_cost("ads", "float16")
    with pytest.raises(
        ConfigError, match=r"vector_costs\.add has no price for float64->int8; priced: float, int"
    ):
        b1.vector_cost("add", "float64->int8")


def test_source_of_an_unknown_number(b1: Chip) -> None:
    assert b1.source_of("gm.latency_hbm").confidence == "M"
    with pytest.raises(
        ConfigError, match=r"no source for gm\.latency_hbn; did you mean 'gm\.latency_hbm'\?"
    ):
        b1.source_of("gm.latency_hbn")


def test_queue_depths(b1: Chip) -> None:
    assert b1.queue_depth(Pipe.V, CoreKind.AIV) == 32
    assert b1.queue_depth(Pipe.MTE3, CoreKind.AIC) == 32
    assert b1.queue_depth(Pipe.MTE3, CoreKind.AIV) == 16
    with pytest.raises(ConfigError, match="that unit has no queue"):
        b1.queue_depth(Pipe.S, CoreKind.AIV)


def test_memories_by_name(toy: Chip) -> None:
    assert toy.memories["UB"] is toy.memories.UB
    with pytest.raises(KeyError):
        toy.memories["GM"]


def test_names_in_the_vendors_spelling_and_chips_themselves(b1: Chip) -> None:
    assert load_chip("Ascend910B1") == b1
    assert load_chip(b1) is b1
    assert load_chip("ascend910b1") is b1


def test_a_chip_cannot_be_changed(toy: Chip) -> None:
    with pytest.raises(ValueError, match="frozen"):
        toy.clock_mhz = 1  # type: ignore[misc]
