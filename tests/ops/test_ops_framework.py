"""Runners and their pool, contexts, tiling constants, tensors."""

from __future__ import annotations

import gc
import json
import struct
import sys
import types
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ascend_sim.config import load_chip
from ascend_sim.errors import ConfigError, HostError, SimulatorBug
from ops import (
    Context,
    OperationError,
    Tensor,
    TensorDesc,
    create_operation,
    find_operator,
    list_operators,
)
from ops.kernel_side import (
    KernelCall,
    TilingFailure,
    kernel_operation,
    register_kernel_operation,
)
from ops.operation import Operation
from ops.param import Param
from ops.rope_grad.kernel_side import KernelParam, largest_max_process_num
from ops.rope_grad.operation import RopeGradOpsRunner, RopeGradParam
from ops.rope_grad.tiling import record_size, tile
from ops.runner import POOL_PLACES, RunnerPool, register_runner
from ops.soc import chip_of
from ops.status import Refusal

GRADIENT = TensorDesc("float16", "nd", (11, 256))
TABLE = TensorDesc("float16", "nd", (64, 128))
INPUTS, OUTPUTS = [GRADIENT, GRADIENT, TABLE, TABLE], [GRADIENT, GRADIENT]


def rope_grad(lengths: list[int]) -> Operation:
    return create_operation("RopeGradOperation", {"qSeqLen": lengths})


def set_up(
    operation: Operation, context: Context, inputs: list[TensorDesc] = INPUTS
) -> RopeGradOpsRunner:
    operation.setup(inputs, inputs[:2], context)
    assert isinstance(operation.runner, RopeGradOpsRunner)
    return operation.runner


# The runner pool


def test_pool_hands_out_the_first_free_place() -> None:
    pool = RunnerPool(RopeGradOpsRunner)
    first, second = RopeGradParam((1,)), RopeGradParam((2,))
    runners = [pool.acquire(first) for _ in range(3)]
    assert pool.in_use == 3
    pool.release(runners[1])
    again = pool.acquire(second)
    assert again is runners[1]
    assert again.param == second
    assert len({id(runner) for runner in runners}) == 3


def test_full_pool_makes_runners_outside() -> None:
    pool = RunnerPool(RopeGradOpsRunner)
    inside = [pool.acquire(RopeGradParam((1,))) for _ in range(POOL_PLACES)]
    outside = pool.acquire(RopeGradParam((2,)))
    assert pool.in_use == POOL_PLACES == 64
    assert all(outside is not runner for runner in inside)
    pool.release(outside)
    assert pool.in_use == POOL_PLACES
    pool.release(inside[63])
    assert pool.acquire(RopeGradParam((3,))) is inside[63]


def test_an_operation_that_goes_gives_its_place_back() -> None:
    context = Context()
    operation = rope_grad([1])
    runner = set_up(operation, context)
    assert context.pool("RopeGradOpsRunner").in_use == 1
    del operation
    gc.collect()
    assert context.pool("RopeGradOpsRunner").in_use == 0
    assert set_up(rope_grad([1]), context) is runner


def test_operations_at_work_have_runners_of_their_own() -> None:
    context = Context()
    operations = [rope_grad([1]) for _ in range(POOL_PLACES + 2)]
    runners = {id(set_up(operation, context)) for operation in operations}
    assert len(runners) == POOL_PLACES + 2


def test_set_param_drops_the_runner() -> None:
    context = Context()
    operation = rope_grad([1])
    runner = set_up(operation, context)
    operation.set_param({"qSeqLen": [2, 3]})
    assert operation.runner is None
    assert context.pool("RopeGradOpsRunner").in_use == 0
    assert json.loads(operation.param_json()) == {"qSeqLen": [2, 3]}
    assert set_up(operation, context) is runner
    assert runner.param == operation.param


