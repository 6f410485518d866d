"""Runners and their pool, contexts, tiling constants, tensors."""

from __future__ import annotations

import gc
import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ascend_sim.config import load_chip
from ascend_sim.errors import ConfigError, HostError, SimulatorBug
from ops import (
    Context,
    OperationError,
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
