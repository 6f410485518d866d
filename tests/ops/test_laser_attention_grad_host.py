"""The host side of laser_attention_grad: parameter, tensors, record, workspace, runner."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from ascend_sim.errors import ConfigError, HostError
from ops import Context, OperationError, TensorDesc, create_operation, find_operator
from ops.laser_attention_grad import inputs as data
from ops.laser_attention_grad.sizes import Sizes
from ops.laser_attention_grad.tiling import OFFSETS, SYSTEM_BYTES, Tiling, workspace_layout

NAME = "LaserAttentionGradOperation"
GOOD: dict[str, Any] = {"headNum": 4, "preTokens": 2048}
SIZES = Sizes(1, 4, 2, 4096, 4096, 128)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"headNum": 0}, "headNum is 0"),
        ({"headNum": -3}, "headNum is -3"),
        ({"inputLayout": "BSH"}, "inputLayout is 'BSH'; it must be BNSD or SBH"),
        ({"scaleValue": 0}, "scaleValue is 0.0"),
        ({"scaleValue": 1.25}, "scaleValue is 1.25; it must be above 0 and at most 1"),
        ({"scaleValue": float("nan")}, "scaleValue is nan"),
        ({"preTokens": 0}, "preTokens is 0; it must be at least 1"),
        ({"preTokens": 2147483647}, "preTokens is 2147483647; it must be a multiple of 256"),
        ({"innerPrecise": 0}, "innerPrecise is 0; it must be 1"),
        ({"headNum": 4.5}, "headNum is 4.5; it is an integer"),
        ({"inputLayout": 3}, "inputLayout is 3; it is a text"),
        ({"scaleValue": "1"}, "scaleValue is '1'; it is a number"),
        ({"emulate": {"mask_bit": "fp16"}}, "did you mean 'mask_bits'"),
        ({"emulate": {"mask_bits": "fp8"}}, "mask_bits is 'fp8'; it must be fp16 or bf16"),
        ({"emulate": {"dq_overrun": 1}}, "dq_overrun is 1; it must be True or False"),
        ({"emulate": 5}, "emulate is 5; it is a dict"),
    ],
)
def test_create_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationError) as caught:
        create_operation(NAME, GOOD | change)
    assert (caught.value.status, caught.value.stage) == ("ERROR_INVALID_PARAM", "create")
    assert message in caught.value.message


def test_default_param_does_not_pass() -> None:
    with pytest.raises(OperationError, match="headNum is 0"):
        create_operation(NAME, {})
    with pytest.raises(OperationError, match="multiple of 256"):
        create_operation(NAME, {"headNum": 1})


def test_first_failing_check_decides() -> None:
    """Reserved bytes come first, the SoC next, then the fields in their order."""
    bad = {"headNum": 0, "inputLayout": "", "scaleValue": 0, "preTokens": 7, "rsv": [0, 1]}
    with pytest.raises(OperationError, match=r"rsv\[1\] is 1"):
        create_operation(NAME, bad, soc="Ascend310P")
    with pytest.raises(OperationError, match="not of the 910B family"):
        create_operation(NAME, bad | {"rsv": []}, soc="Ascend310P")
    with pytest.raises(OperationError, match="inputLayout"):
        create_operation(NAME, bad | {"rsv": [], "headNum": 1})


def test_printed_parameter_has_the_librarys_fields_only() -> None:
    operation = create_operation(NAME, GOOD | {"emulate": {"mask_bits": "bf16"}})
    assert operation.param.to_dict() == {
        "headNum": 4, "inputLayout": "BNSD", "scaleValue": 0.08838834764831843, "keepProb": 1.0, "preTokens": 2048,
        "nextTokens": 1, "sparseMode": 0, "innerPrecise": 1,
    }  # fmt: skip


def test_shapes_of_the_outputs() -> None:
    operation = create_operation(NAME, GOOD)
    outputs = operation.infer_shape(data.descs(SIZES, has_mask=True))
    assert [desc.shape for desc in outputs] == [
        (1, 4, 4096, 128), (1, 2, 4096, 128), (1, 2, 4096, 128), (1, 4, 4096, 128),
    ]  # fmt: skip


def test_sbh_with_less_than_one_key_head_ends_the_process() -> None:
    sizes = Sizes(1, 4, 4, 2048, 2048, 192, "SBH")
    descs = data.descs(sizes, has_mask=False)
    descs[1] = TensorDesc("bfloat16", "nd", (2048, 1, 128))
    operation = create_operation(NAME, GOOD | {"inputLayout": "SBH"})
    with pytest.raises(HostError, match="modulo 0 heads"):
        operation.infer_shape(descs)


def tiling(sizes: Sizes = SIZES, **options: Any) -> Tiling:
    values = {"scale": 0.5, "pre_tokens": 2048, "has_mask": True, "mask_rows": 4096, "cores": 24}
    return Tiling(sizes, **(values | options))


def test_record_byte_by_byte() -> None:
    """Offsets, types and values typed from the library's structure, not from the code under test."""
    record = tiling().record()
    assert len(record) == 512
    ints = struct.unpack_from("<15i", record, 0)
    assert ints == (1, 4, 4096, 128, 24, 16, 1, 1, 1, 2, 2048, 4096, 4096, 4096, 1)
    assert struct.unpack_from("<f", record, 60) == (0.5,)
    assert struct.unpack_from("<4i", record, 64) == (0, 0, 0, 4096)
    query, key = 4 * 4096 * 128, 2 * 4096 * 128
    assert struct.unpack_from("<4q", record, 80) == (query, key, key, 16288)
    share = (32, 16, 43691, 43690)  # of 2097152 elements over 48 vector cores
    assert struct.unpack_from("<4q", record, 112) == share
    half = (16, 32, 21846, 21845)
    assert struct.unpack_from("<4q", record, 144) == half
    assert struct.unpack_from("<4q", record, 176) == half
    scores = 24 * 16 * 128 * 128 * 2 * 4 * 2 + 26 * 2**20
    assert struct.unpack_from("<qi", record, 208) == (scores // 4, 3)
    assert record[220:] == bytes(292)


def test_record_of_other_problems() -> None:
    whole = tiling(has_mask=False, mask_rows=0, pre_tokens=256).fields()
    assert (whole["isTriangle"], whole["sparseMode"], whole["windowLen"]) == (0, 0, 0)
    sbh = tiling(Sizes(2, 3, 3, 512, 512, 192, "SBH"), pre_tokens=512).fields()
    assert (sbh["inputLayout"], sbh["headDim"], sbh["sparseMode"]) == (0, 192, 0)
    assert (sbh["attenType"], sbh["windowLen"]) == (0, 512)


def test_paths_and_tiling_ids() -> None:
    assert (tiling().path, tiling().tiling_id) == ("SPARSE", 2)
    assert (tiling(pre_tokens=4096).path, tiling(pre_tokens=4096).tiling_id) == ("BAND-128", 3)
    assert tiling(Sizes(1, 1, 1, 256, 256, 192), pre_tokens=256).path == "BAND-192"
    assert tiling(Sizes(1, 1, 1, 256, 256, 192, "SBH"), pre_tokens=256).path == "BAND-192-SBH"


def test_a_part_with_25_cores_launches_24() -> None:
    assert tiling(cores=25).blocks == 24
    assert tiling(cores=25).fields()["blockDim"] == 25
    assert tiling(cores=20).blocks == 20


@pytest.mark.parametrize(
    ("tokens", "head_dim", "cores", "extra"),
    # batch * heads * rows in units of 256: the last of 48 or 40 vector cores goes past the end of dQ by so much
    [(1, 128, 24, 16), (2, 128, 24, 32), (3, 128, 24, 0), (1, 192, 24, 0), (2, 192, 24, 0)]
    + [(t, 128, 20, (32, 24, 16, 8, 0)[t - 1]) for t in range(1, 6)]
    + [(t, 192, 20, (8, 16, 24, 32, 0)[t - 1]) for t in range(1, 6)],
)
def test_overrun_of_post_processing(tokens: int, head_dim: int, cores: int, extra: int) -> None:
    sizes = Sizes(1, 1, 1, tokens * 256, 256, head_dim)
    assert tiling(sizes, cores=cores).overrun == extra


def test_workspace() -> None:
    """Regions follow one another behind the system's 16 MiB; the host's size has room for all of them."""
    sizes = Sizes(2, 4, 2, 512, 256, 192)
    regions = workspace_layout(sizes, 24)
    query, key, value = 2 * 4 * 512 * 192, 2 * 2 * 256 * 256, 2 * 2 * 256 * 128
    scores = 24 * 16 * 16384 * 2 * 4
    assert regions.query_grad == SYSTEM_BYTES == 16 * 2**20
    assert regions.key_grad == regions.query_grad + 4 * query
    assert regions.value_grad == regions.key_grad + 4 * key
    assert regions.scores == regions.value_grad + 4 * value
    assert regions.score_grads == regions.scores + scores
    assert regions.query == regions.score_grads + scores
    assert regions.key == regions.query + 2 * query
    assert regions.value == regions.key + 2 * key
    assert regions.attention == regions.value + 2 * value
    assert regions.attention_grad == regions.attention + 2 * (2 * 4 * 512 * 128)
    problem = tiling(sizes, pre_tokens=512, has_mask=False)
    assert regions.end <= problem.workspace_bytes
    assert problem.cleared_bytes == regions.scores
    assert problem.workspace_bytes == (
        4 * (query + key + value) + 2 * scores + 26 * 2**20
        + 2 * (query + key + value + 2 * 2 * 4 * 512 * 128)
    )  # fmt: skip


def test_fields_lie_apart() -> None:
    ends = sorted((offset, name) for name, offset in OFFSETS.items())
    starts = [offset for offset, _ in ends]
    assert len(set(starts)) == len(starts)
    assert starts[:20] == list(range(0, 80, 4))
    assert starts[20:] == [*range(80, 209, 8), 216]


def test_setup_gives_the_workspace_size_and_one_node() -> None:
    operation = create_operation(NAME, GOOD)
    descs = data.descs(SIZES, has_mask=True)
    size = operation.setup(descs, operation.infer_shape(descs), Context(cores=24))
    assert size == tiling(scale=0.08838834764831843).workspace_bytes
    assert operation.runner is not None
    (node,) = operation.runner.setup_kernel_graph().nodes
    assert (node.inputs, node.outputs) == ((0, 1, 2, 3, 4, 5, 7, 8, 9, 11), (0, 1, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "SBH", "head_dim": 128}, "with --layout SBH it is 192"),
        ({"head_dim": 64}, "--head-dim is 64; it must be 128 or 192"),
        ({"mask": "casual"}, "did you mean 'causal'"),
        ({"mask_bits": "fp8"}, "allowed: fp16, bf16"),
        ({"scale": "x"}, "--scale is 'x'; it must be a number"),
        ({"seq": 0}, "--seq is 0"),
        ({"seq": 384}, "--seq is 384; it must be a multiple of 256"),
        ({"kv_seq": 100}, "--kv-seq is 100; it must be a multiple of 256"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        find_operator("laser_attention_grad").run(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 3, "kv_heads": 2}, "do not divide headNum 3"),
        ({"seq": 512, "kv_seq": 256}, "as many queries as keys"),
        ({"pre_tokens": 1024}, "fewer than preTokens 1024"),
        ({"heads": 513}, "512 at most"),
    ],
)
def test_sizes_are_refused_before_data_is_made(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationError, match=message):
        find_operator("laser_attention_grad").run(options)


def test_a_file_gives_sizes_and_tensors(tmp_path: Any) -> None:
    sizes = Sizes(1, 1, 1, 256, 256, 128)
    tensors = dict(zip(data.GIVEN, data.random_tensors(sizes, 3), strict=True))
    path = tmp_path / "tensors.npz"
    np.savez(path, **tensors)
    read = data.read_tensors(path)
    for name, array in tensors.items():
        np.testing.assert_array_equal(read[name].view(np.uint16), array.view(np.uint16))
    assert data.sizes_of_file(path, read) == sizes
    np.savez(path, **(tensors | {"query": tensors["query"].astype(np.float32)}))
    with pytest.raises(ConfigError, match="query is float32; it must be bfloat16"):
        data.read_tensors(path)
    np.savez(path, **tensors, atten_musk=tensors["key"])
    with pytest.raises(ConfigError, match="did you mean 'atten_mask'"):
        data.read_tensors(path)
