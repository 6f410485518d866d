"""TPipe, TQue, TBuf: which flags their calls become, and which event ids they take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_sim import asc
from ascend_sim.errors import QueueError
from ascend_sim.trace import Cause, Kind
from tests.machine.kit import E, instructions, items, toy_run, window

N = 1024
BYTES = 4 * N


def floats(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


def add_one(x: asc.GlobalAddress, z: asc.GlobalAddress, tiles: int, buffers: int) -> None:
    """The three-stage kernel with queues: z = x + 1."""
    x_gm, z_gm = window(x), window(z)
    pipe = asc.TPipe()
    source = asc.TQue(asc.TPosition.VECIN, 1)
    target = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=source, num=buffers, len=BYTES)
    pipe.init_buffer(que=target, num=buffers, len=BYTES)
    for tile in range(tiles):
        a = source.alloc_tensor(x.dtype)
        asc.data_copy(a, x_gm[tile * N :], N)
        source.enque(a)
        a = source.deque(x.dtype)
        c = target.alloc_tensor(z.dtype)
        asc.adds(c, a, 1.0, N)
        target.enque(c)
        source.free_tensor(a)
        c = target.deque(z.dtype)
        asc.data_copy(z_gm[tile * N :], c, N)
        target.free_tensor(c)


@pytest.mark.parametrize("buffers", [1, 2, 4])
def test_numbers_and_no_finding(buffers: int) -> None:
    z = np.zeros(8 * N, np.float32)
    run = toy_run(add_one, floats(8 * N), z, 8, buffers)
    np.testing.assert_array_equal(z, floats(8 * N) + 1)
    assert run.findings == []


def test_two_buffers_overlap_what_one_cannot() -> None:
    """One buffer: load, add and store of one tile after another. Two: the loads run ahead."""
    z = np.zeros(8 * N, np.float32)
    one, two = (toy_run(add_one, floats(8 * N), z, 8, buffers) for buffers in (1, 2))
    # Of each tile with one buffer: the load waits for the add before it, the add for its load.
    assert two.cycles < one.cycles
    assert one.stalls()["buffer"] > two.stalls()["buffer"]
    loads = instructions(one, "MTE2")
    adds = instructions(one, "V")
    assert [load.start for load in loads[1:]] == [add.end + 11 for add in adds[:-1]]
    assert [add.start - load.end for load, add in zip(loads, adds, strict=True)] == [11] * 8


def test_the_flags_that_the_calls_become() -> None:
    z = np.zeros(2 * N, np.float32)
    run = toy_run(add_one, floats(2 * N), z, 2, 1)
    flags = [
        (item.name, item.event.name, item.event_id, item.pipe.name, item.cause)
        for item in items(run)
        if item.kind in (Kind.SET_FLAG, Kind.WAIT_FLAG) and item.event is not None
    ]
    flag, buffer = Cause.FLAG, Cause.BUFFER
    tile = [
        ("set_flag", "MTE2_V", 0, "MTE2", flag),
        ("wait_flag", "MTE2_V", 0, "V", flag),
        ("set_flag", "V_MTE3", 0, "V", flag),
        ("set_flag", "V_MTE2", 0, "V", flag),
        ("wait_flag", "V_MTE3", 0, "MTE3", flag),
        ("set_flag", "MTE3_V", 0, "MTE3", flag),
    ]
    second = [("wait_flag", "V_MTE2", 0, "MTE2", buffer), *tile]
    second.insert(3, ("wait_flag", "MTE3_V", 0, "V", buffer))
    end = [
        ("wait_flag", "V_MTE2", 0, "MTE2", buffer),
        ("wait_flag", "MTE3_V", 0, "V", buffer),
    ]
    assert flags == tile + second + end


def test_the_pipe_objects_end_waits_for_the_free_events_and_all_pipes() -> None:
    z = np.zeros(N, np.float32)
    run = toy_run(add_one, floats(N), z, 1, 2)
    *_, first, second, barrier = items(run)
    assert [(item.kind, item.event) for item in (first, second)] == [
        (Kind.WAIT_FLAG, E.V_MTE2),
        (Kind.WAIT_FLAG, E.MTE3_V),
    ]
    assert (barrier.pipe.name, barrier.kind) == ("S", Kind.BARRIER)
    assert barrier.start == instructions(run, "MTE3")[0].end + 11 == run.cycles - 1
    assert max(item.end for item in items(run)) <= run.cycles


def test_ids_are_the_lowest_free_ones() -> None:
    """Two blocks in flight take 0 and 1; a wait gives its id back, and the next set takes it."""

    def kernel(x: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        queue = asc.TQue(asc.TPosition.VECIN, 3)
        pipe.init_buffer(que=queue, num=3, len=256)
        for _ in range(3):
            t = queue.alloc_tensor(asc.float32)
            asc.data_copy(t, window(x), 64)
            queue.enque(t)
        first = queue.deque(asc.float32)  # gives id 0 back
        queue.free_tensor(first)
        again = queue.alloc_tensor(asc.float32)
        asc.data_copy(again, window(x), 64)
        queue.enque(again)
        for _ in range(3):
            queue.free_tensor(queue.deque(asc.float32))

    run = toy_run(kernel, floats(64))
    assert run.findings == []
    sets = [item.event_id for item in items(run, "MTE2", "set_flag")]
    assert sets == [0, 1, 2, 0]
    assert [item.event_id for item in items(run, "V", "wait_flag")] == [0, 1, 2, 0]


def test_queues_of_one_position_share_the_ids() -> None:
    def kernel(x: asc.GlobalAddress) -> None:
        pipe = asc.TPipe()
        first, second = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECIN, 1)
        pipe.init_buffer(que=first, num=1, len=256)
        pipe.init_buffer(que=second, num=1, len=256)
        for queue in (first, second):
            t = queue.alloc_tensor(asc.float32)
            asc.data_copy(t, window(x), 64)
            queue.enque(t)
        for queue in (first, second):
            queue.free_tensor(queue.deque(asc.float32))

    run = toy_run(kernel, floats(64))
    assert [item.event_id for item in items(run, "MTE2", "set_flag")] == [0, 1]
    assert [item.event_id for item in items(run, "V", "set_flag")] == [0, 1]


def test_ids_by_hand() -> None:
    def kernel() -> None:
        pipe = asc.TPipe()
        assert pipe.fetch_event_id(E.V_S) == 0
        assert [pipe.alloc_event_id(E.V_S) for _ in range(8)] == list(range(8))
        pipe.release_event_id(3, E.V_S)
        assert pipe.fetch_event_id(E.V_S) == 3
        assert pipe.alloc_event_id(E.V_S) == 3
        assert pipe.alloc_event_id(E.S_V) == 0
        pipe.alloc_event_id(E.V_S)

    with pytest.raises(QueueError, match="all 8 ids of V_S are in use") as caught:
        toy_run(kernel)
    assert caught.value.finding.code == "no-event-id"


def test_addresses_follow_one_another_in_steps_of_32() -> None:
    found: list[tuple[int, int]] = []

    def kernel() -> None:
        pipe = asc.TPipe()
        queue, work = asc.TQue(asc.TPosition.VECOUT, 2), asc.TBuf()
        pipe.init_buffer(que=queue, num=2, len=100)
        pipe.init_buffer(work, 40)
        for _ in range(2):
            t = queue.alloc_tensor(asc.float32)
            found.append((t.addr, t.length))
            asc.duplicate(t, 1.0, 8)
            queue.enque(t)
        found.append((work.get(asc.float16).addr, work.get(asc.float16).length))
        for _ in range(2):
            queue.free_tensor(queue.deque(asc.float32))

    toy_run(kernel)
    assert found == [(0, 128), (128, 128), (256, 64)]


def test_buffers_are_taken_in_turn() -> None:
    addresses: list[int] = []

    def kernel() -> None:
        pipe = asc.TPipe()
        queue = asc.TQue(asc.TPosition.VECOUT, 1)
        pipe.init_buffer(que=queue, num=3, len=256)
        for _ in range(5):
            t = queue.alloc_tensor(asc.float32)
            addresses.append(t.addr)
            asc.duplicate(t, 1.0, 64)
            queue.enque(t)
            queue.free_tensor(queue.deque(asc.float32))

    toy_run(kernel)
    assert addresses == [0, 256, 512, 0, 256]


def test_looking_at_a_queue() -> None:
    def kernel() -> None:
        pipe = asc.TPipe()
        queue = asc.TQue(asc.TPosition.VECIN, 1)
        pipe.init_buffer(que=queue, num=1, len=256)
        assert queue.has_idle_buffer()
        t = queue.alloc_tensor(asc.float32)
        assert not queue.has_idle_buffer()
        assert queue.vacant_in_que()
        queue.enque(t)
        assert queue.has_tensor_in_que()
        assert queue.get_tensor_count_in_que() == 1
        assert not queue.vacant_in_que()
        queue.free_tensor(queue.deque(asc.float32))
        assert not queue.has_tensor_in_que()

    assert toy_run(kernel).findings == []
