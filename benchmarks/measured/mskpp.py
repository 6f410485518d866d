"""One core's copies and instructions in a long run: the steady rates behind a vendor's predictor."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, sweep, time_launch, times

from ._kit import POSITIONS, hand_over, local, window
from .vec_doc import elements_a_cycle

NUMBER = 64  # copies; the table's rate is of 1,024
KIB = 1024
SIZES = {
    "gm_l1": (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 160, 192, 256, 384, 480, 512),
    "gm_l1_nz": (4, 8, 16, 32, 52, 64, 96, 116, 128, 192),
    "gm_ub_b1": (1, 2, 4, 8, 16, 24, 32, 192),
    "gm_ub_b3": (1, 2, 4, 8, 16, 32, 64, 128, 192),
    "ub_gm_b1": (1, 2, 4, 8, 16, 32, 64),
    "l0c_gm": (1, 4, 8, 16, 128),
}
ROWS = 256
"""Rows of the copies with re-layout, where a size has as many whole blocks; not stated."""


def copies(x, kind: str, size: int):
    """Copy `size` bytes from or to GM again and again; each time another place, as far as the buffer goes.

    Stores follow one another, as the steps say. The figures of loads hold their latency, so each of them waits.
    """
    tensor = window(x)
    if kind.startswith("gm_l1"):
        tile, pipe = local(0, size // 2, asc.float16, POSITIONS.A1), asc.PipeID.PIPE_MTE2
    elif kind == "l0c_gm":
        tile, pipe = local(0, size // 4, asc.float32, POSITIONS.CO1), asc.PipeID.PIPE_FIX
    else:
        store = kind.startswith("ub_gm")
        tile = local(0, size // 2, asc.float16)
        pipe = asc.PipeID.PIPE_MTE3 if store else asc.PipeID.PIPE_MTE2
    for number in range(NUMBER):
        copy_once(kind, tensor, tile, number * size, size)
        if pipe is asc.PipeID.PIPE_MTE2:
            asc.pipe_barrier(pipe)


def copy_once(kind: str, tensor, tile, place: int, size: int):
    """Send one copy of a kind."""
    if kind == "gm_l1_nz":
        rows = min(ROWS, size // 32)
        columns = size // 2 // rows // 16 * 16
        params = asc.Nd2NzParams(1, rows, columns, 0, columns, rows, 1, 0)
        asc.data_copy(tile, tensor[place // 2 :], params)
    elif kind == "l0c_gm":
        params = asc.FixpipeParamsV220(
            n_size=16, m_size=size // 64, src_stride=size // 64, dst_stride=16
        )
        asc.fixpipe(tensor[place // 4 :], tile, params, asc.FixpipeConfig.cfg_row_major())
    elif kind.startswith("ub_gm"):
        asc.data_copy(tensor[place // 2 :], tile, size // 2)
    else:
        asc.data_copy(tile, tensor[place // 2 :], size // 2)


def copied(record: Record, kib: float) -> dict:
    """Return the times of a run of copies and its GiB/s."""
    size, kind = int(kib * KIB), record.name
    cube = kind.startswith(("gm_l1", "l0c"))
    x = np.zeros(
        size * NUMBER // (4 if kind == "l0c_gm" else 2),
        np.float32 if kind == "l0c_gm" else np.float16,
    )
    run = time_launch(
        partial(copies, kind=kind, size=size), x, record=record, cores=1, l2=l2_of(kind),
        kernel_type="AIC_ONLY" if cube else "AIV_ONLY",
    )  # fmt: skip
    result = times(run)
    span = result["aic_us"] if cube else result["aiv_us"]
    return result | {"gib_s": size * NUMBER / span * 1e6 / 2**30}


def l2_of(kind: str) -> str:
    """Return the state of L2 that a table's plateau tells: that of gm_ub_b1 is the rate of misses."""
    return "cold" if kind == "gm_ub_b1" else "warm"


