"""An example of each call about the core, its block, other cores, the scalar unit and debugging."""

from __future__ import annotations

from ascend_sim.instructions.example import Array, Example, vector


def _number(about: str, check: str, before: str = "") -> Example:
    """Return an example of a call that makes a number `n`, which goes into z[0]."""
    return vector(
        about,
        check,
        x=None,
        z=("int32", 8),
        before=f"asc.duplicate(c, 0, 8)\n{before}".strip(),
        after="c.set_value(0, n)",
    )


def _aside(about: str, before: str = "", after: str = "") -> Example:
    """Return an example of a call that changes no number."""
    return vector(
        about,
        "np.array_equal(z, x + 1)",
        before=f"asc.adds(c, a, 1.0, 128)\n{before}".strip(),
        after=after,
    )


NUMBERS = {
    "ascend_is_aic": _aside("if asc.ascend_is_aic():\n    asc.duplicate(c, 0.0, 128)"),
    "ascend_is_aiv": _aside("if asc.ascend_is_aiv():\n    asc.adds(c, a, 1.0, 128)"),
    "get_block_idx": _number("n = asc.get_block_idx()", "z[0] == 0"),
    "get_block_num": _number("n = asc.get_block_num()", "z[0] == 1"),
    "get_sub_block_idx": _number("n = asc.get_sub_block_idx()", "z[0] == 0"),
    "get_sub_block_num": _number("n = asc.get_sub_block_num()", "z[0] == 1"),
    "get_task_ratio": _number("n = asc.get_task_ratio()", "z[0] == 1"),
    "get_data_block_size_in_bytes": _number("n = asc.get_data_block_size_in_bytes()", "z[0] == 32"),
    "get_system_cycle": _number("n = asc.get_system_cycle()", "z[0] > 0"),
    "get_program_counter": _number("n = asc.get_program_counter()", "z[0] > 0"),
    "get_shape_size": _number(
        "n = asc.get_shape_size(shape)",
        "z[0] == 6",
        "shape = asc.ShapeInfo(asc.array(asc.uint32, [2, 3]))",
    ),
    "get_sort_len": _number("n = asc.get_sort_len(32)", "z[0] == 64"),
    "get_sort_offset": _number("n = asc.get_sort_offset(16)", "z[0] == 32"),
    "get_icache_preload_status": _number("n = asc.get_icache_preload_status()", "z[0] == 0"),
    "scalar_cast": _number(
        "n = asc.scalar_cast(2.5, asc.int32, asc.RoundMode.CAST_RINT)", "z[0] == 2"
    ),
    "scalar_count_leading_zero": _number("n = asc.scalar_count_leading_zero(1)", "z[0] == 63"),
    "scalar_get_count_of_value": _number("n = asc.scalar_get_count_of_value(7, 1)", "z[0] == 3"),
    "scalar_get_sff_value": _number("n = asc.scalar_get_sff_value(8, 1)", "z[0] == 3"),
    "count_bits_cnt_same_as_sign_bit": _number(
        "n = asc.count_bits_cnt_same_as_sign_bit(1)", "z[0] == 62"
    ),
}

DEBUGGING = {
    "printf": _aside('asc.printf("block %d", asc.get_block_idx())'),
    "dump_tensor": _aside("asc.dump_tensor(c, 7, 8)"),
    "dump_acc_chk_point": _aside("asc.dump_acc_chk_point(c, 7, 0, 8)"),
    "print_time_stamp": _aside("asc.print_time_stamp(1)"),
    "metrics_prof_start": _aside("asc.metrics_prof_start()", after="asc.metrics_prof_stop()"),
    "metrics_prof_stop": _aside("asc.metrics_prof_stop()", before="asc.metrics_prof_start()"),
    "trap": _aside("    asc.trap()", before="if asc.get_block_num() > 1:"),
    "icache_preload": _aside("asc.icache_preload(1)"),
    "data_cache_preload": _aside("asc.data_cache_preload(x_gm, 0)"),
    "set_mm_layout_transform": _aside("asc.set_mm_layout_transform(True)"),
    "set_sys_workspace": _aside("asc.set_sys_workspace(x)"),
    "get_sys_workspace": _aside(
        "workspace = asc.get_sys_workspace()", before="asc.set_sys_workspace(x)"
    ),
    "get_tpipe_ptr": vector(
        "pipe = asc.get_tpipe_ptr()",
        "(z == 3).all()",
        x=None,
        before="asc.TPipe()",
        after="asc.duplicate(c, 3.0, 128)",
    ),
}

