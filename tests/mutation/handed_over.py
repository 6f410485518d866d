"""Small problems of the measured programs whose cube and vector cores hand blocks over, and of a convolution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ascend_sim.accuracy import families

Array = np.ndarray[Any, Any]
MIX = {"kernel_type": "MIX_AIC_1_2"}


def programs(data: Callable[..., Array], subject: Callable[..., Any]) -> Iterator[Any]:
    """Yield the subjects; `data` makes normal numbers of a shape, `subject` performs a launch once."""
    package = families.load_family("catlass").__package__

    def part(name: str) -> Any:
        return _import(f"{package}.{name}")

    yield from _attention(part, data, subject)
    yield from _gradient(part, data, subject)
    yield from _grouped(part, subject)
    yield from _others(data, subject)


def _import(name: str) -> Any:
    from importlib import import_module

    return import_module(name)


def _attention(part: Any, data: Any, subject: Any) -> Iterator[Any]:
    """Four tiles of keys of one block of queries and two of another, with masks."""
    module, tasks = part("_attention"), part("_attention_tasks")
    shape = tasks.Shape(depth=64, tile=128, ahead=1, fifo=2)
    own = [[tasks.Task(0, 0, 512, masked=1), tasks.Task(128, 128, 256, masked=1)]]
    found: list[Any] = []

    def start(kernel: Any, *args: Any, **options: Any) -> Any:
        found.append(subject("attention", kernel, *args, **options))

    q, k, v = data(256, 64), data(512, 64), data(512, 64)
    module.launch(q, k, v, np.zeros((256, 64), np.float32), shape, own, start=start)
    yield from found


def _gradient(part: Any, data: Any, subject: Any) -> Iterator[Any]:
    """The pairs of two blocks of queries and three of keys."""
    module = part("_attention_grad")
    pairs = [module.Pair(row, key, key == 0) for row in (0, 128) for key in (0, 128, 256)]
    depth = 64
    arrays = [data(rows, depth) for rows in (256, 384, 384, 256, 256)]
    arrays += [np.abs(data(256, dtype=np.float32)) + 4]
    arrays += [np.zeros((rows, depth), np.float32) for rows in (256, 384, 384)]
    found: list[Any] = []

    def start(kernel: Any, *args: Any, **options: Any) -> Any:
        found.append(subject("attention_grad", kernel, *args, **options))

    module.launch(arrays, depth, depth, [pairs], start)
    yield from found


def _grouped(part: Any, subject: Any) -> Iterator[Any]:
    """Two groups, two places, without and with GELU."""
    module = part("_grouped")
    draw = np.random.default_rng(3)
    for name, gelu, vectors, places in (("grouped", False, 2, 1), ("grouped_gelu", True, 1, 2)):
        case = module.Grouped(
            2, 128, 128, 128, vectors=vectors, places=places, tile=1024, buffers=2, gelu=gelu,
            base=(32, 64), item=(32, 128),
        )  # fmt: skip
        arrays = module.arrays(case, 1)
        for array in arrays[:2]:
            array[...] = draw.integers(-9, 10, array.shape)
        for array in arrays[2:4]:
            array[...] = draw.uniform(0.01, 0.02, array.shape)
        kernel = partial(module.grouped, case=case, tiles=case.deal(1), chain=module.gelu_into)
        options = {"kernel_type": f"MIX_AIC_1_{vectors}"}
        yield subject(name, kernel, *arrays, cores=1, **options)


def _others(data: Any, subject: Any) -> Iterator[Any]:
    """A product whose B vector cores turn first, a convolution, a scan."""
    module = families.load_family("gm_aivnz")
    plan = module.Plan((64, 272, 128), (32, 128, 64), (2, 2), stored_b="NZ")
    tiles = [own for own in module.cyclic(plan, 1) if own]
    workspace = np.zeros((17, 128, 16), np.float16)
    arrays = data(64, 128), data(128, 272), np.zeros((64, 272), np.float32), workspace
    kernel = partial(module.turned, plan=plan, tiles=tiles)
    yield subject("turned", kernel, *arrays, cores=1, **MIX)

    module = families.load_family("pto_conv")
    conv = module.Conv(1, 2, 12, 8, 8, (3, 3), (48, 64))
    arrays = module.arrays(conv)
    for array in arrays[:2]:
        array[...] = data(*array.shape)
    kernel = partial(module.convolve, conv=conv, blocks=conv.deal((1, 1)))
    yield subject("convolution", kernel, *arrays, cores=1, kernel_type="AIC_ONLY")

    module = families.load_family("tcuscan")
    size, tiles = 64, 5
    x = np.random.default_rng(7).integers(-2, 3, tiles * size**2).astype(np.float16)
    sums = [np.zeros(tiles * size**2, np.float32) for _ in range(2)]
    lines = np.zeros(2 * module.LINE, np.float32)
    kernel = partial(module.scan, tiles=tiles, size=size)
    yield subject(
        "scan", kernel, x, module.triangles(size), sums[0], lines, sums[1], cores=1, **MIX
    )
