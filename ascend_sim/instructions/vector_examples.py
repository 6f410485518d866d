"""An example of each vector instruction."""

from __future__ import annotations

from ascend_sim.instructions.example import Example, vector

SIGNED = "np.arange(128) % 9 - 4"
POSITIVE = "np.arange(128) % 9 + 1"
H = ("float16", 128, SIGNED)
P = ("float16", 128, POSITIVE)
S = ("int16", 128, SIGNED)


def _binary(name: str, check: str, x: tuple[str, int, str] = H, before: str = "") -> Example:
    y, z = (x[0], x[1], POSITIVE), (x[0], x[1])
    return vector(f"asc.{name}(c, a, b, {x[1]})", check, x=x, y=y, z=z, before=before)


def _unary(name: str, check: str, x: tuple[str, int, str] = H) -> Example:
    return vector(f"asc.{name}(c, a, {x[1]})", check, x=x, z=(x[0], x[1]))


def _scalar(
    name: str, scalar: str, check: str, x: tuple[str, int, str] = H, before: str = ""
) -> Example:
    about = f"asc.{name}(c, a, {scalar}, {x[1]})"
    return vector(about, check, x=x, z=(x[0], x[1]), before=before)


def _blocks(name: str, check: str) -> Example:
    count = 64 if name == "pair_reduce_sum" else 8
    return vector(f"asc.{name}(c, a, 1, 128, 1, 1, 8)", check, x=H, z=("float16", count))


def _whole(name: str, check: str) -> Example:
    count = 1 if name == "whole_reduce_sum" else 2  # a value, or a value and its index
    return vector(f"asc.{name}(c, a, 128, 1, 1, 1, 8)", check, x=H, z=("float16", count))


def _total(name: str, check: str) -> Example:
    return vector(
        f"asc.{name}(c, a, t, 128)", check, x=H, z=("float16", 1), work={"t": ("float16", 64)}
    )


def _sixteen(name: str) -> str:
    return f"[{', '.join(f'{name}[{16 * row}:]' for row in range(16))}]"


ARITHMETIC: dict[str, Example] = {
    "add": _binary("add", "np.array_equal(z, x + y)"),
    "sub": _binary("sub", "np.array_equal(z, x - y)"),
    "mul": _binary("mul", "np.array_equal(z, x * y)"),
    "div": _binary("div", "np.array_equal(z, x / y)"),
    "max": _binary("max", "np.array_equal(z, np.maximum(x, y))"),
    "min": _binary("min", "np.array_equal(z, np.minimum(x, y))"),
    "bitwise_and": _binary("bitwise_and", "np.array_equal(z, x & y)", S),
    "bitwise_or": _binary("bitwise_or", "np.array_equal(z, x | y)", S),
    "bitwise_not": _unary("bitwise_not", "np.array_equal(z, ~x)", S),
    "add_relu": _binary("add_relu", "np.array_equal(z, np.maximum(x + y, 0))"),
    "sub_relu": _binary("sub_relu", "np.array_equal(z, np.maximum(x - y, 0))"),
    "mul_add_dst": _binary(
        "mul_add_dst", "np.array_equal(z, x * y + 1)", before="asc.duplicate(c, 1.0, 128)"
    ),
    "fused_mul_add": _binary(
        "fused_mul_add", "np.array_equal(z, x * 2 + y)", before="asc.duplicate(c, 2.0, 128)"
    ),
    "fused_mul_add_relu": _binary(
        "fused_mul_add_relu",
        "np.array_equal(z, np.maximum(x * 2 + y, 0))",
        before="asc.duplicate(c, 2.0, 128)",
    ),
    "adds": _scalar("adds", "1.5", "np.array_equal(z, x + 1.5)"),
    "muls": _scalar("muls", "0.5", "np.array_equal(z, x * 0.5)"),
    "maxs": _scalar("maxs", "1.0", "np.array_equal(z, np.maximum(x, 1))"),
    "mins": _scalar("mins", "1.0", "np.array_equal(z, np.minimum(x, 1))"),
    "leaky_relu": _scalar("leaky_relu", "0.25", "np.array_equal(z, np.where(x >= 0, x, x * 0.25))"),
    "axpy": _scalar(
        "axpy", "2.0", "np.array_equal(z, 2 * x + 1)", before="asc.duplicate(c, 1.0, 128)"
    ),
    "shift_left": _scalar("shift_left", "2", "np.array_equal(z, x << 2)", S),
    "shift_right": _scalar("shift_right", "1", "np.array_equal(z, x >> 1)", S),
    "exp": _unary("exp", "np.allclose(z, np.exp(x.astype(float)), rtol=1e-3)"),
    "ln": _unary("ln", "np.allclose(z, np.log(x.astype(float)), rtol=1e-3)", P),
    "abs": _unary("abs", "np.array_equal(z, abs(x))"),
    "sqrt": _unary("sqrt", "np.allclose(z, np.sqrt(x.astype(float)), rtol=1e-3)", P),
    "rsqrt": _unary("rsqrt", "np.allclose(z, 1 / np.sqrt(x.astype(float)), rtol=1e-3)", P),
    "reciprocal": _unary("reciprocal", "np.allclose(z, 1 / x.astype(float), rtol=1e-3)", P),
    "relu": _unary("relu", "np.array_equal(z, np.maximum(x, 0))"),
}

