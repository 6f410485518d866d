"""The rules, one by one: what a broken one says. Wording is a part of the interface: it is read aloud once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from isa_kit import function, gm, stream, ub

from isa.faults import IsaFault
from isa.move import data_copy, data_copy_pad
from isa.params import (
    BinaryRepeatParams,
    CopyRepeatParams,
    DataCopyExtParams,
    DataCopyPadExtParams,
    DataCopyParams,
    UnaryRepeatParams,
)
from isa.stream import EagerStream
from isa.sync import (
    pipe_barrier,
    set_flag,
    set_mask_count,
    set_pad_value,
    set_vector_mask,
    wait_flag,
)
from isa.tensor import GlobalAddress, GlobalTensor, GmBuffer, LocalTensor
from isa.types import (
    CoreKind,
    HardEvent,
    MaskMode,
    PipeID,
    RoundMode,
    Space,
    TPosition,
    bfloat16,
    float16,
    float32,
    int8,
    int16,
    int32,
    int64,
)
from isa.vector.arithmetic import add, adds, axpy, exp, muls, shift_left
from isa.vector.fill import cast, copy, duplicate

Act = Callable[[], None]
H1, H2, H3 = (ub(float16, 2048 * i, 512, name) for i, name in enumerate("abc"))
F1, F2 = (ub(float32, 2048 * i, 256, name) for i, name in enumerate("fg"))
I1, I2 = (ub(int16, 2048 * i, 512, name) for i, name in enumerate("ij"))
UNARY, BINARY = UnaryRepeatParams(), BinaryRepeatParams()
X = np.arange(512, dtype=np.float16)

RULES: dict[str, tuple[str, str, str, Act]] = {
    # what a vector operand must be
    "not 32-byte aligned": (
        "ALIGNMENT", "misaligned-operand",
        r"^add: src1 b starts at UB byte 2050, which is 2 past a 32-byte border\..* one: 16 elements of float16$",
        lambda: add(H1, H1, H2[1:], 16),
    ),
    "bfloat16 arithmetic": (
        "ILLEGAL_PARAM", "dtype-not-supported",
        r"^exp: dst w is bfloat16, the 910B takes float16, float32\. bfloat16 has no arithmetic.*cast to float32",
        lambda: exp(ub(bfloat16, 0, 64, "w"), ub(bfloat16, 0, 64), 64),
    ),
    "wrong type": (
        "ILLEGAL_PARAM", "dtype-not-supported",
        r"^shift_left: dst a is float16, the 910B takes int16, uint16, int32, uint32$",
        lambda: shift_left(H1, H2, 1, 16),
    ),
    "unequal types": (
        "ILLEGAL_PARAM", "dtype-mismatch",
        r"^add: src1 f is float32, dst a is float16\. All operands need one type: use cast, or reinterpret_cast",
        lambda: add(H1, H2, F1, 16),
    ),
    "unequal types where one pair is allowed": (
        "ILLEGAL_PARAM", "dtype-mismatch",
        r"need one type, or float16 sources and a float32 dst: use cast",
        lambda: axpy(H1, F1, 1, 16),
    ),
    "wrong position": (
        "ILLEGAL_PARAM", "wrong-position",
        r"^add: dst t is at A1, which is L1\. .* VECIN, VECOUT or VECCALC \(UB\)$",
        lambda: add(_named(LocalTensor(float16, TPosition.A1, 0, 64), "t"), H1, H2, 16),
    ),
    "a GlobalTensor as operand": (
        "ILLEGAL_PARAM", "wrong-operand",
        r"^add: src0 must be a LocalTensor, got GlobalTensor\. .* copy the data in first$",
        lambda: add(H1, gm(X), H2, 16),
    ),
    # bounds
    "out of the tensor": (
        "BOUNDS", "tensor-out-of-bounds",
        r"^add: dst a touches 1040 bytes from its start, the tensor has 1024 \(512 elements of float16\): 16 bytes",
        lambda: add(H1, H2, H3, 520),
    ),
    "out of the tensor by strides": (
        "BOUNDS", "tensor-out-of-bounds",
        r"^muls: src b touches 1280 bytes .*: 256 bytes too many$",
        lambda: muls(H1, H2, 2, 128, 3, UnaryRepeatParams(1, 1, 8, 16)),
    ),
    "out of the memory": (
        "BOUNDS", "memory-out-of-bounds",
        r"^exp: src UB\[7936:9984\] touches UB bytes 7936 to 8448; UB has 8192 bytes, so 256 are outside$",
        lambda: exp(H1, ub(float16, 7936, 1024), 256),
    ),
    "out of the GM allocation": (
        "BOUNDS", "gm-out-of-bounds",
        r"^data_copy: src x touches bytes 992 to 1056 of a GM allocation of 1024 bytes: 32 bytes outside\. Shorten",
        lambda: data_copy(H1, gm(X)[496:], 32),
    ),
    "out of the window on GM": (
        "BOUNDS", "tensor-out-of-bounds",
        r"^data_copy: src x touches 64 bytes from its start, the tensor has 32 \(16 elements of float16\)",
        lambda: data_copy(H1, gm(X)[0:16], 32),
    ),
    "block_len given in elements": (
        "BOUNDS", "tensor-out-of-bounds",
        r"here 64 blocks = 1024 elements of float16; if 64 elements were meant, block_len is 4$",
        lambda: data_copy(H1, gm(X), DataCopyParams(1, 64)),
    ),
    # repeats, strides, masks
    "repeat beyond 255": (
        "ILLEGAL_PARAM", "repeat-times-limit",
        r"^add: repeat_times is 256, allowed is 0 to 255: .* 256 wraps to 0 and nothing happens\. Split the call$",
        lambda: add(H1, H2, H3, 128, 256, BINARY),
    ),
    "stride beyond 255": (
        "ILLEGAL_PARAM", "src-rep-stride-limit",
        r"^exp: src_rep_stride is 256, allowed is 0 to 255$",
        lambda: exp(H1, H2, 128, 1, UnaryRepeatParams(1, 1, 8, 256)),
    ),
    "negative stride": (
        "ILLEGAL_PARAM", "dst-blk-stride-limit",
        r"^exp: dst_blk_stride is -1, allowed is 0 to 255$",
        lambda: exp(H1, H2, 128, 1, UnaryRepeatParams(-1)),
    ),
    "negative count": (
        "ILLEGAL_PARAM", "count-limit",
        r"^exp: count is -1, allowed is at least 0$",
        lambda: exp(H1, H2, -1),
    ),
    "dst block stride 0": (
        "ILLEGAL_PARAM", "dst-block-stride-zero",
        r"^exp: dst_blk_stride 0 writes all 8 blocks of a repeat to one place; it must be at least 1$",
        lambda: exp(H1, H2, 128, 1, UnaryRepeatParams(0)),
    ),
    "dst repeat stride 0 of an instruction that never gathers": (
        "ILLEGAL_PARAM", "dst-repeat-stride-zero",
        r"^exp: dst_rep_stride 0 makes every repeat write the same bytes\. Only add, sub, mul, max, min, add_relu",
        lambda: exp(H1, H2, 128, 2, UnaryRepeatParams(1, 1, 0, 8)),
    ),
    "dst repeat stride 0 without src1 being dst": (
        "ILLEGAL_PARAM", "dst-repeat-stride-zero",
        r"^add: dst_rep_stride 0 .* on float16, int32, float32 only, with src1 the same tensor as dst and src1_rep_",
        lambda: add(H1, H2, H3, 128, 2, BinaryRepeatParams(1, 1, 1, 0, 8, 0)),
    ),
    "dst repeat stride 0 on int16": (
        "ILLEGAL_PARAM", "dst-repeat-stride-zero",
        r"on float16, int32, float32 only",
        lambda: add(I1, I2, I1, 128, 2, BinaryRepeatParams(1, 1, 1, 0, 8, 0)),
    ),
    "mask list too short": (
        "ILLEGAL_PARAM", "mask-length",
        r"^exp: a bit mask for 128 lanes has 2 words of 64 bits, low lanes first, got 1$",
        lambda: exp(H1, H2, [1], 1, UNARY),
    ),
    "mask list too long": (
        "ILLEGAL_PARAM", "mask-length",
        r"^exp: a bit mask for 64 lanes has 1 words of 64 bits, low lanes first, got 3$",
        lambda: exp(F1, F2, [1, 2, 3], 1, UNARY),
    ),
    "mask word too wide": (
        "ILLEGAL_PARAM", "mask-word-limit",
        r"^exp: mask_word is 18446744073709551616, allowed is 0 to 18446744073709551615$",
        lambda: exp(F1, F2, [1 << 64], 1, UNARY),
    ),
    "a bit mask in counter mode": (
        "ILLEGAL_PARAM", "form",
        r"^exp: after set_mask_count the mask is an element count, got a list; set_mask_norm",
        lambda: _counting(lambda: exp(F1, F2, [1], 1, UNARY)),
    ),
    # forms
    "no count and no mask": (
        "ILLEGAL_PARAM", "form", r"^exp needs count, or mask with repeat_times and strides",
        lambda: exp(H1, H2),
    ),
    "count and mask": (
        "ILLEGAL_PARAM", "form", r"^exp takes count, or mask .*, not both; given: count=16, mask=16$",
        lambda: exp(H1, H2, 16, mask=16),
    ),
    "mask alone": (
        "ILLEGAL_PARAM", "form", r"^exp got a mask without repeat_times and repeat_params",
        lambda: exp(H1, H2, mask=16),
    ),
    "mask list alone": (
        "ILLEGAL_PARAM", "form", r"^exp got a mask without repeat_times and repeat_params",
        lambda: exp(H1, H2, [1, 0]),
    ),
    "repeats without strides": (
        "ILLEGAL_PARAM", "form",
        r"^exp needs repeat_params \(strides\) after repeat_times; given: count=16, repeat_times=1$",
        lambda: exp(H1, H2, 16, 1),
    ),
    "strides without repeats": (
        "ILLEGAL_PARAM", "form", r"^exp got strides without repeat_times",
        lambda: exp(H1, H2, 16, repeat_params=UNARY),
    ),
    "is_set_mask that is no truth value": (
        "ILLEGAL_PARAM", "form", r"^exp takes True or False for is_set_mask, got 0; given: "
        r"count=16, repeat_times=1, repeat_params=UnaryRepeatParams$",
        lambda: exp(H1, H2, 16, 1, UNARY, 0),
    ),
    "strides of the wrong structure": (
        "ILLEGAL_PARAM", "wrong-params",
        r"^add: repeat_params must be BinaryRepeatParams, got UnaryRepeatParams$",
        lambda: add(H1, H2, H3, 16, 1, UNARY),
    ),
    "count that is a float": (
        "ILLEGAL_PARAM", "not-an-integer", r"^exp: count must be a whole number, got 16\.0$",
        lambda: exp(H1, H2, 16.0),
    ),
    "duplicate with one stride": (
        "ILLEGAL_PARAM", "not-an-integer", r"^duplicate: dst_rep_stride must be a whole number, got None$",
        lambda: duplicate(H1, 1, 64, 1, 1),
    ),
    # overlaps
    "partial overlap within a repeat": (
        "ILLEGAL_PARAM", "operand-overlap",
        r"^exp: dst a \(UB bytes 0 to 256\) and src a \(UB bytes 32 to 288\) overlap, but are not the same addresses",
        lambda: exp(H1, H1[16:], 128),
    ),
    "a later repeat reads what was written": (
        "ILLEGAL_PARAM", "operand-overlap",
        r"^exp: dst a \(UB bytes 256 to 768\) and src a \(UB bytes 0 to 512\) overlap",
        lambda: exp(H1[128:], H1, 256),
    ),
    "overlap in the mask form": (
        "ILLEGAL_PARAM", "operand-overlap", r"^add: dst a .* and src0 a .* overlap",
        lambda: add(H1, H1[16:], H2, 128, 1, BINARY),
    ),
    "accumulation that reads its own sum": (
        "ILLEGAL_PARAM", "operand-overlap", r"^add: dst a .* and src0 a .* overlap",
        lambda: add(H1, H1, H1, 128, 2, BinaryRepeatParams(1, 1, 1, 0, 0, 0)),
    ),
    "overlap of a masked copy": (
        "ILLEGAL_PARAM", "operand-overlap", r"^copy: dst a .* and src a .* overlap",
        lambda: copy(H1[128:], H1, 128, 2, CopyRepeatParams(1, 1, 8, 8)),
    ),
    "overlap of a copy inside UB": (
        "ILLEGAL_PARAM", "operand-overlap",
        r"^data_copy: dst a .* overlaps src a .* would read what it has written\. Copy downwards",
        lambda: data_copy(H1[16:], H1, 64),
    ),
    # masked copy
    "copy with strides 0": (
        "ILLEGAL_PARAM", "dst-block-stride-zero",
        r"^copy: dst_stride 0 writes all 8 blocks of a repeat to one place; it must be at least 1$",
        lambda: copy(H1, H2, 128, 1, CopyRepeatParams()),
    ),
    "copy with repeat stride 0": (
        "ILLEGAL_PARAM", "dst-repeat-stride-zero",
        r"^copy: dst_repeat_size 0 makes every repeat write the same bytes; side by side it is 8$",
        lambda: copy(H1, H2, 128, 2, CopyRepeatParams(1, 1, 0, 8)),
    ),
    "copy without repeats": (
        "ILLEGAL_PARAM", "form", r"^copy needs repeat_time after the mask$",
        lambda: copy(H1, H2, 128, None, CopyRepeatParams(1, 1, 8, 8)),  # type: ignore[arg-type]
    ),
    "copy of bytes": (
        "ILLEGAL_PARAM", "dtype-not-supported",
        r"^copy: dst .* is int8, the 910B takes int16, uint16, float16, bfloat16, int32, uint32, float32$",
        lambda: copy(ub(int8), ub(int8, 64), 32, 1, CopyRepeatParams(1, 1, 8, 8)),
    ),
    # casts
    "round mode not allowed": (
        "ILLEGAL_PARAM", "round-mode",
        r"^cast: float32 to bfloat16 does not take CAST_NONE; it takes CAST_RINT, CAST_FLOOR, CAST_CEIL",
        lambda: cast(ub(bfloat16), F2, RoundMode.CAST_NONE, 16),
    ),
    "round mode that is none": (
        "ILLEGAL_PARAM", "round-mode", r"^cast: round_mode must be a RoundMode such as CAST_RINT, got 7$",
        lambda: cast(H1, F2, 7, 16),
    ),
    "conversion that is not there": (
        "ILLEGAL_PARAM", "cast-pair",
        r"^cast: the 910B does not convert bfloat16 to float16; from bfloat16 it reaches int32, float32$",
        lambda: cast(H1, ub(bfloat16, 2048), RoundMode.CAST_RINT, 16),
    ),
    # scalars
    "scalar before the tensor": (
        "ILLEGAL_PARAM", "not-on-910b", r"^adds: a scalar before the tensor exists on chips newer than the 910B only",
        lambda: adds(H1, 1.0, H2, 16),
    ),
    "scalar that does not fit": (
        "ILLEGAL_PARAM", "scalar-range", r"^adds: scalar 40000 does not fit int16 \(-32768 to 32767\)$",
        lambda: adds(I1, I2, 40000, 16),
    ),
    "infinite scalar for integers": (
        "ILLEGAL_PARAM", "scalar-range", r"^adds: scalar inf does not fit int16",
        lambda: adds(I1, I2, float("inf"), 16),
    ),
    "scalar beyond float64": (
        "ILLEGAL_PARAM", "scalar-range", r"^muls: scalar 1(0){400} does not fit float16",
        lambda: muls(H1, H2, 10**400, 16),
    ),
    "scalar that is no number": (
        "ILLEGAL_PARAM", "not-a-number", r"^muls: scalar must be a number, got '2'$",
        lambda: muls(H1, H2, "2", 16),
    ),
    "shift beyond the width": (
        "ILLEGAL_PARAM", "scalar-range", r"^shift_left: scalar is 17; elements of int16 shift by 0 to 16 bits$",
        lambda: shift_left(I1, I2, 17, 16),
    ),
    # copies
    "copy between types": (
        "ILLEGAL_PARAM", "dtype-mismatch",
        r"^data_copy: src x is float16, dst f is float32\. A copy does not convert: use tensors of one type, cast",
        lambda: data_copy(F1, gm(X), 16),
    ),
    "no path": (
        "ILLEGAL_PARAM", "no-path",
        r"^data_copy: the 910B has no path from GM \(x\) to GM \(y\); data goes GM to UB or L1, UB or L1 to GM, UB",
        lambda: data_copy(gm(X, name="y"), gm(X), 16),
    ),
    "copy to an unaligned UB address": (
        "ALIGNMENT", "misaligned-operand",
        r"^data_copy: dst a starts at UB byte 2, which is 2 past a 32-byte border; copies start on one$",
        lambda: data_copy(H1[1:], gm(X), 16),
    ),
    "GM address between elements": (
        "ALIGNMENT", "gm-misaligned",
        r"^data_copy: src x starts at GM byte 3, which is no multiple of the 2 bytes of float16$",
        lambda: data_copy(H1, _odd_window(), 16),
    ),
    "count and DataCopyParams": (
        "ILLEGAL_PARAM", "form", r"^data_copy takes count, or DataCopyParams: give exactly one of them$",
        lambda: data_copy(H1, gm(X), 16, repeat_params=DataCopyParams(1, 1)),
    ),
    "two DataCopyParams": (
        "ILLEGAL_PARAM", "form", r"^data_copy takes count, or DataCopyParams: give exactly one of them$",
        lambda: data_copy(H1, gm(X), DataCopyParams(1, 1), repeat_params=DataCopyParams(1, 1)),
    ),
    "block_count beyond 4095": (
        "ILLEGAL_PARAM", "block-count-limit", r"^data_copy: block_count is 4096, allowed is 0 to 4095$",
        lambda: data_copy(H1, gm(X), DataCopyParams(4096, 1)),
    ),
    "gap beyond 65535": (
        "ILLEGAL_PARAM", "src-stride-limit",
        r"^data_copy: src_stride is 65536, allowed is 0 to 65535 blocks of 32 bytes$",
        lambda: data_copy(H1, gm(X), DataCopyParams(1, 1, 65536)),
    ),
    "block_len of data_copy_pad in parts of elements": (
        "ILLEGAL_PARAM", "block-len-not-whole",
        r"^data_copy_pad: block_len is 7 bytes, which is no whole number of float16 elements .* counts bytes here$",
        lambda: data_copy_pad(H1, gm(X), DataCopyExtParams(1, 7)),
    ),
    "padding beyond 32 bytes": (
        "ILLEGAL_PARAM", "left-padding-limit",
        r"^data_copy_pad: left_padding is 17, allowed is 0 to 16 elements of float16 \(32 bytes\)$",
        lambda: data_copy_pad(
            H1, gm(X), DataCopyExtParams(1, 2), DataCopyPadExtParams(float16, True, 17)
        ),
    ),
    "is_pad that is no truth value": (
        "ILLEGAL_PARAM", "not-a-flag", r"^data_copy_pad: is_pad must be True or False, got 1$",
        lambda: data_copy_pad(
            H1, gm(X), DataCopyExtParams(1, 2), DataCopyPadExtParams(float16, 1)  # type: ignore[arg-type]
        ),
    ),
    "padding of another type": (
        "ILLEGAL_PARAM", "dtype-mismatch",
        r"^data_copy_pad: DataCopyPadExtParams is of float32, dst a of float16$",
        lambda: data_copy_pad(H1, gm(X), DataCopyExtParams(1, 2), DataCopyPadExtParams(float32)),
    ),
    "padding with a value that does not fit": (
        "ILLEGAL_PARAM", "scalar-range", r"^data_copy_pad: padding_value 300 does not fit int8",
        lambda: data_copy_pad(
            ub(int8), gm(X.view(np.int8)), DataCopyExtParams(1, 2), DataCopyPadExtParams(int8, True, 0, 0, 300)
        ),
    ),
    "padding of 64 bits": (
        "ILLEGAL_PARAM", "padding-value", r"^data_copy_pad: 64-bit types pad with 0 only, got 1$",
        lambda: data_copy_pad(
            ub(int64), gm(X.view(np.int64)), DataCopyExtParams(1, 8), DataCopyPadExtParams(int64, True, 0, 0, 1)
        ),
    ),
    "padding on the way out": (
        "ILLEGAL_PARAM", "form", r"^data_copy_pad: pad_params belong to GM to UB; UB to GM stores exactly block_len",
        lambda: data_copy_pad(gm(X), H1, DataCopyExtParams(1, 2), DataCopyPadExtParams(float16)),
    ),
    "data_copy_pad inside UB": (
        "ILLEGAL_PARAM", "no-path", r"^data_copy_pad moves data between GM and UB only$",
        lambda: data_copy_pad(H1, H2, DataCopyExtParams(1, 2)),
    ),
    # tensors and the scalar unit
    "element index beyond the tensor": (
        "BOUNDS", "tensor-out-of-bounds",
        r"^get_value\(512\): a touches 1026 bytes from its start, the tensor has 1024 \(512 elements of float16\)",
        lambda: _ignore(H1.get_value(512)),
    ),
    "negative element index": (
        "BOUNDS", "element-index", r"^get_value: index must be a whole number of at least 0, got -1$",
        lambda: _ignore(H1.get_value(-1)),
    ),
    "scalar access to L1": (
        "ILLEGAL_PARAM", "wrong-position",
        r"^get_value: L1\[0:128\] is in L1; the scalar unit reaches GM and UB only$",
        lambda: _ignore(LocalTensor(float16, TPosition.A1, 0, 64).get_value(0)),
    ),
    "set_value that does not fit": (
        "ILLEGAL_PARAM", "scalar-range", r"^set_value: value 40000 does not fit int16",
        lambda: I1.set_value(0, 40000),
    ),
    "view beyond the tensor": (
        "BOUNDS", "view-bounds", r"^a\[513:\] leaves the tensor, which has 512 elements$",
        lambda: _ignore(H1[513:]),
    ),
    "view of GM beyond the window": (
        "BOUNDS", "view-bounds", r"^x\[500:520\] ends 16 bytes past the tensor, which has 512 elements$",
        lambda: _ignore(gm(X)[500:520]),
    ),
    "view from a negative index": (
        "BOUNDS", "view-bounds", r"^a\[-1:\] is not inside the tensor's 512 elements: a view starts at 0 or later",
        lambda: _ignore(H1[-1:]),
    ),
    "view with a step": (
        "ILLEGAL_PARAM", "slice-step", r"^a: a view has no step; use t\[start:\] or t\[start:stop\]$",
        lambda: _ignore(H1[0:8:2]),
    ),
    "view at a fraction": (
        "ILLEGAL_PARAM", "not-an-integer", r"^a\[…\]: the index must be a whole number, got 1\.5$",
        lambda: _ignore(H1[1.5]),
    ),
    "GlobalTensor before set_global_buffer": (
        "HOST", "unbound-tensor", r"^data_copy: src is a GlobalTensor before set_global_buffer$",
        lambda: data_copy(H1, GlobalTensor(), 16),
    ),
    "view before set_global_buffer": (
        "HOST", "unbound-tensor", r"^a GlobalTensor is used before set_global_buffer$",
        lambda: _ignore(GlobalTensor()[0:]),
    ),
    "element before set_global_buffer": (
        "HOST", "unbound-tensor", r"^get_value: a GlobalTensor is used before set_global_buffer$",
        lambda: _ignore(GlobalTensor().get_value(0)),
    ),
    "view of GM from a negative index": (
        "BOUNDS", "view-bounds", r"^x\[-1:\] is not inside the tensor's 512 elements",
        lambda: _ignore(gm(X)[-1:]),
    ),
    "set_global_buffer of a tensor": (
        "HOST", "not-an-address", r"^set_global_buffer needs a GM address .*, got LocalTensor$",
        lambda: GlobalTensor().set_global_buffer(H1),  # type: ignore[arg-type]
    ),
    "tensor at a negative address": (
        "BOUNDS", "negative-address", r"^LocalTensor at byte -32 with 8 bytes: both must be at least 0$",
        lambda: _ignore(LocalTensor(float16, TPosition.VECIN, -32, 4)),
    ),
    "tensor of no type": (
        "ILLEGAL_PARAM", "not-a-dtype", r"^LocalTensor needs an element type such as asc\.float16, got 'half'$",
        lambda: _ignore(LocalTensor("half")),  # type: ignore[arg-type]
    ),
    "tensor at no position": (
        "ILLEGAL_PARAM", "wrong-position", r"^LocalTensor: pos must be a TPosition such as VECCALC, got 9$",
        lambda: _ignore(LocalTensor(float16, 9)),  # type: ignore[arg-type]
    ),
    # flags and registers
    "event that is none": (
        "ILLEGAL_PARAM", "event", r"^set_flag: event must be a HardEvent such as MTE2_V, got 'MTE2_V'$",
        lambda: set_flag("MTE2_V"),  # type: ignore[arg-type]
    ),
    "event id beyond 7": (
        "ILLEGAL_PARAM", "event-id", r"^wait_flag\(V_MTE3, 8\): event ids run from 0 to 7 for each pair of pipes$",
        lambda: wait_flag(HardEvent.V_MTE3, 8),
    ),
    "barrier of the scalar unit": (
        "ILLEGAL_PARAM", "pipe", r"^pipe_barrier\(PIPE_S\) is illegal: the scalar unit executes in order anyway$",
        lambda: pipe_barrier(PipeID.PIPE_S),
    ),
    "barrier of no pipe": (
        "ILLEGAL_PARAM", "pipe", r"^pipe_barrier: pipe must be a PipeID such as PIPE_V, got None$",
        lambda: pipe_barrier(None),  # type: ignore[arg-type]
    ),
    "mask register word too wide": (
        "ILLEGAL_PARAM", "mask-high-limit", r"^set_vector_mask: mask_high is -1, allowed is 0 to",
        lambda: set_vector_mask(-1, 0),
    ),
    "lanes without a type": (
        "ILLEGAL_PARAM", "form", r"^set_vector_mask: a number of lanes needs dtype.*; got None$",
        lambda: set_vector_mask(16, mode=MaskMode.NORMAL),
    ),
    "pad value that is no number": (
        "ILLEGAL_PARAM", "not-a-number", r"^set_pad_value: padding_value must be a number, got None$",
        lambda: set_pad_value(None),  # type: ignore[arg-type]
    ),
}  # fmt: skip


def _named(tensor: LocalTensor, label: str) -> LocalTensor:
    tensor.label = label
    return tensor


def _ignore(_: Any) -> None:
    pass


def _counting(act: Act) -> None:
    set_mask_count()
    act()


def _odd_window() -> GlobalTensor:
    window = GlobalTensor()
    window.set_global_buffer(GlobalAddress(GmBuffer("x", X.view(np.uint8)), float16, 3))
    return window


@pytest.mark.parametrize("rule", sorted(RULES))
def test_rule(rule: str) -> None:
    kind, code, pattern, act = RULES[rule]
    with stream() as eager:
        with pytest.raises(IsaFault, match=pattern) as caught:
            act()
        assert (caught.value.kind, caught.value.code) == (kind, code)
        assert not eager.issued


OUTSIDE: dict[str, Act] = {
    "add": lambda: add(H1, H2, H3, 16),
    "muls": lambda: muls(H1, H2, 2, 16),
    "duplicate": lambda: duplicate(H1, 2, 16),
    "copy": lambda: copy(H1, H2, 16, 1, CopyRepeatParams(1, 1, 8, 8)),
    "cast": lambda: cast(H1, F2, RoundMode.CAST_RINT, 16),
    "data_copy": lambda: data_copy(H1, H2, 16),
    "data_copy_pad": lambda: data_copy_pad(H1, gm(X), DataCopyExtParams(1, 2)),
    "set_flag": lambda: set_flag(HardEvent.MTE2_V),
    "wait_flag": lambda: wait_flag(HardEvent.MTE2_V),
    "pipe_barrier": lambda: pipe_barrier(PipeID.PIPE_V),
    "set_mask_count": set_mask_count,
    "get_value": lambda: _ignore(H1.get_value()),
    "set_value": lambda: H1.set_value(0, 1),
}


@pytest.mark.parametrize("name", sorted(OUTSIDE))
def test_outside_a_kernel(name: str) -> None:
    with pytest.raises(IsaFault, match=rf"^{name} was called outside a kernel") as caught:
        OUTSIDE[name]()
    assert (caught.value.kind, caught.value.code) == ("HOST", "no-kernel")


@pytest.mark.parametrize("name", ["add", "muls", "duplicate", "copy", "cast", "data_copy_pad"])
def test_vector_instructions_do_nothing_on_a_cube_core(name: str) -> None:
    eager = EagerStream({Space.L1: 64}, CoreKind.AIC)
    with eager:
        OUTSIDE[name]()
    assert not eager.issued


def test_a_scalar_that_becomes_infinite_is_told() -> None:
    with stream() as eager:
        muls(H1, H2, 70000.0, 16)
        assert eager.issued[-1].lint == (
            "NUMERIC",
            "scalar-overflow",
            "muls: scalar 70000.0 is beyond the range of float16 and becomes inf",
        )
        duplicate(ub(int32), 70000, 16)
        muls(H1, H2, float("inf"), 16)
        assert [call.lint for call in eager.issued[1:]] == [None, None]


def test_a_fault_travels_through_the_stream() -> None:
    seen = []

    class Listening(EagerStream):
        def fault(self, fault: IsaFault) -> None:
            seen.append(fault)
            super().fault(fault)

    with Listening({Space.UB: 8192}), pytest.raises(IsaFault):
        function("add")(H1, H2, H3, 520)
    (fault,) = seen
    assert (fault.tensor, fault.byte_range, fault.pipe) == ("a", (0, 1040), "V")
    assert str(fault) == fault.message
    assert IsaFault(*fault.args).args == fault.args