def test_set_param_checks_all_but_the_reserved_bytes() -> None:
    operation = rope_grad([1])
    operation.set_param({"qSeqLen": [2], "rsv": [1]})
    with pytest.raises(OperationError, match=r"qSeqLen\[0\] is 0"):
        operation.set_param({"qSeqLen": [0]})
    assert json.loads(operation.param_json()) == {"qSeqLen": [2]}


def test_another_context_has_other_runners() -> None:
    operation = rope_grad([1])
    one, other = Context(), Context()
    runner = set_up(operation, one)
    assert set_up(operation, other) is not runner
    assert one.pool("RopeGradOpsRunner").in_use == 0
    assert other.pool("RopeGradOpsRunner").in_use == 1


def test_unregistered_runner_type() -> None:
    operation = rope_grad([1])
    operation.runner_type = "NoSuchRunner"  # type: ignore[misc]
    with pytest.raises(OperationError) as caught:
        operation.setup(INPUTS, OUTPUTS, Context())
    assert caught.value.status == "ERROR_OPERATION_NULL_RUNNER"


# Tiling is done again only where something changed


def test_tiling_is_kept() -> None:
    context = Context()
    operation = rope_grad([3, 4])
    runner = set_up(operation, context)
    set_up(operation, context)
    assert runner.tiling_count == 1
    operation.set_param({"qSeqLen": [3, 4]})
    set_up(operation, context)
    assert (runner.tiling_count, runner.param_updated) == (1, False)
    operation.set_param({"qSeqLen": [3, 5]})
    set_up(operation, context)
    assert runner.tiling_count == 2


def test_tiling_follows_the_shapes() -> None:
    context = Context()
    operation = rope_grad([3, 4])
    runner = set_up(operation, context)
    wider = TensorDesc("float16", "nd", (11, 512))
    set_up(operation, context, [wider, wider, TABLE, TABLE])
    assert runner.tiling_count == 2


def test_param_updated_only_where_it_differs() -> None:
    runner = RopeGradOpsRunner(RopeGradParam((1, 2)))
    assert runner.param_updated
    runner.param_updated = False
    runner.set_param(RopeGradParam((1, 2)))
    assert not runner.param_updated
    runner.set_param(RopeGradParam((2, 1)))
    assert runner.param_updated


# The graph, the kernel side and the tiling record


def test_graph() -> None:
    (node,) = RopeGradOpsRunner(RopeGradParam((1, 2))).setup_kernel_graph().nodes
    assert (node.operation, node.param) == ("RopeGradOperation", KernelParam((1, 2)))
    assert (len(node.inputs), len(node.outputs)) == (4, 2)
    assert list(kernel_operation(node.operation).kernels) == ["RopeGradKernel"]


def test_record_bytes() -> None:
    shapes = [(7, 384), (7, 384), (5, 128), (5, 128)]
    result = tile(shapes, (5, 2), 12288, 48)
    expected = bytearray(48)
    struct.pack_into("<q", expected, 0, 5)
    struct.pack_into("<q", expected, 8, 384)
    struct.pack_into("<q", expected, 16, 128)
    struct.pack_into("<q", expected, 24, 7)
    struct.pack_into("<q", expected, 32, 2)
    struct.pack_into("<i", expected, 40, 5)
    struct.pack_into("<i", expected, 44, 2)
    assert result.record == bytes(expected)
    assert result.block_dim == 3
    assert record_size(2) == 48


@pytest.mark.parametrize(
    ("heads", "cores", "blocks"), [(1, 48, 1), (48, 48, 48), (49, 48, 48), (64, 40, 40), (3, 2, 2)]
)
def test_block_dim(heads: int, cores: int, blocks: int) -> None:
    wide = (1, heads * 128)
    assert tile([wide, wide, (1, 128), (1, 128)], (1,), 12288, cores).block_dim == blocks


