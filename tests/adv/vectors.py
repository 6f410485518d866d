"""A kernel around one call on vectors in UB: inputs from GM, outputs to GM, everything handed over by flags."""

from __future__ import annotations

from typing import Any

import numpy as np

import ascend_sim as sim
from ascend_sim import asc
from ascend_sim.run import Run

E = asc.HardEvent


@asc.jit(auto_sync=False)
def around(call: Any, temporary: Any, shared: Any, *arrays: Any) -> None:
    """`arrays`: outputs, then inputs; `shared` says how many are outputs. `temporary`: bytes of a buffer, or None."""
    pipe = asc.TPipe()
    tensors, places = [], []
    for address in arrays:
        place = asc.GlobalTensor()
        place.set_global_buffer(address)
        size = address.length // address.dtype.size
        buffer = asc.TBuf(asc.TPosition.VECCALC)
        pipe.init_buffer(buffer, max(address.length, 32))
        tensors.append(buffer.get(address.dtype, size))
        places.append(place)
    room = None
    if temporary is not None:
        buffer = asc.TBuf(asc.TPosition.VECCALC)
        pipe.init_buffer(buffer, max(temporary, 32))
        room = buffer.get(asc.uint8)
    for tensor, place in zip(tensors[shared:], places[shared:], strict=True):
        asc.data_copy(tensor, place, tensor.get_size())
    asc.set_flag(E.MTE2_V, 0)
    asc.wait_flag(E.MTE2_V, 0)
    call(*tensors, **({} if room is None else {"temp_buffer": room}))
    asc.set_flag(E.V_MTE3, 0)
    asc.wait_flag(E.V_MTE3, 0)
    for tensor, place in zip(tensors[:shared], places[:shared], strict=True):
        asc.data_copy(place, tensor, tensor.get_size())


def run(
    call: Any, outputs: list[Any], inputs: list[Any], temporary: int | None = None, **options: Any
) -> Run:
    """Run a call on arrays whose sizes are multiples of 32 bytes; outputs are written in place. It finds nothing."""
    done = sim.launch(around, call, temporary, len(outputs), *outputs, *inputs, **options)
    assert done.findings == []
    return done


def apply(
    function: Any, *inputs: Any, temporary: int | None = None, count: int | None = None
) -> Any:
    """The result of an element-wise function (dst, sources…, count=…) in its first source's type."""
    out = np.zeros_like(inputs[0])
    size = inputs[0].size if count is None else count

    def call(dst: Any, *sources: Any, **named: Any) -> None:
        if count is not None:  # what the function leaves alone
            asc.duplicate(dst, 0.0, dst.get_size())
            asc.pipe_barrier(asc.PipeID.PIPE_V)
        function(dst, *sources, count=size, **named)

    run(call, [out], list(inputs), temporary)
    return out
