"""An example of each instruction of the matrix side, and of what is no instruction of one pipe."""

from __future__ import annotations

from ascend_sim.instructions.example import Array, Example, cube, vector

_HALF = "np.arange(128) % 9 - 4"
H = ("float16", 128, _HALF)


# ---- registers, flags, masks ------------------------------------------------------------------


def _masked(about: str, before: str, work: str, check: str, after: str = "") -> Example:
    """Return a masked `adds` into a `c` of zeros."""
    return vector(
        about,
        check,
        x=H,
        before=f"asc.duplicate(c, 0.0, 128)\n{before}".strip(),
        after=f"{work}\n{after}".strip(),
    )


_ADDS = "asc.adds(c, a, 1.0, {mask}, 1, asc.UnaryRepeatParams(1, 1, 8, 8), False)"
_FIRST_16 = "np.array_equal(z, np.where(np.arange(128) < 16, x + 1, 0))"
_ALL = "np.array_equal(z, x + 1)"

_NORMAL = "dtype=asc.float16, mode=asc.MaskMode.NORMAL"
_COUNTER = "dtype=asc.float16, mode=asc.MaskMode.COUNTER"
_WORK = _ADDS.format(mask=0)

MASKS: dict[str, Example] = {
    "set_vector_mask": _masked(
        f"asc.set_vector_mask(0, 65535, {_NORMAL})", "", _WORK, _FIRST_16, "asc.reset_mask()"
    ),
    "reset_mask": _masked("asc.reset_mask()", f"asc.set_vector_mask(0, 1, {_NORMAL})", _WORK, _ALL),
    "set_mask_count": _masked(
        "asc.set_mask_count()",
        "",
        f"asc.set_vector_mask(16, {_COUNTER})\n{_WORK}",
        _FIRST_16,
        "asc.set_mask_norm()\nasc.reset_mask()",
    ),
    "set_mask_norm": _masked("asc.set_mask_norm()", "asc.set_mask_count()", _WORK, _ALL),
    "init_soc_state": vector("asc.init_soc_state()", _ALL, x=H, after="asc.adds(c, a, 1.0, 128)"),
}

FLAGS: dict[str, Example] = {
    "set_flag": vector(
        "asc.set_flag(asc.HardEvent.MTE2_V, 0)", _ALL, x=H, after="asc.adds(c, a, 1.0, 128)"
    ),
    "wait_flag": vector(
        "asc.wait_flag(asc.HardEvent.MTE2_V, 0)", _ALL, x=H, after="asc.adds(c, a, 1.0, 128)"
    ),
    "pipe_barrier": vector(
        "asc.pipe_barrier(asc.PipeID.PIPE_V)",
        "np.array_equal(z, 2 * (x + 1))",
        x=H,
        before="asc.adds(c, a, 1.0, 128)",
        after="asc.muls(c, c, 2.0, 128)",
    ),
}


def _atomic(name: str, check: str) -> Example:
    return vector(
        f"asc.{name}(asc.float16)",
        check,
        x=H,
        z=("float16", 128, "np.ones(128)"),
        before="asc.adds(c, a, 0.0, 128)",
        store="asc.data_copy(z_gm, c, 128)\nasc.set_atomic_none()",
    )


STORES: dict[str, Example] = {
    "set_atomic_add": _atomic("set_atomic_add", "np.array_equal(z, x + 1)"),
    "set_atomic_max": _atomic("set_atomic_max", "np.array_equal(z, np.maximum(x, 1))"),
    "set_atomic_min": _atomic("set_atomic_min", "np.array_equal(z, np.minimum(x, 1))"),
    "set_atomic_type": vector(
        "asc.set_atomic_type(asc.float16)",
        "np.array_equal(z, x + 1)",
        x=H,
        z=("float16", 128, "np.ones(128)"),
        before="asc.set_atomic_add(asc.float32)\nasc.adds(c, a, 0.0, 128)",
        store="asc.data_copy(z_gm, c, 128)\nasc.set_atomic_none()",
    ),
    "set_atomic_none": vector(
        "asc.set_atomic_none()",
        "np.array_equal(z, x)",
        x=H,
        z=("float16", 128, "np.ones(128)"),
        before="asc.set_atomic_add(asc.float16)",
        after="asc.adds(c, a, 0.0, 128)",
    ),
    "set_store_atomic_config": vector(
        "asc.set_store_atomic_config(asc.AtomicDtype.ATOMIC_F16, asc.AtomicOp.ATOMIC_SUM)",
        "np.array_equal(z, x + 1)",
        x=H,
        z=("float16", 128, "np.ones(128)"),
        before="asc.adds(c, a, 0.0, 128)",
        store="asc.data_copy(z_gm, c, 128)\nasc.set_atomic_none()",
    ),
    "get_store_atomic_config": vector(
        "kind, operation = asc.get_store_atomic_config()",
        "z[0] == 0",  # AtomicDtype.ATOMIC_NONE
        x=None,
        z=("int32", 8),
        before="asc.duplicate(c, 5, 8)",
        after="c.set_value(0, kind)",
    ),
    "set_pad_value": vector(
        "asc.set_pad_value(9.0)",
        "np.array_equal(z, np.where(np.arange(16) < 5, x, 9))",
        x=("float16", 16),
        z=("float16", 16),
        after=(
            "asc.data_copy_pad(c, x_gm, asc.DataCopyExtParams(1, 10, 0, 0, 0), "
            "asc.DataCopyPadExtParams(asc.float16, False, 0, 11, 0.0))\n"
            "asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)\nasc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)"
        ),
    ),
}


