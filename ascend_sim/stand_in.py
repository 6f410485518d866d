"""Letting the name `asc` mean this simulator, so that a pyasc program runs here as it is."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

ELSEWHERE = {
    "asc.language.core": (
        "array", "constexpr", "ir_value", "memory_allocator", "ops", "properties", "range", "tensor", "types", "utils",
        "aipp_types",
    ),
    "asc.language.fwk": ("tpipe",),
    "asc.language.basic": (
        "block_sync", "cache", "common", "data_copy", "determine_compute_sync", "dump_tensor", "fixpipe", "list_tensor",
        "mm", "proposal", "scalar", "set_atomic", "sys_var", "vec_binary", "vec_binary_scalar", "vec_brcb",
        "vec_cmpsel", "vec_duplicate", "vec_gather", "vec_gather_mask", "vec_reduce", "vec_scatter",
        "vec_ternary_scalar", "vec_transpose", "vec_unary", "vec_vconv",
    ),
    "asc.lib.runtime": ("interface",),
}  # fmt: skip
"""pyasc's modules whose names stand in the package above them here."""

LIBRARY = {
    "asc.runtime.jit": "ascend_sim.lang.jit",
    "asc.runtime.compiler": "ascend_sim.lang.jit",
    "asc.runtime.launcher": "ascend_sim.lang.jit",
    "asc.language.adv": "ascend_sim.asc.adv",
}
"""pyasc's modules that are others of the simulator here."""


def our_modules() -> dict[str, ModuleType]:
    """Return `ascend_sim.asc` and everything under it, by the names that pyasc's modules have."""
    root = importlib.import_module("ascend_sim.asc")
    found = [root] + [
        importlib.import_module(part.name)
        for part in pkgutil.walk_packages(root.__path__, f"{root.__name__}.")
    ]
    modules = {module.__name__.removeprefix("ascend_sim."): module for module in found}
    for package, parts in ELSEWHERE.items():
        modules |= {f"{package}.{part}": modules[package] for part in parts}
    return modules | {name: importlib.import_module(place) for name, place in LIBRARY.items()}


def install() -> dict[str, ModuleType]:
    """Make `import asc` this simulator in the whole process; return what had these names before."""
    before = {name: module for name, module in sys.modules.items() if _is_asc(name)}
    for name in before:
        del sys.modules[name]
    sys.modules.update(our_modules())
    return before


@contextmanager
def standing_in() -> Iterator[None]:
    """Make `import asc` this simulator for a while."""
    before = install()
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _is_asc(name)]:
            del sys.modules[name]
        sys.modules.update(before)


def _is_asc(name: str) -> bool:
    return name == "asc" or name.startswith("asc.")