@pytest.mark.parametrize(
    ("shapes", "max_process_num"),
    [
        ([(1, 128), (1, 128), (1, 128), (1, 128)], 128),
        ([(1, 128), (1, 128), (1, 128), (1, 128)], 1),
        ([(1, 128), (1, 128), (1, 0), (1, 0)], 12288),
        ([(1, 192), (1, 192), (1, 128), (1, 128)], 12288),
    ],
)
def test_tiling_refuses(shapes: list[tuple[int, int]], max_process_num: int) -> None:
    with pytest.raises(TilingFailure):
        tile(shapes, (1,), max_process_num, 48)


def test_tiling_takes_one_more_than_the_head_size() -> None:
    tile([(1, 128), (1, 128), (1, 128), (1, 128)], (1,), 129, 48)


@pytest.mark.parametrize("batch", [0, 100_000])
def test_kernel_side_limits_the_batch(batch: int) -> None:
    with pytest.raises(TilingFailure):
        record_size(batch)
    assert record_size(99_999) == 40 + 4 * 99_999


def test_refused_tiling_is_told_at_execute() -> None:
    context = Context(tiling={"MAX_PROCESS_NUM": 128})
    operation = rope_grad([1])
    arrays = [np.zeros(desc.shape, np.float16) for desc in INPUTS]
    outputs = [np.zeros(desc.shape, np.float16) for desc in OUTPUTS]
    assert operation.setup(arrays, outputs, context) == 0
    with pytest.raises(HostError, match="head size 128 must be above 0 and smaller than") as caught:
        operation.execute(arrays, outputs, context)
    assert (caught.value.finding.kind, caught.value.finding.code) == ("HOST", "tiling-failed")
    assert not any(output.any() for output in outputs)


def test_largest_max_process_num() -> None:
    usable = load_chip("ascend910b1").memories.UB.usable
    assert usable == 196352
    assert largest_max_process_num(usable, 1) == 14016
    assert largest_max_process_num(usable, 2) == 7552
    for buffers in (1, 2):
        largest = largest_max_process_num(usable, buffers)
        blocks = 6 * buffers + 1
        assert blocks * largest * 2 <= usable < blocks * (largest + 16) * 2


# Contexts and constants


