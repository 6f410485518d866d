"""No program is faster than physics: bytes over peak bandwidths, fractals over the cube's rate, repeats over V's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.config import Chip, load_chip
from ascend_sim.run import Run
from tests.machine.kit import instructions, local, window

CHIPS = ("ascend910b1", "ascend910b3", "ascend910b4")
HALFS = 1 << 20  # of each buffer in GM

_move = st.tuples(
    st.sampled_from(["load", "store", "rows", "add"]),
    st.integers(0, 255),  # where, in steps of a fraction of the buffer
    st.sampled_from([16, 64, 128, 1024, 1040, 8192]),  # elements
    st.sampled_from([0, 16, 64]),  # elements off a line's border
)


def vector_kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, steps: Any, bypass: bool) -> None:
    source, target = window(x), window(z)
    if bypass:
        source.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
    block = asc.get_block_idx()
    a, b = local(0, 16384, asc.float16), local(65536, 16384, asc.float16)
    for what, where, count, off in steps:
        place = (where * 2048 + block * 4096) % (HALFS - 65536) // 256 * 256 + off
        if what == "load":
            asc.data_copy(a, source[place:], count)
        elif what == "store":
            asc.data_copy(target[place:], b, count)
        elif what == "rows":
            asc.data_copy(a, source[place:], asc.DataCopyParams(8, min(count, 1024) // 16, 16, 0))
        else:
            asc.add(b, a, a, count)


def check_core(run: Run, chip: Chip) -> None:
    gm = chip.gm
    for core, log in enumerate(run.log.cores):
        span = log.end - log.start
        loads, stores = (
            sum(item.bytes for item in instructions(run, pipe, core)) for pipe in ("MTE2", "MTE3")
        )
        assert loads <= gm.read_port_aiv * span
        assert stores <= gm.write_port_aiv * span
        repeats = sum(item.call.work for item in instructions(run, "V", core))
        assert repeats <= span  # the fastest instruction takes a cycle for each
        for item in instructions(run, "MTE2", core):
            assert item.end - item.start >= gm.latency_l2_read + item.bytes / gm.read_port_aiv - 1


def check_chip(run: Run, chip: Chip) -> None:
    """What all cores move together, between the first one's start and the last one's end."""
    span = max(core.end for core in run.log.cores) - min(core.start for core in run.log.cores)
    memory = run.memory
    moved = sum(
        item.bytes for core in range(len(run.log.cores)) for item in instructions(run, "MTE2", core)
    )
    assert memory["l2_miss_bytes"] >= 0
    assert moved <= chip.bytes_per_cycle(chip.l2.mixed_gbps) * span + 1


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(CHIPS),
    st.lists(_move, min_size=1, max_size=12),
    st.integers(1, 40),
    st.sampled_from(["cold", "warm", "dirty"]),
    st.booleans(),
)
def test_copies_and_vector_instructions(
    name: str, steps: list[Any], cores: int, l2: str, bypass: bool
) -> None:
    x, z = np.zeros(HALFS, np.float16), np.zeros(HALFS, np.float16)
    run = sim.launch(
        vector_kernel, x, z, tuple(steps), bypass, cores=cores, chip=name, l2=l2,
        numerics="off", checks="off",
    )  # fmt: skip
    chip = load_chip(name)
    check_core(run, chip)
    check_chip(run, chip)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(CHIPS), st.integers(1, 40), st.sampled_from([4096, 32768, 131072]),
    st.integers(1, 6), st.booleans(), st.sampled_from(["cold", "dirty"]),
)  # fmt: skip
def test_what_comes_from_hbm_comes_at_its_rate(
    name: str, cores: int, size: int, number: int, store: bool, l2: str
) -> None:
    """Each core streams bytes of its own: every byte loaded is one of HBM's, and every dirty byte that leaves."""

    def stream(x: asc.GlobalAddress, z: asc.GlobalAddress) -> None:
        tile = local(0, size, asc.int8)
        for step in range(number):
            place = (asc.get_block_idx() * number + step) * size
            asc.data_copy(tile, window(x)[place:], size)
            if store:
                asc.data_copy(window(z)[place:], tile, size)

    x, z = (np.zeros(cores * number * size, np.int8) for _ in range(2))
    run = sim.launch(stream, x, z, cores=cores, chip=name, l2=l2, numerics="off", checks="off")
    chip = load_chip(name)
    span = max(core.end for core in run.log.cores) - min(core.start for core in run.log.cores)
    back = run.memory["write_back_bytes"]
    assert back == (cores * number * size * (1 + store) if l2 == "dirty" else 0)
    passed = cores * number * size + back
    assert passed <= chip.bytes_per_cycle(chip.hbm.gbps) * (span + 1)


@dataclass(frozen=True)
class Product:
    m: int
    n: int
    k: int


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.builds(
            Product, st.sampled_from([16, 32, 128]), st.sampled_from([16, 64, 128]), st.sampled_from([16, 64, 128])
        ),
        min_size=1,
        max_size=6,
    )
)  # fmt: skip
def test_matrix_products_and_their_loads(products: list[Product]) -> None:
    at = asc.TPosition

    def kernel() -> None:
        source = local(0, 32768, asc.float16, at.A1)
        left, right = local(0, 16384, asc.float16, at.A2), local(0, 16384, asc.float16, at.B2)
        result = local(0, 16384, asc.float32, at.CO1)
        for one in products:
            for target, fractals in ((left, one.m * one.k // 256), (right, one.k * one.n // 256)):
                asc.load_data(target, source, asc.LoadData2DParams(0, fractals, 1))
            asc.mmad(result, left, right, asc.MmadParams(one.m, one.n, one.k, 0, False, True))

    run = sim.launch(kernel, kernel_type="AIC_ONLY", numerics="off", checks="off")
    (core,) = run.log.cores
    span = core.end - core.start
    fractals = sum(one.m * one.n * one.k // 4096 for one in products)
    assert fractals <= span
    left = sum(one.m * one.k * 2 for one in products)
    right = sum(one.k * one.n * 2 for one in products)
    assert left / run.chip.mte1.l0a_port + right / run.chip.mte1.l0b_port <= span