CONVERSION: dict[str, Example] = {
    "cast": vector(
        "asc.cast(c, a, asc.RoundMode.CAST_RINT, 64)",
        "np.array_equal(z, np.rint(x))",
        x=("float32", 64, "np.arange(64) / 4 - 8"),
        z=("int32", 64),
    ),
    "cast_deq": vector(
        "asc.cast_deq(c, a, 64)",
        "np.array_equal(z, x * 0.5)",
        x=("int32", 64, "np.arange(64) - 32"),
        z=("float16", 64),
        before="asc.set_deq_scale(0.5)",
    ),
    "set_deq_scale": vector(
        "asc.set_deq_scale(0.25)",
        "np.array_equal(z, x * 0.25)",
        x=("int32", 64, "np.arange(64) - 32"),
        z=("float16", 64),
        after="asc.cast_deq(c, a, 64)",
    ),
    "mul_cast": vector(
        "asc.mul_cast(c, a, b, 128)", "np.array_equal(z, x * y)", x=H, y=P, z=("int8", 128)
    ),
    "add_relu_cast": vector(
        "asc.add_relu_cast(c, a, b, 128)",
        "np.array_equal(z, np.maximum(x + y, 0))",
        x=H,
        y=P,
        z=("int8", 128),
    ),
    "sub_relu_cast": vector(
        "asc.sub_relu_cast(c, a, b, 128)",
        "np.array_equal(z, np.maximum(x - y, 0))",
        x=H,
        y=P,
        z=("int8", 128),
    ),
    "add_deq_relu": vector(
        "asc.add_deq_relu(c, a, b, 64)",
        "np.array_equal(z, np.maximum((x + y) * 0.5, 0))",
        x=("int32", 64, "np.arange(64) - 32"),
        y=("int32", 64, "np.arange(64) % 3"),
        z=("float16", 64),
        before="asc.set_deq_scale(0.5)",
    ),
}