@pytest.mark.parametrize(
    ("tiling", "text"),
    [
        ({"MAX_PROCES_NUM": 4096}, "did you mean 'MAX_PROCESS_NUM'"),
        ({"BUFFER_NUM": 0}, "BUFFER_NUM is 0"),
        ({"BUFFER_NUM": -1}, "BUFFER_NUM is -1"),
        ({"MAX_PROCESS_NUM": 4096.0}, "MAX_PROCESS_NUM is 4096.0"),
        ({"MAX_PROCESS_NUM": "4096"}, "MAX_PROCESS_NUM is '4096'"),
        ({"BUFFER_NUM": True}, "BUFFER_NUM is True"),
    ],
)
def test_tiling_constants_are_checked(tiling: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        rope_grad([1]).setup(INPUTS, OUTPUTS, Context(tiling=tiling))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"numerics": "of"}, "did you mean 'off'"),
        ({"checks": "none"}, "error, collect, off"),
        ({"l2": "hot"}, "cold, warm"),
        ({"cores": 0}, "cores is 0"),
        ({"cores": 1.5}, "cores is 1.5"),
        ({"auto_sync": "on"}, "auto_sync is 'on'"),
        ({"chip": "ascend910b9"}, "ascend910b9"),
    ],
)
def test_context_options_are_checked(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Context(**options)


@pytest.mark.parametrize(
    ("soc", "chip"),
    [
        ("", "ascend910b1"),
        ("Ascend910B", "ascend910b1"),
        ("Ascend910B1", "ascend910b1"),
        ("Ascend910B3", "ascend910b3"),
        ("Ascend910B4-1", "ascend910b4"),
        ("Ascend910_9362", "ascend910_93"),
    ],
)
def test_soc_picks_the_chip(soc: str, chip: str) -> None:
    assert chip_of(soc) == chip
    assert Context().machine_for(soc).chip.name == chip
    assert Context(chip="ascend910b4").machine_for(soc).chip.name == "ascend910b4"


def test_soc_without_a_chip() -> None:
    with pytest.raises(ConfigError, match="no chip file for SoC 'Ascend910B9'"):
        chip_of("Ascend910B9")


def test_operators_are_found_by_name() -> None:
    assert "rope_grad" in [spec.name for spec in list_operators()]
    spec = find_operator("rope_grad")
    assert [constant.name for constant in spec.constants] == ["MAX_PROCESS_NUM", "BUFFER_NUM"]
    assert [constant.default for constant in spec.constants] == [12288, 1]
    with pytest.raises(ConfigError, match="did you mean 'rope_grad'"):
        find_operator("rope-grad")


# Tensors


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


# What other operators of the library need: several type columns, inputs that may be empty, runners of their own


class Mixed(Operation):
    """Two of three type columns alike; input 1 may be empty."""

    name = "MixedOperation"
    runner_type = "RopeGradOpsRunner"
    param_type = Param
    input_names = ("x", "bias", "scale")
    output_names = ("y",)
    type_columns = (
        ("float16", "float16", "float32", "float16"),
        ("bfloat16", "bfloat16", "float32", "bfloat16"),
    )

    def may_be_empty(self, index: int) -> bool:
        return index == 1

    def check_inputs(self, inputs: Sequence[TensorDesc]) -> None:
        """Nothing."""

    def infer_outputs(self, inputs: Sequence[TensorDesc]) -> list[TensorDesc]:
        return [inputs[0]]


def described(*dtypes: str, empty_bias: bool = False) -> list[TensorDesc]:
    shapes: list[tuple[int, ...]] = [(4,), () if empty_bias else (4,), (1,), (4,)]
    return [TensorDesc(dtype, "nd", shape) for dtype, shape in zip(dtypes, shapes, strict=False)]


def test_types_must_stand_in_one_column() -> None:
    operation = Mixed({}, "")
    for first in ("float16", "bf16"):
        assert operation.infer_shape(described(first, first, "float"))[0].dtype.endswith("16")
    with pytest.raises(OperationError, match=r"in 1 \(bias\) is bfloat16.*allowed: float16"):
        operation.infer_shape(described("float16", "bf16", "float"))
    with pytest.raises(OperationError, match="allowed: bfloat16 or float16"):
        operation.infer_shape(described("float", "bf16", "float"))


def test_empty_inputs_where_they_may_be() -> None:
    operation = Mixed({}, "")
    # An empty tensor's type does not matter.
    assert operation.infer_shape(described("float16", "bf16", "float", empty_bias=True))
    with pytest.raises(OperationError) as caught:
        operation.infer_shape([*described("float16", "float16"), TensorDesc("float", "nd", (0,))])
    assert caught.value.status == "ERROR_INVALID_TENSOR_SIZE"


def test_names_are_registered_once() -> None:
    with pytest.raises(SimulatorBug, match="two runner types are called RopeGradOpsRunner"):
        register_runner(RopeGradOpsRunner)
    with pytest.raises(SimulatorBug, match="two kernel operations are called RopeGradOperation"):
        register_kernel_operation(type(kernel_operation("RopeGradOperation")))
    with pytest.raises(SimulatorBug, match="did you mean 'RopeGradOperation'"):
        kernel_operation("RopeGradOperatio")


def test_kernel_side_checks_the_shapes_again() -> None:
    param = KernelParam((1,))
    with pytest.raises(Refusal) as caught:
        kernel_operation("RopeGradOperation").infer_shape(
            KernelCall(param, (GRADIENT, TABLE, TABLE, TABLE), (GRADIENT, GRADIENT))
        )
    assert caught.value.status.name == "ERROR_RT_FAIL"


def test_descs_and_tensors_print_readably() -> None:
    assert str(GRADIENT) == "float16 nd [11, 256]"
    assert repr(Tensor(np.zeros((2, 3), np.float32))) == "Tensor(float32 nd [2, 3])"
