"""What is mutated: every kernel of the examples, the operators and the measured programs, on small shapes.

A subject is a launch that was performed once and can be performed again. A measured program runs on a problem of its
own small size instead of the one that was measured.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import ascend_sim as sim
from ascend_sim.accuracy import families
from ascend_sim.session import Session
from ascend_sim.stage import Rehearsal, Trial, rehearsing
from tests.mutation.handed_over import programs

ROOT = Path(__file__).parent.parent.parent


@dataclass
class Subject:
    """A launch to mutate: its name, how to perform it again, and what it gives when nothing is changed."""

    name: str
    rehearsal: Rehearsal
    make: Callable[..., Session] = Session
    numbers: bool = True

    def perform(self, make: Callable[..., Session] | None = None) -> Trial:
        """Perform the launch with all checks."""
        return self.rehearsal.again(make or self.make, checks="collect", numerics=self.numbers)


@contextmanager
def listening() -> Iterator[list[Rehearsal]]:
    """Collect all launches that are performed."""
    found: list[Rehearsal] = []
    with rehearsing(found.append):
        yield found


def example(name: str) -> Any:
    """Import an example."""
    path = ROOT / "examples" / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


# ---- examples -------------------------------------------------------------------------------


def examples() -> Iterator[Subject]:
    """Yield the kernels of the examples (03, 04 and 07 run operators)."""
    generator = np.random.default_rng(0)
    with listening() as found:
        x, y = generator.normal(size=(2, 2 * 5 * 256)).astype(np.float16)
        add = example("01_vector_add.py").vector_add
        for buffers in (1, 2):
            add[2](x, y, np.zeros_like(x), 5, 256, buffers)
        example("02_vector_add_flags.py").vector_add_flags[2](x, y, np.zeros_like(x), 5, 256)
        a, b = (
            generator.integers(-8, 9, shape).astype(np.float16) for shape in ((64, 256), (256, 128))
        )
        matmul = example("05_matmul.py").matmul
        for buffers in (1, 2):
            matmul[2](a, b, np.zeros((64, 128), np.float32), 128, 256, 64, 64, buffers)
        module = example("06_matmul_object.py")
        mix = example("08_mix_flags.py")
        with _with(mix, {"BLOCKS": 1, "TILES": 3, "ROWS": 32, "N": 64, "K": 32}):
            a, b = (generator.integers(-4, 5, n).astype(np.float16) for n in ((96, 32), (32, 64)))
            bias = generator.integers(-9, 10, 64).astype(np.float32)
            tiles, c = np.zeros((1, 2, 32, 64), np.float32), np.zeros((96, 64), np.float32)
            mix.product[1](a, b, bias, tiles, c, 2)
    names = ("01_queues_1", "01_queues_2", "02_flags", "05_matmul_1", "05_matmul_2", "08_mix_flags")
    for name, rehearsal in zip(names, found, strict=True):
        yield Subject(f"examples/{name}", rehearsal)
    with listening() as found, _with(module, {"BLOCKS": 1, "M": 256, "N": 128, "K": 64}):
        matmul_object(module)
    yield Subject("examples/06_matmul_object", found[0])


def matmul_object(module: Any) -> None:
    """Run the kernel of the sixth example on a small product."""
    generator = np.random.default_rng(5)
    a, b = (
        generator.integers(-8, 9, shape).astype(np.float16)
        for shape in ((module.M, module.K), (module.K, module.N))
    )
    bias = generator.integers(-99, 100, module.N).astype(np.float32)
    c, workspace = np.zeros((module.M, module.N), np.float32), np.zeros(16 << 20, np.uint8)
    tiling = module.make_tiling(64, 64)
    module.matmul_leaky_relu[module.BLOCKS](a, b, bias, c, workspace, tiling, module.SLOPE)


# ---- operators ------------------------------------------------------------------------------

OPERATORS: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "ops/rope_grad": ("rope_grad", {"seq": "5,1,3", "hidden": "256"}, {"MAX_PROCESS_NUM": 512}),
    "ops/rope_grad_two_buffers": (
        "rope_grad", {"seq": "5,1,3", "hidden": "256"}, {"BUFFER_NUM": 2, "MAX_PROCESS_NUM": 512},
    ),
    "ops/rope_grad_tuned": ("rope_grad", {"seq": "5,1,3", "hidden": "256", "variant": "tuned"}, {}),
    "ops/laser_band": ("laser_attention_grad", {"seq": "256", "heads": "1"}, {}),
    "ops/laser_192": ("laser_attention_grad", {"seq": "256", "heads": "1", "head-dim": "192"}, {}),
    "ops/laser_sbh": ("laser_attention_grad", {"seq": "256", "heads": "2", "layout": "SBH"}, {}),
    "ops/laser_window": (
        "laser_attention_grad", {"seq": "512", "heads": "1", "pre-tokens": "256"}, {},
    ),
    "ops/laser_long_window": (  # the few lines that a short sequence does not come to
        "laser_attention_grad", {"seq": "1024", "heads": "1", "pre-tokens": "256"}, {},
    ),
}  # fmt: skip


def operators() -> Iterator[Subject]:
    """Yield the operators' kernels, each way through them once."""
    from ops import Context, find_operator

    for name, (operator, options, tiling) in OPERATORS.items():
        with listening() as found:
            cores = 2 if operator == "rope_grad" else 1
            find_operator(operator).run(options, Context(tiling=tiling, cores=cores), 0, None)
        yield Subject(name, found[0])