_STORE = (
    "c = asc.LocalTensor(asc.float16, asc.TPosition.VECOUT, 0, 64)",
    "asc.duplicate(c, 3.0, 64)",
    "asc.set_flag(asc.HardEvent.V_MTE3, 0)",
    "asc.wait_flag(asc.HardEvent.V_MTE3, 0)",
    "asc.data_copy(z_gm[64 * asc.get_block_idx() :], c, 64)",
)


def _between(about: str, body: tuple[str, ...], kernel_type: str, blocks: int) -> Example:
    """Return an example of cores that wait for each other; each vector core writes 64 elements."""
    z = Array("z", "float16", 128, "np.zeros(128)")
    return Example((z,), body, about, "(z == 3).all()", kernel_type, blocks)


_HAND_OVER = (
    "if asc.ascend_is_aic():",
    "    asc.cross_core_set_flag(0, 2, asc.PipeID.PIPE_FIX)",
    "else:",
    "    asc.cross_core_wait_flag(0, 2, asc.PipeID.PIPE_S)",
    *[f"    {line}" for line in _STORE],
)

_WRITTEN = (
    "z_gm.set_value(0, 3)",
    "asc.data_cache_clean_and_invalid(asc.CacheLine.SINGLE_CACHE_LINE, z_gm, asc.DcciDst.CACHELINE_OUT)",
)

MEMORY = {
    "data_cache_clean_and_invalid": Example(
        (Array("z", "int32", 1, "np.zeros(1)"),), _WRITTEN, _WRITTEN[1], "z[0] == 3"
    ),
    "data_sync_barrier": _aside("asc.data_sync_barrier(asc.MemDsbT.ALL)"),
}

CORES = {
    "sync_all": _between("asc.sync_all()", (*_STORE, "asc.sync_all()"), "MIX_AIV_1_0", 2),
    "cross_core_set_flag": _between(_HAND_OVER[1].strip(), _HAND_OVER, "MIX_AIC_1_2", 1),
    "cross_core_wait_flag": _between(_HAND_OVER[3].strip(), _HAND_OVER, "MIX_AIC_1_2", 1),
}

_UB = "ub = asc.LocalTensor(asc.int32, asc.TPosition.VECCALC, 1024, 24)"
_ONE_AFTER_THE_OTHER = (
    _UB,
    "asc.wait_pre_block(w_gm, ub)",
    *_STORE,
    "asc.notify_next_block(w_gm, ub)",
)
_FROM_0_TO_1 = (
    _UB,
    "if asc.get_block_idx() == 1:",
    "    asc.ib_wait(w_gm, ub, 0, 0)",
    *_STORE,
    "if asc.get_block_idx() == 0:",
    "    asc.ib_set(w_gm, ub, 0, 0)",
)


def _through_gm(about: str, body: tuple[str, ...]) -> Example:
    """Return an example of two vector cores that synchronise by words of GM, which are zero at first."""
    arrays = (
        Array("w", "int32", 16, "np.zeros(16)"),
        Array("z", "float16", 128, "np.zeros(128)"),
    )
    return Example(arrays, body, about, "(z == 3).all()", "", 2)


WORDS = {
    "ib_set": _through_gm(_FROM_0_TO_1[-1].strip(), _FROM_0_TO_1),
    "ib_wait": _through_gm(_FROM_0_TO_1[2].strip(), _FROM_0_TO_1),
    "wait_pre_block": _through_gm(_ONE_AFTER_THE_OTHER[1], _ONE_AFTER_THE_OTHER),
    "notify_next_block": _through_gm(_ONE_AFTER_THE_OTHER[-1], _ONE_AFTER_THE_OTHER),
}

SYSTEM: dict[str, Example] = {**NUMBERS, **DEBUGGING, **MEMORY, **CORES, **WORDS}
"""By name."""