def to_l0(fractals: int, number: int, position, event):
    """Load fractals from L1 to L0A or L0B again and again."""
    source = local(0, 65536 // 2, asc.float16, POSITIONS.A1)
    target = local(0, 65536 // 2, asc.float16, position)
    for _ in range(number):
        asc.load_data(target, source, asc.LoadData2DParams(0, fractals, 1))
    hand_over(event)


def products(m: int, n: int, k: int, number: int):
    """Multiply the same operands again and again into places that follow one another."""
    left, right = (
        local(0, m * k, asc.float16, POSITIONS.A2),
        local(0, k * n, asc.float16, POSITIONS.B2),
    )
    for turn in range(number):
        place = turn * m * n * 4 % (131072 - m * n * 4 + 1) // 1024 * 1024
        product = local(place, m * n, asc.float32, POSITIONS.CO1)
        asc.mmad(product, left, right, asc.MmadParams(m, n, k, 0, False, True))


def ub_to_ub(size: int, number: int):
    """Copy inside UB again and again."""
    source, target = local(0, size // 2, asc.float16), local(98304, size // 2, asc.float16)
    for _ in range(number):
        asc.data_copy(target, source, size // 2)


def steady(record: Record, kernel, core: str) -> tuple[float, dict]:
    """Return the cycles of one instruction, from the difference of a long and a short run, and the long run's times."""
    runs = [
        time_launch(partial(kernel, number=n), record=record, cores=1, kernel_type=core)
        for n in (NUMBER, 2 * NUMBER)
    ]
    return (runs[1].cycles - runs[0].cycles) / NUMBER, times(runs[1])


VECTOR = {
    "VADD_fp32": ("add", asc.float32), "VEXP_fp32": ("exp", asc.float32), "VDIV_fp32": ("div", asc.float32),
    "VCADD": ("whole_reduce_sum", asc.float32), "VCGADD": ("block_reduce_sum", asc.float32),
}  # fmt: skip


def simulate(record: Record) -> dict:
    name, mhz = record.name, 1850 if record.config == "ascend910b1" else 1800
    if name in SIZES:
        return sweep(copied(record, kib) for kib in record.measured.get("kb", SIZES[name]))
    if name == "l1_l0":
        points = []
        for fractals in record.measured.get("repeats", (1, 2, 4, 8, 16, 128)):
            rates = {}
            sides = (("l0a_gib_s", POSITIONS.A2), ("l0b_gib_s", POSITIONS.B2))
            for key, position in sides:
                kernel = partial(to_l0, fractals, position=position, event=asc.HardEvent.MTE1_M)
                cycles, found = steady(record, kernel, "AIC_ONLY")
                rates[key] = fractals * 512 / cycles * mhz * 1e6 / 2**30
            points.append(found | rates)
        return sweep(points)
    if name == "ub_ub":
        points = []
        for size in (32 * KIB, 64 * KIB):
            cycles, found = steady(record, partial(ub_to_ub, size), "AIV_ONLY")
            points.append(found | {"gib_s": size / cycles * mhz * 1e6 / 2**30})
        return sweep(points)
    if name.startswith("mmad"):
        return matrix_products(record, mhz)
    result: dict = {}
    rates = {}
    for key, (instruction, dtype) in VECTOR.items():
        elements, last = elements_a_cycle(record, instruction, dtype)
        rates[key] = 256 / dtype.sizeof() / elements
        result = result or last
    return result | {"cycles_per_repeat": rates}


def matrix_products(record: Record, mhz: int) -> dict:
    """Return operations a cycle of a run of products, or the cycles of one alone."""
    m, k = record.params["m"], record.params["k"]
    points = []
    for n in record.measured.get("n", (16, 1024)):
        cycles, found = steady(record, partial(products, m, n, k), "AIC_ONLY")
        if record.params["mode"] == "single":
            alone = time_launch(
                partial(products, m, n, k, 1), record=record, cores=1, kernel_type="AIC_ONLY"
            )
            cycles = times(alone)["mac_us"] * mhz
        points.append(found | {"flop_per_cycle": 2 * m * n * k / cycles, "cycles": cycles})
    return sweep(points)
