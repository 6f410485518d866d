"""Every overload that pyasc documents for vector and copy calls is made: by position and by name, with the same effect.

Forms that say the same thing in other words (a count, a mask, a list of mask bits) must leave the same bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import read_pyasc
from test_overloads import DOCUMENTED, _parse

from ascend_sim import asc
from isa.address import GlobalAddress, GmBuffer
from isa.stream import EagerStream
from isa.types import DType, Space

UB_BYTES = 65536
ALL = (1 << 64) - 1
PLACES = {
    "dst": 0, "src": 8192, "src0": 8192, "src1": 16384, "sel_mask": 24576, "shared_tmp_buffer": 32768,
    "src_offset": 40960, "offset": 40960, "index": 40960, "concat": 8192, "tmp": 49152, "src1_pattern": 24576,
    "vdeq": 57344,
}  # fmt: skip
TYPES: dict[str, dict[str, DType]] = {
    "bitwise_and": {"": asc.int16}, "bitwise_or": {"": asc.int16}, "bitwise_not": {"": asc.int16},
    "shift_left": {"": asc.int32}, "shift_right": {"": asc.int32},
    "cast": {"dst": asc.half}, "compare": {"dst": asc.uint8}, "compare_scalar": {"dst": asc.uint8},
    "select": {"sel_mask": asc.uint8}, "gather": {"src_offset": asc.uint32},
    "gatherb": {"": asc.uint32}, "gather_mask": {"src1_pattern": asc.uint32},
    "transpose": {"": asc.half}, "sort32": {"src1": asc.uint32}, "sort": {"index": asc.uint32},
    "add_deq_relu": {"": asc.int32, "dst": asc.half}, "mul_cast": {"": asc.half, "dst": asc.int8},
    "add_relu_cast": {"": asc.half, "dst": asc.int8}, "sub_relu_cast": {"": asc.half, "dst": asc.int8},
    "cast_deq": {"": asc.int16, "dst": asc.int8}, "set_cmp_mask": {"": asc.uint8},
    "get_cmp_mask": {"": asc.uint8}, "set_deq_scale": {"": asc.uint64},
}  # fmt: skip
"""Element types by function and operand; "" stands for all others. float32 where nothing is said."""
MASKED = {asc.float32: 64, asc.int32: 64, asc.half: 128, asc.int16: 128, asc.uint32: 64}
VALUES: dict[str, Any] = {
    "count": 128, "repeat_times": 2, "repeat_time": 2, "repeat": 2, "is_set_mask": True, "scalar": 2,
    "src1_scalar": 1.5,
    "round_mode": asc.RoundMode.CAST_RINT, "cmp_mode": asc.CMPMODE.LT, "dst_rep_stride": 8, "src_rep_stride": 8,
    "src_blk_stride": 1, "dst_blk_stride": 1, "dst_block_stride": 1, "dst_repeat_stride": 8, "src_base": 0,
    "reduce_mode": False,
    "gather_mask_mode": asc.GatherMaskMode.DEFAULT, "order": asc.ReduceOrder.ORDER_VALUE_INDEX, "cal_index": True,
    "is_full_sort": True, "is_vec_deq": False, "half_block": True, "scale": 0.5, "offset": 3, "sign_mode": True,
    "dim_value": 1,
}  # fmt: skip
PARAMS: dict[str, Any] = {
    "BinaryRepeatParams": asc.BinaryRepeatParams(), "UnaryRepeatParams": asc.UnaryRepeatParams(),
    "CopyRepeatParams": asc.CopyRepeatParams(1, 1, 8, 8), "BrcbRepeatParams": asc.BrcbRepeatParams(1, 8),
    "GatherRepeatParams": asc.GatherRepeatParams(1, 8), "GatherMaskParams": asc.GatherMaskParams(1, 2, 8, 0),
    "DataCopyParams": asc.DataCopyParams(2, 8, 1, 0), "DataCopyEnhancedParams": asc.DataCopyEnhancedParams(),
    "DataCopyExtParams": asc.DataCopyExtParams(2, 60, 4, 0, 0), "DataCopyPadParams": asc.DataCopyPadParams(True, 0,
    1, 0),
    "DataCopyPadExtParams": asc.DataCopyPadExtParams(asc.float32, True, 0, 1, 9.0),
    "TransposeParamsExt": asc.TransposeParamsExt(1, 16, 16, 16, asc.TransposeType.TRANSPOSE_ND2ND_B16),
    "MrgSort4Info": asc.MrgSort4Info([32, 32], False, 3, 1),
    "VdeqInfo": asc.VdeqInfo([0.5] * 16, [1] * 16, [True] * 16),
}  # fmt: skip
NARROWING = {"repeat_params": asc.BinaryRepeatParams(1, 1, 1, 4, 8, 8), "repeat_times": 1}
OWN_VALUES: dict[str, dict[str, Any]] = {
    "block_reduce_sum": {"dst_rep_stride": 1}, "block_reduce_max": {"dst_rep_stride": 1},
    "block_reduce_min": {"dst_rep_stride": 1}, "pair_reduce_sum": {"dst_rep_stride": 1},
    "whole_reduce_sum": {"dst_rep_stride": 1}, "whole_reduce_max": {"dst_rep_stride": 1},
    "whole_reduce_min": {"dst_rep_stride": 1}, "repeat_reduce_sum": {"dst_rep_stride": 1},
    "cast": {"repeat_params": asc.UnaryRepeatParams(1, 1, 4, 8)},
    "add_deq_relu": {"repeat_params": asc.BinaryRepeatParams(1, 1, 1, 4, 8, 8)},
    "gatherb": {"repeat_times": 1}, "sort32": {"repeat_time": 4}, "sort": {"repeat_time": 4},
    "mrg_sort": {"valid_bit": 3, "repeat_time": 1, "element_count_list": [32, 32]},
    "mul_cast": NARROWING, "add_relu_cast": NARROWING, "sub_relu_cast": NARROWING,
    "cast_deq": {"repeat_params": asc.UnaryRepeatParams(1, 1, 8, 8), "repeat_times": 1},
}  # fmt: skip
SAME_IN_OTHER_WORDS = {
    "abs", "add", "add_relu", "adds", "axpy", "bitwise_and", "bitwise_not", "bitwise_or", "cast", "compare",
    "compare_scalar", "div", "duplicate", "exp", "fused_mul_add", "fused_mul_add_relu", "gather", "leaky_relu",
    "ln", "max",
    "maxs", "min", "mins", "mul", "mul_add_dst", "muls", "reciprocal", "relu", "rsqrt", "select", "shift_left",
    "shift_right",
    "sqrt", "sub", "sub_relu", "block_reduce_sum", "block_reduce_max", "block_reduce_min", "pair_reduce_sum",
    "whole_reduce_sum", "whole_reduce_max", "whole_reduce_min", "reduce_max", "reduce_min", "copy", "add_deq_relu",
}  # fmt: skip
"""Calls whose forms, with the values above, ask for the same thing."""
FUNCTIONS = SAME_IN_OTHER_WORDS | {
    "brcb", "cast_deq", "data_copy", "data_copy_pad", "gather_mask", "gatherb", "mul_cast", "add_relu_cast",
    "sub_relu_cast",
    "reduce_sum", "repeat_reduce_sum", "set_deq_scale", "sort", "sort32", "transpose", "set_cmp_mask", "get_cmp_mask",
}  # fmt: skip
SELECTED = {"sel_mask", "src1"}
"""What the forms of select that can do the same have; the others take bits or a scalar from a register."""
NO_ROUTE = {"nd2nz_params", "Nd2NzParams", "Nz2NdParamsFull", "DataCopyCO12DstParams"}
"""Words of forms that the vector core of the 910B does not have, or that the cube core's tests make."""


