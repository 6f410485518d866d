"""y = x + bias on queues: tile size, buffers, cores, and where the pipe object lives."""

from __future__ import annotations

from functools import partial

import numpy as np

from ascend_sim import asc
from ascend_sim.accuracy import Record, time_launch, times

from ._kit import pieces, share, window


def add_bias(x, bias, y, count: int, tile: int, buffers: int, adds: int):
    """Walk a core's part tile by tile through queues of `buffers` slots; `adds` equal Adds a tile."""
    first, own = share(count, asc.get_block_idx(), asc.get_block_num())
    x_gm, bias_gm, y_gm = (window(address, first) for address in (x, bias, y))
    pipe = asc.TPipe()
    x_queue = asc.TQue(asc.TPosition.VECIN, buffers)
    bias_queue = asc.TQue(asc.TPosition.VECIN, buffers)
    y_queue = asc.TQue(asc.TPosition.VECOUT, buffers)
    for queue in (x_queue, bias_queue, y_queue):
        pipe.init_buffer(queue, buffers, tile * 2)
    for start, length in pieces(own, tile):
        a = x_queue.alloc_tensor(x.dtype)
        asc.data_copy(a, x_gm[start:], length)
        x_queue.enque(a)
        b = bias_queue.alloc_tensor(x.dtype)
        asc.data_copy(b, bias_gm[start:], length)
        bias_queue.enque(b)
        a, b = x_queue.deque(x.dtype), bias_queue.deque(x.dtype)
        c = y_queue.alloc_tensor(x.dtype)
        for _ in range(adds):
            asc.add(c, a, b, length)
        x_queue.free_tensor(a)
        bias_queue.free_tensor(b)
        y_queue.enque(c)
        c = y_queue.deque(x.dtype)
        asc.data_copy(y_gm[start:], c, length)
        y_queue.free_tensor(c)


def simulate(record: Record) -> dict:
    params = record.params
    x, bias, y = (np.zeros(record.shape[0], np.float16) for _ in range(3))
    kernel = partial(
        add_bias,
        count=record.shape[0],
        tile=params["tile_elems"],
        buffers=params["buffers"],
        adds=params["adds_per_tile"],
    )
    return times(time_launch(kernel, x, bias, y, record=record, cores=record.cores))
