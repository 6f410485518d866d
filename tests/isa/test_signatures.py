"""Names, order and defaults of arguments are pyasc's (release 1.1.1), so that a kernel runs here as it stands there.

The tables hold its signatures as facts; every overload binds by position and by name. Left out: the slice forms of
data_copy and the ND2NZ form of data_copy_pad, which the 910B's vector cores do not have.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import Any

import pytest

from isa import move, params, sync
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import (
    CacheMode,
    HardEvent,
    MaskMode,
    PipeID,
    RoundMode,
    TPosition,
)
from isa.vector import arithmetic, fill, shift

TWO = "add sub mul div max min bitwise_and bitwise_or add_relu sub_relu mul_add_dst fused_mul_add fused_mul_add_relu"
SCALAR = "adds muls maxs mins leaky_relu shift_left axpy"
ONE = "abs exp ln reciprocal sqrt rsqrt relu bitwise_not"
COUNT = "count is_set_mask=True"
MASKED = "mask repeat_times repeat_params is_set_mask=True"

OVERLOADS: list[tuple[Any, str, str]] = [
    *[(arithmetic, name, f"dst src0 src1 {rest}") for name in TWO.split() for rest in (COUNT, MASKED)],
    *[(arithmetic, name, f"dst src scalar {rest}") for name in SCALAR.split() for rest in (COUNT, MASKED)],
    *[(shift, "shift_right", f"dst src scalar {rest}") for rest in (COUNT, MASKED)],
    *[(arithmetic, name, f"dst src {rest}") for name in ONE.split() for rest in ("count", MASKED)],
    (fill, "cast", "dst src round_mode count"),
    (fill, "cast", f"dst src round_mode {MASKED}"),
    (fill, "duplicate", "dst scalar count"),
    (fill, "duplicate", "dst scalar mask repeat_times dst_block_stride dst_repeat_stride is_set_mask=True"),
    (fill, "copy", "dst src mask repeat_time repeat_params is_set_mask=True"),
    (move, "data_copy", "dst src count"),
    (move, "data_copy", "dst src repeat_params"),
    (move, "data_copy", "dst src intri_params enhanced_params"),
    (move, "data_copy", "dst src intri_params"),
    (move, "data_copy_pad", "dst src data_copy_params pad_params"),
    (move, "data_copy_pad", "dst src data_copy_params"),
    (sync, "set_flag", "event event_id=0"),
    (sync, "wait_flag", "event event_id=0"),
    (sync, "pipe_barrier", "pipe"),
    (sync, "set_mask_count", ""),
    (sync, "set_mask_norm", ""),
    (sync, "reset_mask", ""),
    (sync, "init_soc_state", ""),
    (sync, "set_pad_value", "padding_value pos=TPosition.MAX"),
    (sync, "set_vector_mask", "mask_high mask_low dtype mode"),
    (GlobalTensor, "set_global_buffer", "self buffer buffer_size=None"),
    (GlobalTensor, "get_value", "self offset"),
    (GlobalTensor, "set_value", "self offset value"),
    (GlobalTensor, "get_size", "self"),
    (GlobalTensor, "get_phy_addr", "self offset=0"),
    (GlobalTensor, "set_l2_cache_hint", "self mode=CacheMode.CACHE_MODE_NORMAL rw_mode"),
    (LocalTensor, "__init__", "self dtype pos=TPosition.VECIN addr=0 tile_size=0"),
    (LocalTensor, "get_value", "self index"),
    (LocalTensor, "set_value", "self index value"),
    (LocalTensor, "get_size", "self"),
    (LocalTensor, "get_length", "self"),
    (LocalTensor, "get_position", "self"),
    (LocalTensor, "get_phy_addr", "self offset=0"),
    (LocalTensor, "get_user_tag", "self"),
    (LocalTensor, "set_user_tag", "self tag=0"),
    (LocalTensor, "set_size", "self size=0"),
    (LocalTensor, "set_buffer_len", "self data_len"),
    (LocalTensor, "set_addr_with_offset", "self src offset"),
    (LocalTensor, "reinterpret_cast", "self dtype"),
]  # fmt: skip

STRUCTURES = {
    "BinaryRepeatParams": "dst_blk_stride=1 src0_blk_stride=1 src1_blk_stride=1 dst_rep_stride=8 src0_rep_stride=8 "
    "src1_rep_stride=8",
    "UnaryRepeatParams": "dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8",
    "CopyRepeatParams": "dst_stride=0 src_stride=0 dst_repeat_size=0 src_repeat_size=0",
    "DataCopyParams": "block_count=1 block_len=0 src_stride=0 dst_stride=0",
    "DataCopyExtParams": "block_count=1 block_len=0 src_stride=0 dst_stride=0 rsv=0",
    "DataCopyPadParams": "is_pad=False left_padding=0 right_padding=0 padding_value=0",
    "DataCopyPadExtParams": "dtype is_pad=False left_padding=0 right_padding=0 padding_value=0",
}

VALUES = {
    HardEvent: "MTE2_MTE1 MTE1_MTE2 MTE1_M M_MTE1 MTE2_V V_MTE2 MTE3_V V_MTE3 M_V V_M V_V MTE3_MTE1 MTE1_MTE3 MTE1_V "
    "MTE2_M M_MTE2 V_MTE1 M_FIX FIX_M MTE3_MTE2 MTE2_MTE3 S_V V_S S_MTE2 MTE2_S S_MTE3 MTE3_S MTE2_FIX FIX_MTE2 FIX_S "
    "M_S FIX_MTE3 MTE1_FIX FIX_MTE1 FIX_FIX",
    RoundMode: "CAST_NONE CAST_RINT CAST_FLOOR CAST_CEIL CAST_ROUND CAST_TRUNC CAST_ODD",
    MaskMode: "NORMAL COUNTER",
    TPosition: "GM A1 A2 B1 B2 C1 C2 CO1 CO2 VECIN VECOUT VECCALC MAX",
}


def _parameters(text: str) -> list[tuple[str, str | None]]:
    found = []
    for word in text.split():
        name, _, default = word.partition("=")
        found.append((name, default or None))
    return found


@pytest.mark.parametrize(
    ("place", "name", "overload"), OVERLOADS, ids=lambda part: part if isinstance(part, str) else ""
)
def test_overload(place: Any, name: str, overload: str) -> None:
    signature = inspect.signature(getattr(place, name))
    given = _parameters(overload)
    signature.bind(*[object()] * len(given))
    signature.bind(**{word: object() for word, _ in given})
    signature.bind(
        **{word: object() for word, default in given if default is None and word != "rw_mode"}
    )
    for word, default in given:
        if default is not None:
            assert signature.parameters[word].default == eval(default), word


@pytest.mark.parametrize("name", sorted(STRUCTURES))
def test_structure(name: str) -> None:
    structure = getattr(params, name)
    given = _parameters(STRUCTURES[name])
    assert [field.name for field in fields(structure)] == [word for word, _ in given]
    for field, (_, default) in zip(fields(structure), given, strict=True):
        assert field.default is not MISSING
        if default is not None:
            assert field.default == eval(default)


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_enumeration(kind: Any) -> None:
    assert [kind[name].value for name in VALUES[kind].split()] == list(
        range(len(VALUES[kind].split()))
    )


def test_enumerations_with_gaps() -> None:
    assert {pipe.name: pipe.value for pipe in PipeID} == {
        "PIPE_S": 0, "PIPE_V": 1, "PIPE_M": 2, "PIPE_MTE1": 3, "PIPE_MTE2": 4, "PIPE_MTE3": 5, "PIPE_ALL": 6,
        "PIPE_MTE4": 7, "PIPE_MTE5": 8, "PIPE_V2": 9, "PIPE_FIX": 10,
    }  # fmt: skip
    assert [mode.value for mode in CacheMode] == [0, 1, 2, 4]
