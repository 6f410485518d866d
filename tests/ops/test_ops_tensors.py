"""Tensors and their descs, and what execute refuses of them."""

from __future__ import annotations

import sys
import types
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ascend_sim.errors import ConfigError, HostError
from ops import Context, OperationError, Tensor, TensorDesc, create_operation
from ops.operation import Operation

GRADIENT = TensorDesc("float16", "nd", (11, 256))
TABLE = TensorDesc("float16", "nd", (64, 128))
INPUTS, OUTPUTS = [GRADIENT, GRADIENT, TABLE, TABLE], [GRADIENT, GRADIENT]


def rope_grad(lengths: list[int]) -> Operation:
    return create_operation("RopeGradOperation", {"qSeqLen": lengths})


def test_dtype_names() -> None:
    pairs = {
        "float": "float32", "bf16": "bfloat16", "double": "float64", "half": "float16", "bool": "bool",
        "complex64": "complex64", "complex128": "complex128", "uint8": "uint8",
    }  # fmt: skip
    for given, name in pairs.items():
        assert TensorDesc(given, "nd", (1,)).dtype == name
    assert TensorDesc("complex128", "nd", (2,)).nbytes == 32
    with pytest.raises(ConfigError, match="did you mean 'float16'"):
        TensorDesc("flot16", "nd", (1,))
    with pytest.raises(ConfigError, match="did you mean 'fractal_z'"):
        TensorDesc("float16", "fractal_y", (1,))
    with pytest.raises(ConfigError, match="integers"):
        TensorDesc("float16", "nd", (1.5,))  # type: ignore[arg-type]


def test_sizes_of_descs() -> None:
    assert TensorDesc("float", "nd", (3, 4)).nbytes == 48
    assert TensorDesc("float", "nd", ()).is_empty
    assert TensorDesc("float", "nd", (3, 0)).is_empty
    assert TensorDesc("float", "nd", (-1, -1)).size == 0


def test_tensor_formats() -> None:
    array = np.zeros((2, 3), np.float16)
    assert Tensor(array, "nchw").desc == TensorDesc("float16", "nd", (2, 3))
    assert Tensor(array, "nhwc").desc.format == "nhwc"
    assert Tensor(np.zeros(1, ml_dtypes.bfloat16)).desc.dtype == "bfloat16"


@pytest.mark.parametrize("value", [[1.0], None, 3])
def test_no_array(value: object) -> None:
    with pytest.raises(HostError, match="numpy array"):
        Tensor(value)


def test_foreign_byte_order() -> None:
    with pytest.raises(HostError, match="byte order"):
        Tensor(np.zeros(3, np.dtype(np.float16).newbyteorder()))


class FakeTorchTensor:
    """Stands for torch's tensor where torch is not installed: the few members that are used."""

    def __init__(self, array: np.ndarray, dtype: str, device: str = "cpu") -> None:
        self.array, self.dtype = array, dtype
        self.device = types.SimpleNamespace(type=device)

    def detach(self) -> FakeTorchTensor:
        return self

    def view(self, dtype: str) -> FakeTorchTensor:
        return FakeTorchTensor(self.array.view(np.int16), dtype)

    def numpy(self) -> np.ndarray:
        if self.dtype == "bfloat16":
            raise TypeError("numpy has no bfloat16")
        return self.array


def test_torch_tensors_share_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = types.SimpleNamespace(Tensor=FakeTorchTensor, bfloat16="bfloat16", int16="int16")
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    array = np.zeros(4, np.float16)
    tensor = Tensor(FakeTorchTensor(array, "float16"))
    tensor.array[0] = 1
    assert array[0] == 1
    wide = Tensor(FakeTorchTensor(np.array([0x3F80], np.uint16), "bfloat16"))
    assert (wide.desc.dtype, float(wide.array[0])) == ("bfloat16", 1.0)
    with pytest.raises(HostError, match="cpu"):
        Tensor(FakeTorchTensor(array, "float16", device="npu"))


# Execute refuses what the device could not take


def executed(change: Any) -> None:
    context = Context()
    operation = rope_grad([1])
    inputs = [np.zeros(desc.shape, np.float16) for desc in INPUTS]
    outputs = [np.zeros(desc.shape, np.float16) for desc in OUTPUTS]
    operation.setup(inputs, outputs, context)
    change(inputs, outputs)
    operation.execute(inputs, outputs, context)


def test_execute_needs_a_setup() -> None:
    context = Context()
    operation = rope_grad([1])
    arrays = [np.zeros(desc.shape, np.float16) for desc in [*INPUTS, *OUTPUTS]]
    with pytest.raises(OperationError) as caught:
        operation.execute(arrays[:4], arrays[4:], context)
    assert (caught.value.status, caught.value.stage) == ("ERROR_OPERATION_NULL_RUNNER", "execute")


def test_execute_takes_only_what_was_set_up() -> None:
    def change(inputs: list[Any], outputs: list[Any]) -> None:
        inputs[0] = np.zeros((12, 256), np.float16)

    with pytest.raises(HostError, match="call setup"):
        executed(change)


def test_execute_refuses_non_contiguous_arrays() -> None:
    def change(inputs: list[Any], outputs: list[Any]) -> None:
        inputs[1] = np.zeros((256, 11), np.float16).T

    with pytest.raises(HostError, match=r"in 1 \(k_embedded_grad\) is not contiguous") as caught:
        executed(change)
    assert caught.value.finding.kind == "HOST"


def test_execute_refuses_read_only_outputs() -> None:
    def change(inputs: list[Any], outputs: list[Any]) -> None:
        outputs[0].flags.writeable = False

    with pytest.raises(HostError, match=r"out 0 \(q_grad\) is read-only"):
        executed(change)


def test_descs_and_tensors_print_readably() -> None:
    assert str(GRADIENT) == "float16 nd [11, 256]"
    assert repr(Tensor(np.zeros((2, 3), np.float32))) == "Tensor(float32 nd [2, 3])"