# ---- measured programs ----------------------------------------------------------------------

LEFT_OUT = {
    "bank_ub": "adds of what nothing wrote, for the rate alone",
    "bw_vs_size": "copies for the rate alone: nobody reads what they bring",
    "dcopy_l1": "loads one tile over the other and reads none",
    "dcopy_ub": "as dcopy_l1",
    "mskpp": "repeats one instruction, for the rate alone",
    "reduce_doc": "reductions of what nothing wrote",
    "sky_l2": "streams over one place, for the rate alone",
    "vec_doc": "repeats one instruction, for the rate alone",
}
"""Measured programs without a flow of data: they have findings as they are, and nothing orders what they do."""


COVERED = (
    "add_hp", "bank_nd2nz", "irope", "msp_add", "rms_norm", "swiglu", "turbo", "gm_aivnz", "pto_conv", "tcuscan",
    *("fa_jit", "fa_pto_a3", "fa_tl", "fia_a3", "fia_b2"),  # all of them `_attention`
    *("fag", "fag_tl"),  # `_attention_grad`
    *("gmm_guide", "qgmm"),  # `_grouped`
)  # fmt: skip
"""Families with subjects of their own; those that call `_matmul.multiply` alone share its subjects."""


def without_subjects() -> list[str]:
    """Return the families with kernels of their own that no small problem has been made for yet."""
    found = []
    for name in families.list_families():
        text = (families.folder() / f"{name}.py").read_text(encoding="utf-8")
        own = "asc.data_copy" in text or "from ._attention" in text or "from ._grouped" in text
        if own and name not in COVERED and name not in LEFT_OUT:
            found.append(name)
    return found


