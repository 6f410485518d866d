"""Atomic stores: meaning, the mode register, and what the checks say about them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.errors import KernelError

COUNT = 64


@asc.jit(auto_sync=False)
def store_twice(x, z, operation: asc.ConstExpr[str], clear: asc.ConstExpr[bool]):
    """Store x into z with an atomic mode, and once more after `set_atomic_none` where asked."""
    source, target = asc.GlobalTensor(), asc.GlobalTensor()
    source.set_global_buffer(x)
    target.set_global_buffer(z)
    local = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, COUNT)
    asc.data_copy(local, source, COUNT)
    asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
    asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
    getattr(asc, f"set_atomic_{operation}")(z.dtype)
    asc.data_copy(target, local, COUNT)
    asc.pipe_barrier(asc.PipeID.PIPE_MTE3)
    if clear:
        asc.set_atomic_none()
        asc.data_copy(target, local, COUNT)
    asc.set_atomic_none()


def values(dtype: object) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    x, z = generator.integers(-60, 60, (2, COUNT))
    return x.astype(dtype), z.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("operation", "meaning"),
    [("add", np.add), ("max", np.maximum), ("min", np.minimum), ("type", np.add)],
)
def test_store_combines(dtype: object, operation: str, meaning: np.ufunc) -> None:
    x, z = values(dtype)
    before = z.copy()
    run = sim.launch(store_twice, x, z, operation, False)
    np.testing.assert_array_equal(z, meaning(before, x).astype(dtype))
    assert not run.findings


def test_none_ends_the_mode() -> None:
    x, z = values(np.float32)
    sim.launch(store_twice, x, z, "add", True)
    np.testing.assert_array_equal(z, x)


@asc.jit(auto_sync=False)
def add_from_all(x, z, atomic: asc.ConstExpr[bool]):
    """Every block stores its own part of x into the same bytes of z."""
    source, target = asc.GlobalTensor(), asc.GlobalTensor()
    source.set_global_buffer(x + COUNT * asc.get_block_idx())
    target.set_global_buffer(z)
    local = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, COUNT)
    asc.data_copy(local, source, COUNT)
    asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
    asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
    if atomic:
        asc.set_atomic_add(z.dtype)
    asc.data_copy(target, local, COUNT)
    asc.set_atomic_none()


def test_blocks_may_add_to_one_place() -> None:
    x = np.arange(8 * COUNT, dtype=np.float32)
    z = np.ones(COUNT, np.float32)
    run = sim.launch(add_from_all, x, z, True, cores=8)
    np.testing.assert_array_equal(z, 1 + x.reshape(8, COUNT).sum(axis=0))
    assert not run.findings
    assert [f.code for f in sim.launch(add_from_all, x, z, False, cores=8).findings] == [
        "race-blocks-waw"
    ]


def test_type_must_be_the_destinations() -> None:
    @asc.jit(auto_sync=False)
    def wrong(z):
        target = asc.GlobalTensor()
        target.set_global_buffer(z)
        local = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, COUNT)
        asc.duplicate(local, 0.0, COUNT)
        asc.set_atomic_add(asc.float16)
        asc.data_copy(target, local, COUNT)

    with pytest.raises(KernelError, match="the atomic mode combines float16, and z is float32"):
        sim.launch(wrong, np.zeros(COUNT, np.float32))


def test_order_is_that_of_simulated_time() -> None:
    """The sum's last bits follow the order of the cores' stores, which is the same in every run."""
    x = np.random.default_rng(1).normal(size=8 * COUNT).astype(np.float32)
    results = []
    for shuffle in (None, 1, 2):
        z = np.zeros(COUNT, np.float32)
        sim.launch(add_from_all, x, z, True, cores=8, shuffle=shuffle)
        results.append(z)
    total = np.zeros(COUNT, np.float32)
    for part in x.reshape(8, COUNT):
        total += part
    for z in results:
        np.testing.assert_array_equal(z, total)
