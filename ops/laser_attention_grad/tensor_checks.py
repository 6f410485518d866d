"""The operator's own checks of its tensors, in the library's order; the first that fails decides."""

from __future__ import annotations

from collections.abc import Sequence

from ops.laser_attention_grad.param import SBH, LaserAttentionGradParam
from ops.laser_attention_grad.sizes import BLOCK, KEY_DIM, MAX_HEADS, QUERY_DIM_SBH
from ops.status import Refusal, Status, host_error
from ops.tensor import TensorDesc

INPUTS = (
    "query", "key", "value", "attention_out_grad", "pse_shift", "drop_mask", "padding_mask", "atten_mask",
    "softmax_max", "softmax_sum", "softmax_in", "attention_in", "prefix", "actual_seq_qlen", "actual_seq_kvlen",
)  # fmt: skip
OUTPUTS = ("query_grad", "key_grad", "value_grad", "dpse")

MAY_BE_EMPTY = frozenset((4, 5, 6, 7, 12, 13, 14))
MUST_BE_EMPTY_FIRST = (4, 5, 6)
MUST_BE_EMPTY_LAST = (12, 13, 14)

TYPES = ("bfloat16",) * 5 + (
    "uint8",
    "bfloat16",
    "float16",
    "float32",
    "float32",
    "bfloat16",
    "bfloat16",
)
TYPE_COLUMN = (*TYPES, "int64", "int64", "int64", *("bfloat16",) * 4)  # fmt: skip
"""The library's only column of types: attenMask is float16 there, and the kernel reads it as bfloat16."""

SEQ_UNIT = 256


def check_inputs(param: LaserAttentionGradParam, inputs: Sequence[TensorDesc]) -> None:
    """Check the 15 inputs. Raises `Refusal` (ERROR_INVALID_TENSOR_DIM_NUM or ERROR_INVALID_TENSOR_DIM)."""
    names = [f"in {i} ({name})" for i, name in enumerate(INPUTS)]
    check = _Check(dict(zip(INPUTS, zip(names, inputs, strict=True), strict=True)))
    by_layout = _check_sbh if param.input_layout == SBH else _check_bnsd
    batch, seq, kv_seq = by_layout(param, check)
    for index in MUST_BE_EMPTY_FIRST:
        check.empty(INPUTS[index])
    _check_mask(check, seq, kv_seq)
    check.dims("softmax_max", 3)
    for position, (what, size) in enumerate(
        (("batch", batch), ("headNum", param.head_num), ("query length", seq))
    ):
        check.dim("softmax_max", position, size, what)
    check.like("softmax_sum", "softmax_max")
    _check_output_like("attention_in", param, check, batch, seq)
    for index in MUST_BE_EMPTY_LAST:
        check.empty(INPUTS[index])


def check_outputs(inputs: Sequence[TensorDesc], outputs: Sequence[TensorDesc]) -> None:
    """Check queryGrad, keyGrad and valueGrad against their inputs; nothing checks dpse."""
    named = {
        name: (f"{side} {i} ({name})", desc)
        for side, names, descs in (("in", INPUTS[:3], inputs[:3]), ("out", OUTPUTS[:3], outputs[:3]))
        for i, (name, desc) in enumerate(zip(names, descs, strict=True))
    }  # fmt: skip
    check = _Check(named)
    for name, other in zip(OUTPUTS[:3], INPUTS[:3], strict=True):
        check.like(name, other)


def _check_bnsd(param: LaserAttentionGradParam, check: _Check) -> tuple[int, int, int]:
    check.dims("query", 4)
    batch, _, seq, dim = check.shape("query")
    check.dim("query", 1, param.head_num, "headNum")
    check.at_most("query", 1, MAX_HEADS)
    check.multiple("query", 2)
    if dim == BLOCK:
        check.true(
            seq >= param.pre_tokens,
            "query",
            f"has {seq} rows, fewer than preTokens {param.pre_tokens}",
        )
    elif dim == QUERY_DIM_SBH:
        check.true(
            seq == param.pre_tokens,
            "query",
            f"has {seq} rows; with head dim {dim} preTokens must be the same, and is {param.pre_tokens}",
        )
    else:
        check.true(False, "query", f"has head dim {dim}; it must be {BLOCK} or {QUERY_DIM_SBH}")
    check.dims("key", 4)
    check.dim("key", 0, batch, "batch")
    _, kv_heads, kv_seq, _ = check.shape("key")
    check.true(
        param.head_num % kv_heads == 0,
        "key",
        f"has {kv_heads} heads, which do not divide headNum {param.head_num}",
    )
    check.multiple("key", 2)
    check.dim("key", 3, KEY_DIM[dim], f"for a query head dim of {dim}")
    check.dims("value", 4)
    for position, (what, size) in enumerate(
        (("batch", batch), ("heads of key", kv_heads), ("rows of key", kv_seq), ("head dim", BLOCK))
    ):
        check.dim("value", position, size, what)
    _check_output_like("attention_out_grad", param, check, batch, seq)
    return batch, seq, kv_seq