def measured() -> Iterator[Subject]:
    """Yield the measured programs that compute something."""
    bf16, f16, f32 = ml_dtypes.bfloat16, np.float16, np.float32

    def data(*shape: int, dtype: Any = f16) -> Any:
        return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)

    def out(*shape: int, dtype: Any = f16) -> Any:
        return np.zeros(shape, dtype)

    def family(name: str, **constants: Any) -> Any:
        module = families.load_family(name)
        return _with(module, constants)

    def subject(name: str, kernel: Any, *args: Any, cores: int = 2, **options: Any) -> Subject:
        with listening() as found:
            sim.launch(kernel, *args, cores=cores, **options)
        return Subject(f"measured/{name}", found[0])

    with family("add_hp") as module:
        x, y = data(2, 2048), data(2, 2048)
        for name, places in (("one", module.SINGLE), ("two", module.DOUBLE)):
            kernel = partial(
                module.add_chunks, shape=(2, 2048), chunk=512, places=places, bypass=False
            )
            yield subject(f"add_hp_{name}", kernel, x, y, out(2, 2048))
        kernel = partial(module.add_scalar, chunk=128, count=512)
        yield subject("add_hp_scalar", kernel, data(512), data(512), out(512), cores=1)
    with family("bank_nd2nz", BANDS=(1, 2)) as module:
        kernel = partial(module.relayout, shape=(96, 128), tile=(32, 32), stride=33)
        yield subject("bank_nd2nz", kernel, data(96, 128), out(96, 128))
    with family("irope") as module:
        kernel = partial(module.rotate, batches=16, all_heads=16, width=64)
        x, table = data(16, 16, 64, dtype=bf16), data(16, 64, dtype=bf16)
        tensors = (x, table, table.copy(), out(16, 16, 64, dtype=bf16))
        yield subject("irope", kernel, *tensors, cores=4)
    with family("msp_add") as module:
        for buffers in (1, 2):
            kernel = partial(module.add_bias, count=1280, tile=160, buffers=buffers, adds=1)
            yield subject(f"msp_add_{buffers}", kernel, data(1280), data(1280), out(1280))
    with family("rms_norm") as module:
        rows, columns = 6, 128
        tensors = (data(rows, columns), data(columns), out(rows, columns), out(rows, dtype=f32))
        yield subject(
            "rms_norm_rows", partial(module.one_by_one, rows=rows, columns=columns), *tensors
        )
        kernel = partial(module.together, rows=rows, columns=columns, most=2)
        yield subject("rms_norm_together", kernel, *tensors)
    with family("swiglu") as module:
        for dtype in (f16, f32):
            kernel = partial(module.swiglu, shape=(8, 128), tile=(2, 64))
            name = f"swiglu_{np.dtype(dtype).name}"
            yield subject(name, kernel, data(8, 256, dtype=dtype), out(8, 128, dtype=dtype))
    with family("turbo") as module:
        kernel = partial(module.quantise, tokens=6, batch=2)
        yield subject("turbo", kernel, data(6, 512, dtype=f32), out(6, 320, dtype=np.uint8))
    yield from products(data, out, subject)
    yield from programs(data, subject)


def products(data: Any, out: Any, subject: Any) -> Iterator[Subject]:
    """Yield the matrix product that the other programs share, in its ways."""
    package = families.load_family("catlass").__package__
    tiles, matmul = (import_module(f"{package}.{name}") for name in ("_tiles", "_matmul"))
    for name, more in (
        ("plain", {}),
        ("unit_flags", {"unit_flag": True}),
        ("one_slot", {"slots": (1, 1), "l0_buffers": 1}),
        ("ahead", {"ahead": 1, "step": (2, 1), "stored_b": "KN"}),
    ):
        plan = tiles.Plan((64, 64, 128), (32, 32, 32), **more)
        blocks = [
            [tiles.Tile(row, column, 32, 32, 0, 128) for column in (0, 32)] for row in (0, 32)
        ]
        kernel = partial(matmul.multiply, plan=plan, tiles=blocks)
        stored = (128, 64) if plan.stored_b == "KN" else (64, 128)
        tensors = (data(64, 128), data(*stored), out(64, 64, dtype=np.float32))
        yield subject(f"matmul_{name}", kernel, *tensors, kernel_type="AIC_ONLY")


@contextmanager
def _with(module: Any, constants: dict[str, Any]) -> Iterator[Any]:
    """Give a module's constants other values; they stay so, since the kernels run again later."""
    for name, value in constants.items():
        setattr(module, name, value)
    yield module


def subjects(names: list[str] | None = None) -> Iterator[Subject]:
    """Yield all subjects, or those whose name begins with one of `names`."""
    for group, make in (("examples", examples), ("ops", operators), ("measured", measured)):
        if names and not any(name.startswith(group) or group.startswith(name) for name in names):
            continue
        for subject in make():
            if not names or any(subject.name.startswith(name) for name in names):
                yield subject
