"""Synchronisation between cores: cross-core flags and sync_all."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_sim.cross_core import (
    SYNC_AIC,
    SYNC_AIC_TO_AIV,
    SYNC_AIV,
    SYNC_AIV_TO_AIC,
    USER_IDS,
)
from ascend_sim.lang.queues import program
from ascend_sim.lang.soft_sync import soft_sync_all
from ascend_sim.placement import has_cross_core_flags
from isa.faults import fault
from isa.types import PIPE_OF_ID, PIPES_OF, CoreKind, Pipe, PipeID

_MODES = (0, 1, 2)


def _check_id(name: str, flag_id: Any) -> int:
    if (
        isinstance(flag_id, bool)
        or not isinstance(flag_id, (int, np.integer))
        or not 0 <= flag_id < USER_IDS
    ):
        fault(
            "ILLEGAL_PARAM",
            "cross-core-flag-id",
            f"{name}: flag_id is {flag_id!r}; kernels have ids 0 to {USER_IDS - 1}, the four after them belong to "
            f"sync_all",
        )
    return int(flag_id)


def _check_type(name: str) -> None:
    kernel_type = program().session.kernel_type
    if not has_cross_core_flags(kernel_type):
        fault(
            "HOST",
            "cross-core-kernel-type",
            f"{name}: flags between cores work in mix kernels only, this one is {kernel_type.name}. Launch it with "
            f"kernel_type MIX_AIC_1_2, MIX_AIC_1_1, MIX_AIC_1_0 or MIX_AIV_1_0",
        )


def cross_core_set_flag(flag_id: int, mode_id: int, pipe: PipeID) -> None:
    """Count a flag up on its receivers when all earlier work of a pipe is complete.

    Mode 0: all cores of this kind, 1: the vector cores of this AI Core, 2: from the cube core to its vector cores,
    or from both vector cores to their cube core.
    """
    stream = program()
    flag_id = _check_id("cross_core_set_flag", flag_id)
    if mode_id not in _MODES:
        fault(
            "ILLEGAL_PARAM",
            "cross-core-mode",
            f"cross_core_set_flag: mode_id is {mode_id!r}, it is 0, 1 or 2",
        )
    _check_type("cross_core_set_flag")
    target = PIPE_OF_ID.get(pipe) if isinstance(pipe, PipeID) else None
    if target is None or target is Pipe.S:
        fault(
            "ILLEGAL_PARAM",
            "cross-core-pipe",
            f"cross_core_set_flag: pipe must be one pipe other than PIPE_S, got {pipe!r}",
        )
    if target not in PIPES_OF[stream.core_kind]:
        return  # the pipe of the other core type: nothing happens here
    stream.cross_set(flag_id, mode_id, target)


def cross_core_wait_flag(flag_id: int, mode_id: int = 0, pipe: PipeID = PipeID.PIPE_S) -> None:
    """Stop the scalar unit until the flag's counter is above zero, then take one from it."""
    stream = program()
    flag_id = _check_id("cross_core_wait_flag", flag_id)
    _check_type("cross_core_wait_flag")
    stream.cross_wait(flag_id)


def sync_all(
    gm_workspace: Any = None,
    ub_workspace: Any = None,
    used_cores: int = 0,
    is_aiv_only: bool = True,
) -> None:
    """Wait until every core of the kernel has come here: all vector cores, or with `is_aiv_only` False all cores.

    `sync_all(gm_workspace, ub_workspace, used_cores)` does it through GM (a zeroed word of 32 bytes a core), for vector
    cores, of which it takes the first `used_cores`; without workspaces the hardware does it. `sync_all(False)` is
    `is_aiv_only` alone.
    """
    stream = program()
    if isinstance(gm_workspace, bool):
        is_aiv_only, gm_workspace = gm_workspace, None
    if gm_workspace is not None or ub_workspace is not None:
        if not is_aiv_only:
            fault(
                "ILLEGAL_PARAM",
                "form",
                "sync_all through GM is for vector cores alone; sync_all(False) without workspaces joins all cores",
            )
        soft_sync_all(gm_workspace, ub_workspace, used_cores)
        return
    stream.pipe_barrier(None)
    if is_aiv_only:
        if stream.core_kind is CoreKind.AIV:
            stream.cross_set(SYNC_AIV, 0, Pipe.MTE3)
            stream.cross_wait(SYNC_AIV)
    elif stream.core_kind is CoreKind.AIV:
        stream.cross_set(SYNC_AIV_TO_AIC, 2, Pipe.MTE3)
        stream.cross_wait(SYNC_AIC_TO_AIV)
    else:
        stream.cross_wait(SYNC_AIV_TO_AIC)
        stream.cross_set(SYNC_AIC, 0, Pipe.FIX)
        stream.cross_wait(SYNC_AIC)
        stream.cross_set(SYNC_AIC_TO_AIV, 2, Pipe.MTE3)