def _check_sbh(param: LaserAttentionGradParam, check: _Check) -> tuple[int, int, int]:
    # The library divides the widths with floor and never looks at the remainders.
    check.dims("query", 3)
    seq, batch, width = check.shape("query")
    check.multiple("query", 0)
    check.true(
        seq == param.pre_tokens,
        "query",
        f"has {seq} rows; with SBH preTokens must be the same, and is {param.pre_tokens}",
    )
    heads = width // QUERY_DIM_SBH
    check.true(
        heads == param.head_num,
        "query",
        f"has {width} columns, {heads} heads of {QUERY_DIM_SBH}; headNum is {param.head_num}",
    )
    check.true(heads <= MAX_HEADS, "query", f"has {heads} heads; {MAX_HEADS} at most are allowed")
    check.dims("key", 3)
    kv_seq, _, key_width = check.shape("key")
    check.multiple("key", 0)
    check.dim("key", 1, batch, "batch")
    kv_heads = key_width // KEY_DIM[QUERY_DIM_SBH]
    if kv_heads == 0:
        raise host_error(
            "division-by-zero", f"key has {key_width} columns, less than one head of {KEY_DIM[QUERY_DIM_SBH]}: the "
            "library takes headNum modulo 0 heads here, which ends the process", "key",
        )  # fmt: skip
    check.true(
        param.head_num % kv_heads == 0,
        "key",
        f"has {kv_heads} heads, which do not divide headNum {param.head_num}",
    )
    check.dims("value", 3)
    check.dim("value", 0, kv_seq, "rows of key")
    check.dim("value", 1, batch, "batch")
    value_heads = check.shape("value")[2] // BLOCK
    check.true(
        value_heads == kv_heads, "value", f"has {value_heads} heads of {BLOCK}, key has {kv_heads}"
    )
    _check_output_like("attention_out_grad", param, check, batch, seq)
    return batch, seq, kv_seq


def _check_output_like(
    name: str, param: LaserAttentionGradParam, check: _Check, batch: int, seq: int
) -> None:
    """Check a tensor of the forward result's shape."""
    if param.input_layout == SBH:
        check.dims(name, 3)
        check.dim(name, 0, seq, "rows of query")
        check.dim(name, 1, batch, "batch")
        heads = check.shape(name)[2] // BLOCK
        check.true(
            heads == param.head_num,
            name,
            f"has {heads} heads of {BLOCK}; headNum is {param.head_num}",
        )
        return
    check.dims(name, 4)
    sizes = (
        ("batch", batch),
        ("headNum", param.head_num),
        ("rows of query", seq),
        ("head dim", BLOCK),
    )
    for position, (what, size) in enumerate(sizes):
        check.dim(name, position, size, what)


def _check_mask(check: _Check, seq: int, kv_seq: int) -> None:
    if check.is_empty("atten_mask"):
        return
    check.dims("atten_mask", 2)
    check.true(
        seq == kv_seq, "atten_mask", f"needs as many queries as keys, not {seq} and {kv_seq}"
    )
    check.dim("atten_mask", 0, seq, "rows of query")
    check.dim("atten_mask", 1, kv_seq, "rows of key")


class _Check:
    """Single checks on tensors by name; each raises `Refusal`."""

    def __init__(self, tensors: dict[str, tuple[str, TensorDesc]]) -> None:
        self._tensors = tensors

    def shape(self, name: str) -> tuple[int, ...]:
        return self._tensors[name][1].shape

    def is_empty(self, name: str) -> bool:
        return self._tensors[name][1].is_empty

    def dims(self, name: str, wanted: int) -> None:
        label, desc = self._tensors[name]
        if len(desc.shape) != wanted:
            raise Refusal(
                Status.ERROR_INVALID_TENSOR_DIM_NUM,
                f"{label} has {len(desc.shape)} dims {list(desc.shape)}; it must have {wanted}",
            )

    def true(self, condition: bool, name: str, message: str) -> None:
        if not condition:
            raise Refusal(Status.ERROR_INVALID_TENSOR_DIM, f"{self._tensors[name][0]} {message}")

    def dim(self, name: str, position: int, wanted: int, what: str) -> None:
        given = self.shape(name)[position]
        self.true(
            given == wanted, name, f"has {given} in dim {position}; it must be {wanted} ({what})"
        )

    def at_most(self, name: str, position: int, limit: int) -> None:
        given = self.shape(name)[position]
        self.true(
            given <= limit, name, f"has {given} in dim {position}; {limit} at most are allowed"
        )

    def multiple(self, name: str, position: int) -> None:
        given = self.shape(name)[position]
        self.true(
            given % SEQ_UNIT == 0,
            name,
            f"has {given} in dim {position}; it must be a multiple of {SEQ_UNIT}",
        )

    def empty(self, name: str) -> None:
        label, desc = self._tensors[name]
        if not desc.is_empty:
            raise Refusal(
                Status.ERROR_INVALID_TENSOR_DIM_NUM, f"{label} is {list(desc.shape)}; it must be an empty tensor"
            )  # fmt: skip

    def like(self, name: str, other: str) -> None:
        self.dims(name, len(self.shape(other)))
        for position, size in enumerate(self.shape(other)):
            self.dim(name, position, size, f"as {other}")