MOVING: dict[str, Example] = {
    "duplicate": vector("asc.duplicate(c, 3.0, 128)", "(z == 3).all()", x=None),
    "copy": vector(
        "asc.copy(c, a, 128, 1, asc.CopyRepeatParams(1, 1, 8, 8))", "np.array_equal(z, x)"
    ),
    "brcb": vector(
        "asc.brcb(c, a, 1, asc.BrcbRepeatParams(1, 8))",
        "np.array_equal(z.reshape(8, 16), np.repeat(x[:8, None], 16, 1))",
    ),
    "create_vec_index": vector(
        "asc.create_vec_index(c, 5, 64)",
        "np.array_equal(z, np.arange(5, 69))",
        x=None,
        z=("int32", 64),
    ),
    "gather": vector(
        "asc.gather(c, a, b, 0, 64)",
        "np.array_equal(z, x[::-1])",
        x=("float32", 64, "np.arange(64)"),
        y=("uint32", 64, "4 * np.arange(63, -1, -1)"),
        z=("float32", 64),
    ),
    "gatherb": vector(
        "asc.gatherb(c, a, b, 1, asc.GatherRepeatParams(1, 8))",
        "np.array_equal(z.reshape(8, 8), x.reshape(8, 8)[::-1])",
        x=("uint32", 64, "np.arange(64)"),
        y=("uint32", 8, "32 * np.arange(7, -1, -1)"),
        z=("uint32", 64),
    ),
    "gather_mask": vector(
        "asc.gather_mask(c, a, 1, False, 0, asc.GatherMaskParams(1, 1, 8, 0))",
        "np.array_equal(z, x[::2])",
        x=("float16", 128, "np.arange(128)"),
        z=("float16", 64),
    ),
    "transpose": vector(
        "asc.transpose(c, a)",
        "np.array_equal(z.reshape(16, 16), x.reshape(16, 16).T)",
        x=("float16", 256, "np.arange(256)"),
        z=("float16", 256),
    ),
    "trans_data_to_5hd": vector(
        "asc.trans_data_to_5hd(rows_out, rows_in, asc.TransDataTo5HDParams(False, False, 1, 0, 0))",
        "np.array_equal(z.reshape(16, 16), x.reshape(16, 16).T)",
        x=("float16", 256, "np.arange(256)"),
        z=("float16", 256),
        before=f"rows_in = {_sixteen('a')}\nrows_out = {_sixteen('c')}",
    ),
    "data_copy": vector(
        "asc.data_copy(a, x_gm, 128)", "np.array_equal(z, x)", after="asc.adds(c, a, 0.0, 128)"
    ),
    "data_copy_pad": vector(
        "asc.data_copy_pad(z_gm, c, asc.DataCopyExtParams(1, 10, 0, 0, 0))",
        "np.array_equal(z, x[:5])",
        z=("float16", 5),
        before="asc.adds(c, a, 0.0, 5)",
    ),
}

CHOICE: dict[str, Example] = {
    "compare": vector(
        "asc.compare(c, a, b, asc.CMPMODE.LT, 256)",
        "np.array_equal(np.unpackbits(z, bitorder='little'), x < y)",
        x=("float16", 256, "np.arange(256) % 9"),
        y=("float16", 256, "np.arange(256) % 7"),
        z=("uint8", 32),
    ),
    "compare_scalar": vector(
        "asc.compare_scalar(c, a, 4.0, asc.CMPMODE.GE, 256)",
        "np.array_equal(np.unpackbits(z, bitorder='little'), x >= 4)",
        x=("float16", 256, "np.arange(256) % 9"),
        z=("uint8", 32),
    ),
    "select": vector(
        "asc.select(c, bits, a, b, asc.SelMode.VSEL_TENSOR_TENSOR_MODE, 128)",
        "np.array_equal(z, np.minimum(x, y))",
        x=H,
        y=P,
        work={"bits": ("uint8", 32)},
        before="asc.compare(bits, a, b, asc.CMPMODE.LT, 128)",
    ),
    "get_cmp_mask": vector(
        "asc.get_cmp_mask(c)",
        "np.array_equal(np.unpackbits(z, bitorder='little'), x < y)",
        x=H,
        y=P,
        z=("uint8", 16),
        before="asc.compare(a, b, asc.CMPMODE.LT, 128, asc.BinaryRepeatParams())",
    ),
    "set_cmp_mask": vector(
        "asc.set_cmp_mask(bits)",
        "np.array_equal(z, np.where(np.arange(128) % 16 < 8, x, y))",
        x=H,
        y=P,
        work={"bits": ("uint16", 16)},
        before="asc.duplicate(bits, 255, 16)",
        after=(
            "asc.select(c, a, b, repeat_times=1, repeat_params=asc.BinaryRepeatParams(), "
            "sel_mode=asc.SelMode.VSEL_CMPMASK_SPR)"
        ),
    ),
}

