"""What fits no form, what nothing here can do, and names that are not pyasc's: each says what there is instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.lang import refused
from ascend_sim.lang.mistakes import mistake


def _local(number: int) -> asc.LocalTensor:
    return asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, 1024 * number, 256)


def _error_of(call: Callable[[], Any]) -> sim.KernelError:
    def kernel() -> None:
        call()

    with pytest.raises(sim.KernelError) as caught:
        sim.launch(kernel)
    return caught.value


@pytest.mark.parametrize(
    ("call", "words"),
    [
        pytest.param(
            lambda: asc.add(_local(0), _local(1), _local(2), repeats=3),
            ["add: got an unexpected keyword argument 'repeats'; did you mean 'repeat_times'?",
             "in one of these forms: count | mask, repeat_times, repeat_params | mask list",
             "Given: lambda: asc.add(_local(0), _local(1), _local(2), repeats=3)"],
            id="unknown keyword",
        ),
        pytest.param(
            lambda: asc.add(_local(0), _local(1)),
            ["add: missing 1 required positional argument: 'src1'. It is add(dst, src0, src1, "],
            id="too few",
        ),
        pytest.param(
            lambda: asc.add(_local(0), _local(1), _local(2), mask=64),
            ["add got a mask without repeat_times and repeat_params (strides); given: mask=64"],
            id="half a form",
        ),
        pytest.param(
            lambda: asc.gather(_local(0), _local(1), _local(2), 0, 64, 1, 8, 9),
            ["gather: takes from 4 to 7 positional arguments but 8 were given",
             "count | mask, repeat_times, dst_rep_stride"],
            id="too many",
        ),
        pytest.param(
            lambda: asc.BinaryRepeatParams(dst_stride=3),  # type: ignore[call-arg]
            ["BinaryRepeatParams: got an unexpected keyword argument 'dst_stride'; did you mean 'dst_rep_stride'?",
             "It is BinaryRepeatParams(dst_blk_stride=1, "],
            id="a structure",
        ),
        pytest.param(
            lambda: asc.TPipe().init_buffer(queue=3),  # type: ignore[call-arg]
            ["init_buffer: got an unexpected keyword argument 'queue'; did you mean 'que'? It is init_buffer("],
            id="a method",
        ),
    ],
)  # fmt: skip
def test_a_call_that_fits_no_form(call: Callable[[], Any], words: list[str]) -> None:
    error = _error_of(call)
    assert (error.finding.kind, error.finding.code) == ("ILLEGAL_PARAM", "form")
    assert error.finding.file == __file__
    for part in words:
        assert part in str(error), str(error)


def test_a_type_error_of_the_kernels_own_stays_what_it_is() -> None:
    def helper(x: int) -> int:
        return x

    def kernel() -> None:
        helper()  # type: ignore[call-arg]

    with pytest.raises(TypeError, match=r"helper\(\) missing 1 required"):
        sim.launch(kernel)

    def adding() -> None:
        None + 1  # type: ignore[operator]  # noqa: B018

    with pytest.raises(TypeError, match="unsupported operand"):
        sim.launch(adding)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Add", "did you mean 'add'"), ("DataCopyPad", "did you mean 'data_copy_pad'"), ("TQeue", "did you mean 'TQue'")],
)  # fmt: skip
def test_a_name_that_is_not_there(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(asc, name)


@pytest.mark.parametrize("name", sorted(refused.NOT_SIMULATED))
def test_what_is_not_simulated_says_so_when_it_is_used(name: str) -> None:
    thing, _, method = name.partition(".")

    def kernel() -> None:
        call = getattr(asc, thing)
        if method:
            positions = [asc.TPosition.GM, asc.TPosition.VECIN] if thing == "TQueBind" else []
            call = getattr(call(*positions), method)
            call(*[0] * len(inspect.signature(call).parameters))
        else:
            call()

    with pytest.raises(sim.UnsupportedError, match=f"^{name}: "):
        sim.launch(kernel)


@pytest.mark.parametrize(
    "make",
    [
        asc.LoadData2DParamsV2, asc.LoadData2dTransposeParamsV2, asc.LoadData3DParamsV1, asc.LoadData3DParamsV2Pro,
    ],
)  # fmt: skip
def test_loads_of_other_chips_are_refused_with_their_parameters(make: Any) -> None:
    def kernel() -> None:
        a1 = asc.LocalTensor(asc.half, asc.TPosition.A1, 0, 256)
        a2 = asc.LocalTensor(asc.half, asc.TPosition.A2, 0, 256)
        transposing = make is asc.LoadData2dTransposeParamsV2
        load = asc.load_data_with_transpose if transposing else asc.load_data
        load(a2, a1, make())

    with pytest.raises(sim.KernelError, match=make.__name__):
        sim.launch(kernel, kernel_type="AIC_ONLY")


def test_a_mistake_on_the_host_is_an_error_of_the_simulators() -> None:
    with pytest.raises(sim.HostError) as caught:
        mistake("HOST", "struct-field", "as said")
    assert (caught.value.finding.code, str(caught.value)) == ("struct-field", "as said")
    with pytest.raises(sim.OperandError):
        asc.array(asc.float32, "four")  # type: ignore[call-overload]


def test_slices_that_do_not_fit() -> None:
    def kernel(x: asc.GlobalAddress, dst: Any, src: Any) -> None:
        x_gm = asc.GlobalTensor()
        x_gm.set_global_buffer(x)
        asc.data_copy(_local(0), x_gm, dst, src, 1)

    x = np.zeros(256, np.float32)
    one = asc.SliceInfo(0, 31, 0, 2, 64)
    for dst, src, words in (
        ([asc.SliceInfo(0, 15, 0, 2, 64)], [one], "1 bursts"),
        ([one], [asc.SliceInfo(0, 30, 0, 2, 64)], "ends inside a burst"),
        ([asc.SliceInfo(0, 34, 3, 2, 64)], [asc.SliceInfo(0, 31, 0, 2, 64)], "multiple of 32"),
        ([one], [asc.SliceInfo(0, 31, 0, 2, 16)], "shape_value"),
        (one, [one], "list of 1 SliceInfo"),
    ):
        with pytest.raises(sim.KernelError, match=words):
            sim.launch(lambda x, d=dst, s=src: kernel(x, d, s), x)