def _lines() -> list[str]:
    return [
        line
        for line in DOCUMENTED
        if line.partition("(")[0] in FUNCTIONS and not any(word in line for word in NO_ROUTE)
    ]


def _kinds(line: str) -> dict[str, str]:
    """Return the annotated types of a stored overload by parameter."""
    found = {}
    for part in line.partition("(")[2].rstrip(")").split(", "):
        name, _, kind = part.partition(" = ")[0].partition(": ")
        found[name] = kind
    return found


class Bench:
    """UB and GM of known bytes, and the arguments of calls on them."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.stream = EagerStream({Space.UB: UB_BYTES})
        self.ub = self.stream.memories[Space.UB]
        self.ub[:] = rng.uniform(0.25, 4, UB_BYTES // 4).astype(np.float32).view(np.uint8)
        self.gm = rng.uniform(0.25, 4, 4096).astype(np.float32)
        self.buffer = GmBuffer("x", self.gm.view(np.uint8), 1)

    def prepare(self, function: str) -> None:
        """Put operands in place that are no plain numbers."""
        if function in {"shift_left", "shift_right", "add_deq_relu", "cast_deq"}:
            self.ub[:] = np.tile(np.arange(64, dtype=np.int16), UB_BYTES // 128).view(np.uint8)
        if function in {"gather", "gatherb"}:
            offsets = np.arange(128, dtype=np.uint32)[::-1] * (32 if function == "gatherb" else 4)
            place = PLACES["src_offset"]
            self.ub[place : place + 512] = (offsets % 4096).astype(np.uint32).view(np.uint8)
        if function == "add_deq_relu":
            with self.stream:
                asc.set_deq_scale(0.5)
        if function == "cast_deq":
            with self.stream:
                asc.set_deq_scale(0.5, 3, True)
        if function == "select":
            with self.stream:
                asc.set_cmp_mask(asc.LocalTensor(asc.uint8, asc.TPosition.VECCALC, 24576, 16))

    def argument(self, function: str, name: str, kind: str, row: dict[str, str]) -> Any:
        """Return a value for a parameter of a stored overload."""
        types = TYPES.get(function, {})
        if kind in {"LocalTensor", "BaseTensor"} or (
            kind == "GlobalTensor" and name not in {"dst", "src"}
        ):
            dtype = types.get(name, types.get("", asc.float32))
            return asc.LocalTensor(dtype, asc.TPosition.VECCALC, PLACES[name], 8192 // dtype.size)
        if kind == "GlobalTensor":
            tensor = asc.GlobalTensor()
            tensor.set_global_buffer(GlobalAddress(self.buffer, asc.float32))
            return tensor
        own = OWN_VALUES.get(function, {})
        if name in own:
            return own[name]
        if name == "mask":
            lanes = MASKED[types.get("src0", types.get("", asc.float32))]
            if function in {"gather", "gather_mask"}:
                lanes = 64
            return [ALL, ALL if lanes == 128 else 0] if kind in {"List[int]", "list"} else lanes
        if name == "sel_mode" and "sel_mask" not in row:
            return asc.SelMode.VSEL_CMPMASK_SPR
        if name == "sel_mode":
            return (
                asc.SelMode.VSEL_TENSOR_SCALAR_MODE
                if row.get("src1") == "float"
                else asc.SelMode.VSEL_TENSOR_TENSOR_MODE
            )
        if name == "src1_pattern":
            return 1
        if name in {"slice_list1", "slice_list2"}:
            return [asc.SliceInfo(0, 31, 0, 2, 64)]
        if name == "src1":
            return 1.25
        if name == "repeat_times" and types.get("") is asc.int16:
            return 1
        return PARAMS[kind] if kind in PARAMS else VALUES[name]

    def bytes(self) -> bytes:
        """Return all of UB and GM."""
        return self.ub.tobytes() + self.gm.tobytes()


def _effect(line: str, *, named: bool) -> bytes:
    name, given, _ = _parse(line)
    kinds = _kinds(line)
    bench = Bench()
    bench.prepare(name)
    values = {word: bench.argument(name, word, kinds[word], kinds) for word, _ in given}
    before = bench.bytes()
    function: Any = getattr(asc, name)
    with bench.stream:
        if named:
            function(**values)
        else:
            function(*values.values())
    after = bench.bytes()
    registers_only = name in {"set_deq_scale", "set_cmp_mask"} or "dst" not in kinds
    assert registers_only or after != before, "nothing happened"
    return after


@pytest.mark.parametrize("line", _lines())
def test_by_position_and_by_name(line: str) -> None:
    assert _effect(line, named=False) == _effect(line, named=True)


@pytest.mark.parametrize("function", sorted(SAME_IN_OTHER_WORDS))
def test_all_forms_do_the_same(function: str) -> None:
    groups: dict[str, dict[str, bytes]] = {}
    for line in _lines():
        name, given, _ = _parse(line)
        words = {word for word, _ in given}
        if (
            name != function
            or "dst" not in words
            or (function == "select" and not words >= SELECTED)
        ):
            continue
        source = "scalar" if "src1: float" in line else "tensor"
        groups.setdefault(source, {})[line] = _effect(line, named=True)
    assert groups
    for effects in groups.values():
        assert len(set(effects.values())) == 1, list(effects)


def test_the_calls_of_the_programs_are_all_made() -> None:
    import re
    from pathlib import Path

    called = set()
    for program in (Path(__file__).parent / "programs").glob("*.py"):
        called |= set(re.findall(r"asc\.([a-z_0-9]+)\(", program.read_text(encoding="utf-8")))
    stored = {line.partition("(")[0] for line in read_pyasc.stored()["overloads"]}
    vector = {name for name in called & stored if name not in ELSEWHERE}
    assert vector - FUNCTIONS == set()


ELSEWHERE = {
    # flags, masks, system calls: one form each, made by the programs themselves
    "set_flag", "wait_flag", "pipe_barrier", "set_mask_norm", "set_mask_count", "set_vector_mask", "reset_mask",
    "range",
    "static_range", "get_block_idx", "get_block_num", "printf", "dump_tensor", "dump_acc_chk_point",
    "print_time_stamp",
    "metrics_prof_start", "metrics_prof_stop", "scalar_count_leading_zero", "set_atomic_add", "set_atomic_none",
    "array",
    # numbers alone: tests/surface/test_values.py
    "ceildiv", "property",
    # made with lists and structures, in tests of their own
    "trans_data_to_5hd", "mrg_sort",
    # the cube core's, in tests/isa_cube
    "mmad", "load_data", "fixpipe",
}  # fmt: skip
