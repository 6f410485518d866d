"""The host checks of RopeGradOperation: each one, its status, its message, and which of two comes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ops import Context, OperationError, Status, TensorDesc, create_operation

LENGTHS = [2, 1, 4, 4]


def fp16(*shape: int, format: str = "nd") -> TensorDesc:
    return TensorDesc("float16", format, shape)


GRADIENT, TABLE = fp16(11, 128), fp16(64, 128)
GOOD = [GRADIENT, GRADIENT, TABLE, TABLE]

CREATE = [
    ("unknown key", {"qSeqLens": LENGTHS}, "", "did you mean 'qSeqLen'?"),
    ("not a dict", [1, 2], "", "not list"),
    ("not a list", {"qSeqLen": 3}, "", "qSeqLen is a list of integers, not 3"),
    ("not integers", {"qSeqLen": [1.5]}, "", "qSeqLen[0] is 1.5"),
    ("a truth value", {"qSeqLen": [True]}, "", "qSeqLen[0] is True"),
    ("beyond int32", {"qSeqLen": [2**31]}, "", "int32"),
    ("reserved byte", {"qSeqLen": LENGTHS, "rsv": [0, 7]}, "", "rsv[1] is 7"),
    ("no byte", {"qSeqLen": LENGTHS, "rsv": [256]}, "", "rsv[0] is 256"),
    ("too many reserved bytes", {"qSeqLen": LENGTHS, "rsv": [0] * 9}, "", "8 at most"),
    ("other SoC", {"qSeqLen": LENGTHS}, "Ascend310P3", "'Ascend310P3' is not of the 910B family"),
    ("older SoC", {"qSeqLen": LENGTHS}, "Ascend910A", "'Ascend910A'"),
    ("no lengths", {"qSeqLen": []}, "", "0 entries; 1 to 32"),
    ("no parameter", {}, "", "0 entries; 1 to 32"),
    ("too many lengths", {"qSeqLen": [1] * 33}, "", "33 entries; 1 to 32"),
    ("length of 0", {"qSeqLen": [3, 0]}, "", "qSeqLen[1] is 0"),
    ("length below 0", {"qSeqLen": [-1]}, "", "qSeqLen[0] is -1"),
]


@pytest.mark.parametrize(
    ("param", "soc", "text"), [case[1:] for case in CREATE], ids=[case[0] for case in CREATE]
)
def test_create_refuses(param: Any, soc: str, text: str) -> None:
    with pytest.raises(OperationError) as caught:
        create_operation("RopeGradOperation", param, soc=soc)
    assert caught.value.status == "ERROR_INVALID_PARAM"
    assert caught.value.code == 1
    assert caught.value.stage == "create"
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "soc", ["", "Ascend910B", "Ascend910B1", "Ascend910B4", "Ascend910B4-1", "Ascend910_9362"]
)
def test_create_takes_the_family(soc: str) -> None:
    assert create_operation("RopeGradOperation", {"qSeqLen": [1] * 32}, soc=soc).soc == soc


def test_create_order() -> None:
    bad = {"qSeqLen": [], "rsv": [1]}
    for param, soc, text in (
        (bad, "Ascend310P3", "rsv"),
        ({"qSeqLen": []}, "Ascend310P3", "SoC"),
        ({"qSeqLen": []}, "", "qSeqLen"),
    ):
        with pytest.raises(OperationError, match=text):
            create_operation("RopeGradOperation", param, soc=soc)


def test_unknown_operation_suggests_the_nearest() -> None:
    with pytest.raises(OperationError, match="did you mean 'RopeGradOperation'"):
        create_operation("RopeGradOperaton", {"qSeqLen": [1]})


# (name, inputs, lengths, status, text), in the order in which the library checks.
INPUTS = [
    ("three inputs", GOOD[:3], LENGTHS, Status.ERROR_INVALID_IN_TENSOR_NUM, "3 input tensors"),
    ("five inputs", [*GOOD, TABLE], LENGTHS, Status.ERROR_INVALID_IN_TENSOR_NUM, "5 input"),
    ("no dims", [fp16(), *GOOD[1:]], LENGTHS, Status.ERROR_INVALID_TENSOR_DIM, "0 dims"),
    ("nine dims", [fp16(*[1] * 9), *GOOD[1:]], LENGTHS, Status.ERROR_INVALID_TENSOR_DIM, "9 dims"),
    ("empty", [*GOOD[:3], fp16(0, 128)], LENGTHS, Status.ERROR_INVALID_TENSOR_SIZE, "0 bytes"),
    (
        "above 256 GiB",
        [*GOOD[:2], fp16(2**30 + 1, 128), TABLE],
        LENGTHS,
        Status.ERROR_INVALID_TENSOR_SIZE,
        "256 GiB",
    ),
    (
        "type",
        [*GOOD[:3], TensorDesc("bf16", "nd", (64, 128))],
        LENGTHS,
        Status.ERROR_INVALID_TENSOR_INI_MATCH,
        "in 3 (sin) is bfloat16",
    ),
    (
        "format",
        [GRADIENT, fp16(11, 128, format="nhwc"), TABLE, TABLE],
        LENGTHS,
        Status.ERROR_INVALID_TENSOR_INI_MATCH,
        "in 1 (k_embedded_grad) is format nhwc",
    ),
    ("1-d", [*GOOD[:3], fp16(64)], LENGTHS, Status.ERROR_INVALID_TENSOR_DIM, "1 dims [64]"),
    ("3-d", [fp16(1, 11, 128), *GOOD[1:]], LENGTHS, Status.ERROR_INVALID_TENSOR_DIM, "3 dims"),
    (
        "gradients differ",
        [GRADIENT, fp16(12, 128), TABLE, TABLE],
        LENGTHS,
        Status.ERROR_INVALID_TENSOR_SIZE,
        "[11, 128] and in 1 (k_embedded_grad) is [12, 128]",
    ),
    (
        "tables differ",
        [*GOOD[:3], fp16(65, 128)],
        LENGTHS,
        Status.ERROR_INVALID_TENSOR_SIZE,
        "[64, 128] and in 3 (sin) is [65, 128]",
    ),
    (
        "hidden size",
        [fp16(11, 385), fp16(11, 385), TABLE, TABLE],
        LENGTHS,
        Status.ERROR_INVALID_TENSOR_DIM,
        "hidden size 385; it must be a multiple of 128",
    ),
    (
        "head size",
        [GRADIENT, GRADIENT, fp16(64, 64), fp16(64, 64)],
        LENGTHS,
        Status.ERROR_INVALID_TENSOR_DIM,
        "64 columns; it must have 128",
    ),
    (
        "longer than the tables",
        [GRADIENT, GRADIENT, fp16(3, 128), fp16(3, 128)],
        LENGTHS,
        Status.ERROR_INVALID_PARAM,
        "qSeqLen[2] is 4; it must be 1 to 3",
    ),
]
INPUT_IDS = [case[0] for case in INPUTS]


@pytest.mark.parametrize("case", INPUTS, ids=INPUT_IDS)
def test_infer_shape_and_setup_refuse(
    case: tuple[str, list[TensorDesc], list[int], Status, str],
) -> None:
    _, inputs, lengths, status, text = case
    operation = create_operation("RopeGradOperation", {"qSeqLen": lengths})
    with pytest.raises(OperationError) as caught:
        operation.infer_shape(inputs)
    assert (caught.value.status, caught.value.stage) == (status.name, "infer_shape")
    assert text in str(caught.value)
    # Descs serve setup as well: it looks at no data.
    with pytest.raises(OperationError) as caught:
        operation.setup(inputs, [GRADIENT, GRADIENT], Context())
    assert (caught.value.status, caught.value.stage) == (status.name, "setup")


# Inputs that fail two checks: the one that stands first in the library decides.
ORDER = [
    ([fp16(), fp16(0, 128), TABLE], Status.ERROR_INVALID_IN_TENSOR_NUM),
    ([fp16(), fp16(0, 128), TABLE, TABLE], Status.ERROR_INVALID_TENSOR_DIM),
    ([fp16(0, 128), fp16(), TABLE, TABLE], Status.ERROR_INVALID_TENSOR_SIZE),
    (
        [fp16(0, 128), GRADIENT, TensorDesc("int8", "nd", (1,)), TABLE],
        Status.ERROR_INVALID_TENSOR_SIZE,
    ),
    (
        [GRADIENT, GRADIENT, TensorDesc("int8", "nd", (1,)), TABLE],
        Status.ERROR_INVALID_TENSOR_INI_MATCH,
    ),
    ([GRADIENT, fp16(12, 128), fp16(64), TABLE], Status.ERROR_INVALID_TENSOR_DIM),
    ([fp16(11, 100), fp16(12, 100), TABLE, TABLE], Status.ERROR_INVALID_TENSOR_SIZE),
    ([fp16(11, 100), fp16(11, 100), TABLE, fp16(1, 64)], Status.ERROR_INVALID_TENSOR_SIZE),
    ([GRADIENT, GRADIENT, fp16(1, 64), fp16(1, 64)], Status.ERROR_INVALID_TENSOR_DIM),
]


@pytest.mark.parametrize(("inputs", "status"), ORDER)
def test_order_of_the_input_checks(inputs: list[TensorDesc], status: Status) -> None:
    operation = create_operation("RopeGradOperation", {"qSeqLen": LENGTHS})
    with pytest.raises(OperationError) as caught:
        operation.infer_shape(inputs)
    assert caught.value.status == status.name


def test_setup_checks_outputs() -> None:
    operation = create_operation("RopeGradOperation", {"qSeqLen": LENGTHS})
    for outputs, status in (
        ([GRADIENT], Status.ERROR_INVALID_IN_TENSOR_NUM),
        ([GRADIENT, fp16(0)], Status.ERROR_INVALID_TENSOR_SIZE),
        ([GRADIENT, TensorDesc("float", "nd", (11, 128))], Status.ERROR_INVALID_TENSOR_INI_MATCH),
    ):
        with pytest.raises(OperationError) as caught:
            operation.setup(GOOD, outputs, Context())
        assert caught.value.status == status.name


def test_setup_without_context() -> None:
    operation = create_operation("RopeGradOperation", {"qSeqLen": LENGTHS})
    with pytest.raises(OperationError) as caught:
        operation.setup(GOOD, [GRADIENT, GRADIENT], None)
    assert (caught.value.status, caught.value.stage) == ("ERROR_INVALID_PARAM", "setup")


def test_good_shapes() -> None:
    operation = create_operation("RopeGradOperation", {"qSeqLen": LENGTHS})
    bridge = [GRADIENT, fp16(11, 128, format="nchw"), TABLE, TABLE]
    assert operation.infer_shape(bridge) == [GRADIENT, GRADIENT]
    assert operation.setup(bridge, [GRADIENT, GRADIENT], Context()) == 0


def test_nothing_compares_the_lengths_with_the_rows() -> None:
    for lengths in ([1], [64] * 32):
        operation = create_operation("RopeGradOperation", {"qSeqLen": lengths})
        assert operation.infer_shape(GOOD) == [GRADIENT, GRADIENT]


def test_setup_takes_arrays_that_do_not_exist_in_memory() -> None:
    # 100 GiB of address space that nobody has touched.
    huge = np.broadcast_to(np.float16(0), (100 * 2**30 // 256, 128))
    operation = create_operation("RopeGradOperation", {"qSeqLen": [64]})
    table = np.zeros((64, 128), np.float16)
    assert operation.setup([huge, huge, table, table], [huge, huge], Context()) == 0


def test_error_survives_pickling() -> None:
    import pickle

    error = OperationError("ERROR_INVALID_TENSOR_DIM", "setup", "text")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.status, copy.stage, copy.message, str(copy)) == (
        error.status,
        error.stage,
        error.message,
        str(error),
    )


def test_status_numbers() -> None:
    numbers = {status.name: status.value for status in Status}
    assert numbers["NO_ERROR"] == 0
    assert numbers["ERROR_INVALID_TENSOR_INI_MATCH"] == 13
    assert numbers["ERROR_OUT_OF_DEVICE_MEMORY"] == 26
    assert sorted(numbers.values()) == [*range(11), *range(12, 18), 26]
