"""Launches, arguments, outputs and comparisons that are wrong before any instruction is."""

from __future__ import annotations

import types

import numpy as np

import ascend_sim as sim
from ascend_sim import asc
from tests.user_cases.kit import (
    F32,
    E,
    Told,
    Want,
    case,
    fill,
    flag,
    ramp,
    told,
    ub,
    window,
    zeros,
)  # fmt: skip


@case(
    "HST-01",
    Want(
        "HOST",
        "block-number",
        says=("65536 blocks are asked, a launch takes 1 to 65535", "loop inside"),
    ),
    Want("HOST", "block-number", says=("0 blocks", "empty input, skip the launch")),
)
def block_number(wrong: bool) -> Told:
    """Neither 65536 blocks nor none."""

    def kernel() -> None:
        fill(ub(F32, 64, 0))

    if not wrong:
        return told(kernel, cores=8)
    said = told(kernel, cores=65536)
    said.findings += told(kernel, cores=0).findings
    return said


@asc.jit(auto_sync=False)
def tiled(
    x: asc.GlobalAddress,
    z: asc.GlobalAddress,
    workspace: asc.GlobalAddress,
    tiles: asc.ConstExpr[int],
) -> None:
    """Add one to as many tiles as the tiling says."""
    for tile in range(tiles):
        t = ub(F32, 64, 0)
        asc.data_copy(t, window(x)[64 * tile :], 64)
        flag(E.MTE2_V)
        asc.adds(t, t, 1.0, 64)
        flag(E.V_MTE3)
        asc.data_copy(window(z)[64 * tile :], t, 64)
        flag(E.MTE3_MTE2)


@case(
    "HST-02",
    Want(
        "HOST",
        "argument-type",
        says=("workspace is the number 2", "an address in GM", "x, z, workspace, tiles"),
    ),
)
def arguments_in_the_wrong_order(wrong: bool) -> Told:
    """The workspace stands where the tiling belongs."""
    x, z, workspace = ramp(128), zeros(128), zeros(64)
    order = (2, workspace) if wrong else (workspace, 2)
    return told(tiled, x, z, *order)


@case(
    "HST-05",
    Want("COVERAGE", "output-rebound", says=("y is never", "rebound")),
)
def rebinding_writes_nothing(wrong: bool) -> Told:
    """y = x + 1 makes another name of it."""

    def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress) -> None:
        t = ub(F32, 64, 0)
        if wrong:
            y = x + 1
            asc.data_copy(t, window(x), 64)
        else:
            asc.data_copy(t, window(x), 64)
            flag(E.MTE2_MTE3)
            asc.data_copy(window(y), t, 64)

    return told(kernel, ramp(64), zeros(64))


@case(
    "HST-06",
    Want("STATE", "event-id-of-auto-sync", "own", says=("V_S id 7", "automatic synchronisation")),
)
def two_owners_of_a_flag(wrong: bool) -> Told:
    """The kernel's own flag has the id of automatic synchronisation; an option that does not exist is an error."""

    def kernel() -> None:
        t, u = ub(F32, 64, 0), ub(F32, 64, 4096)
        fill(t)
        asc.adds(u, t, 1.0, 64)
        asc.set_flag(E.V_S, 7 if wrong else 0)  # own
        u.get_value(0)
        asc.wait_flag(E.V_S, 7 if wrong else 0)

    try:
        asc.jit(auto_synch=True)(kernel)
    except sim.ConfigError as error:
        assert "auto_sync" in str(error)
    return told(kernel, auto_sync=True)


@case(
    "HST-07",
    Want("NUMERIC", "shape-differs", says=("shape [8, 1] vs [8]",)),
    Want("NUMERIC", "type-differs", says=("dtype float16 vs float32",)),
)
def output_of_another_shape(wrong: bool) -> Told:
    """No numbers are compared across shapes or types."""
    reference = ramp(8)
    said = Told()
    said.findings += sim.compare(
        reference.reshape(8, 1) if wrong else reference, reference
    ).findings
    given = reference.astype(np.float16 if wrong else np.float32)
    said.findings += sim.compare(given, reference).findings
    return said


@case("HST-11")
def twelve_kernels(wrong: bool) -> Told:
    """Any number of kernels, of any names, in any order: each does its own."""
    modules = [types.ModuleType(f"library{i}") for i in range(2)]
    source = (
        "def kernel(z):\n    t = ub(F32, 64, 0)\n    asc.duplicate(t, VALUE, 64)\n    flag(E.V_MTE3)\n"
        "    asc.data_copy(window(z), t, 64)\n"
    )
    for number, module in enumerate(modules):
        module.__dict__.update(
            ub=ub, F32=F32, asc=asc, flag=flag, E=E, window=window, VALUE=float(number)
        )
        exec(source, module.__dict__)
    said = Told()
    for turn in range(12):
        z = zeros(64)
        said = told(modules[turn % 2].kernel, z)
        assert (z == turn % 2).all()
        assert not said.findings
    return said


@case(
    "HST-13",
    Want(
        "NUMERIC",
        "mismatch",
        says=("element 0: reference NaN, result 0.3", "1 of 2 elements", "1 not finite"),
    ),
)
def nan_in_the_reference(wrong: bool) -> Told:
    """NaN is no licence; it equals NaN where that is asked for."""
    reference = np.array([np.nan, 1.0], np.float32)
    given = np.array([0.3 if wrong else np.nan, 1.0], np.float32)
    report = sim.compare(given, reference, nan_equal=not wrong)
    assert report.compared == 2 and report.non_finite == 1
    said = Told()
    said.findings += report.findings
    return said