REDUCTION: dict[str, Example] = {
    "block_reduce_sum": _blocks("block_reduce_sum", "np.array_equal(z, x.reshape(8, 16).sum(1))"),
    "block_reduce_max": _blocks("block_reduce_max", "np.array_equal(z, x.reshape(8, 16).max(1))"),
    "block_reduce_min": _blocks("block_reduce_min", "np.array_equal(z, x.reshape(8, 16).min(1))"),
    "pair_reduce_sum": _blocks("pair_reduce_sum", "np.array_equal(z, x[::2] + x[1::2])"),
    "whole_reduce_sum": _whole("whole_reduce_sum", "z[0] == x.sum()"),
    "whole_reduce_max": _whole(
        "whole_reduce_max", "z[0] == x.max() and z.view(np.uint16)[1] == x.argmax()"
    ),
    "whole_reduce_min": _whole(
        "whole_reduce_min", "z[0] == x.min() and z.view(np.uint16)[1] == x.argmin()"
    ),
    "repeat_reduce_sum": vector(
        "asc.repeat_reduce_sum(c, a, 1, 128, 0, 1, 1, 8)", "z[0] == x.sum()", x=H, z=("float16", 1)
    ),
    "reduce_sum": _total("reduce_sum", "z[0] == x.sum()"),
    "reduce_max": _total("reduce_max", "z[0] == x.max()"),
    "reduce_min": _total("reduce_min", "z[0] == x.min()"),
    "get_acc_val": vector(
        "total = asc.get_acc_val(asc.float16)",
        "z[0] == x.sum()",
        x=H,
        z=("float16", 1),
        before="asc.reduce_sum(c, a, t, 128)",
        after="c.set_value(0, total)",
        work={"t": ("float16", 64)},
    ),
    "get_reduce_max_min_count": vector(
        "value, index = asc.get_reduce_max_min_count(asc.float16)",
        "z[0] == x.max() and z[1] == x.argmax()",
        x=H,
        z=("float16", 2),
        before="asc.whole_reduce_max(c, a, 128, 1, 1, 1, 8)",
        after="c.set_value(0, value)\nc.set_value(1, index)",
    ),
}

_RECORDS = (
    "np.stack([-np.sort(-x), np.argsort(-x, kind='stable').astype(np.uint32).view(np.float32)], 1)"
)
ORDER: dict[str, Example] = {
    "sort32": vector(
        "asc.sort32(c, a, b, 1)",
        f"z.tobytes() == np.ascontiguousarray({_RECORDS}).tobytes()",
        x=("float32", 32, "np.arange(32) * 7 % 32"),
        y=("uint32", 32, "np.arange(32)"),
        z=("float32", 64),
    ),
    "sort": vector(
        "asc.sort(c, a, b, t, 2, True)",
        "np.array_equal(z[::2], -np.sort(-x))",
        x=("float32", 64, "np.arange(64) * 13 % 64"),
        y=("uint32", 64, "np.arange(64)"),
        z=("float32", 128),
        work={"t": ("float32", 128)},
    ),
    "mrg_sort": vector(
        "asc.mrg_sort(c, lists, asc.MrgSort4Info([32, 32, 0, 0], False, 3, 1))",
        "np.array_equal(z[::2], -np.sort(-x))",
        x=("float32", 64, "np.arange(64) * 13 % 64"),
        y=("uint32", 64, "np.arange(64)"),
        z=("float32", 128),
        work={"t": ("float32", 128)},
        before="asc.sort32(t, a, b, 2)\nlists = asc.MrgSortSrcList(t, t[64:], t, t)",
    ),
    "get_mrg_sort_result": vector(
        "taken = asc.get_mrg_sort_result()",
        "z[1] == 32",
        x=("float32", 64, "np.arange(64) * 13 % 64"),
        y=("uint32", 64, "np.arange(64)"),
        z=("float32", 128),
        work={"t": ("float32", 128)},
        before=(
            "asc.sort32(t, a, b, 2)\nlists = asc.MrgSortSrcList(t, t[64:], t, t)\n"
            "asc.mrg_sort(c, lists, asc.MrgSort4Info([32, 32, 0, 0], False, 3, 1))"
        ),
        after="c.set_value(1, taken[1])",
    ),
    "get_gather_mask_remain_count": vector(
        "kept = asc.get_gather_mask_remain_count()",
        "z[0] == 64",
        x=("float16", 128, "np.arange(128)"),
        z=("float16", 1),
        work={"t": ("float16", 128)},
        before="asc.gather_mask(t, a, 2, False, 0, asc.GatherMaskParams(1, 1, 8, 0))",
        after="c.set_value(0, kept)",
    ),
}

VECTOR = {**ARITHMETIC, **CONVERSION, **MOVING, **CHOICE, **REDUCTION, **ORDER}
"""By name."""