# ---- the matrix side ----------------------------------------------------------------------------

_A = Array("x", "float16", 1024, "np.arange(1024) % 5 - 2")
_B = Array("y", "float16", 512, "np.arange(512) % 3 - 1")
_C = Array("z", "float32", 512, "np.zeros(512)")
_PRODUCT = "np.array_equal(z.reshape(32, 16), x.reshape(32, 32).astype(float) @ y.reshape(32, 16))"
_MATMUL = """
    a_l1 = asc.LocalTensor(asc.float16, asc.TPosition.A1, 0, 1024)
    b_l1 = asc.LocalTensor(asc.float16, asc.TPosition.B1, 2048, 512)
    a = asc.LocalTensor(asc.float16, asc.TPosition.A2, 0, 1024)
    b = asc.LocalTensor(asc.float16, asc.TPosition.B2, 0, 512)
    c = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 512)
    asc.data_copy(a_l1, x_gm, intri_params=asc.Nd2NzParams(1, 32, 32, 0, 32, 32, 1, 0))
    asc.data_copy(b_l1, y_gm, intri_params=asc.Nd2NzParams(1, 32, 16, 0, 16, 32, 1, 0))
    asc.set_flag(asc.HardEvent.MTE2_MTE1, 0)
    asc.wait_flag(asc.HardEvent.MTE2_MTE1, 0)
    asc.load_data(a, a_l1, asc.LoadData2DParams(0, 2, 2, 0, 0, False, 0))
    asc.load_data(a[1024 // 2:], a_l1, asc.LoadData2DParams(1, 2, 2, 0, 0, False, 0))
    asc.load_data(b, b_l1, asc.LoadData2DParams(0, 2, 1, 0, 0, True, 0))
    asc.set_flag(asc.HardEvent.MTE1_M, 0)
    asc.wait_flag(asc.HardEvent.MTE1_M, 0)
    asc.mmad(c, a, b, asc.MmadParams(32, 16, 32, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))
    asc.set_flag(asc.HardEvent.M_FIX, 0)
    asc.wait_flag(asc.HardEvent.M_FIX, 0)
    asc.fixpipe(z_gm, c, asc.FixpipeParamsV220(16, 32, 32, 16, False))
"""


def _line(text: str, begin: str) -> str:
    """Return the first line of a body that begins so."""
    return next(line.strip() for line in text.splitlines() if line.strip().startswith(begin))


def _matmul(begin: str, text: str = _MATMUL, check: str = _PRODUCT) -> Example:
    return cube(_line(text, begin), check, (_A, _B, _C), text)


_WITH_TRANSPOSE = _MATMUL.replace(
    _line(_MATMUL, "asc.load_data(b, b_l1"),
    "asc.load_data_with_transpose(b, b_l1, asc.LoadData2dTransposeParams(0, 2, 1, 0, 0, 0))",
)
_FILLED = _MATMUL.replace(
    _line(_MATMUL, "asc.load_data(b, b_l1"),
    "asc.init_const_value(b, asc.InitConstValueParams(1, 1, 0, 1.0))\n"
    "    asc.init_const_value(b[256:], asc.InitConstValueParams(1, 1, 0, 1.0))",
).replace(_line(_MATMUL, "asc.data_copy(b_l1"), "asc.data_copy(b_l1, y_gm, 512)")
_SET_FIRST = "asc.{0}\n    a_l1 ="


def _with(first: str) -> Example:
    text = _MATMUL.replace("a_l1 =", _SET_FIRST.format(first), 1)
    return _matmul(f"asc.{first.partition('(')[0]}", text)


MATRIX: dict[str, Example] = {
    "mmad": _matmul("asc.mmad"),
    "load_data": _matmul("asc.load_data(a, "),
    "load_data_with_transpose": _matmul("asc.load_data_with_transpose", _WITH_TRANSPOSE),
    "fixpipe": _matmul("asc.fixpipe"),
    "init_const_value": _matmul(
        "asc.init_const_value(b,",
        _FILLED,
        "np.array_equal(z.reshape(32, 16), np.repeat(x.reshape(32, 32).sum(1)[:, None], 16, 1))",
    ),
    "set_hf32_mode": _with("set_hf32_mode(False)"),
    "set_hf32_trans_mode": _with("set_hf32_trans_mode(False)"),
    "set_load_data_boundary": _with("set_load_data_boundary(0)"),
    "set_load_data_padding_value": _with("set_load_data_padding_value(0)"),
    "set_load_data_repeat": _with("set_load_data_repeat(asc.LoadDataRepeatParam(0, 1, 0))"),
    "set_fix_pipe_pre_quant_flag": _with("set_fix_pipe_pre_quant_flag(0)"),
}


OTHER = {**MASKS, **FLAGS, **STORES, **MATRIX}
"""By name."""
