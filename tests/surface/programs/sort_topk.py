"""The largest 32 of 256 scores with their places: sort 32 at a time, merge, split the records; and `sort` at once."""

import asc
import numpy as np

LENGTH = 256
TOP = 32
RECORD = 2  # float32 words: score, place


@asc.jit
def topk_kernel(
    x: asc.GlobalAddress, places: asc.GlobalAddress, best: asc.GlobalAddress, at: asc.GlobalAddress
):
    x_gm = asc.GlobalTensor()
    places_gm = asc.GlobalTensor()
    best_gm = asc.GlobalTensor()
    at_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    places_gm.set_global_buffer(places)
    best_gm.set_global_buffer(best)
    at_gm.set_global_buffer(at)
    pipe = asc.TPipe()
    score_queue = asc.TQue(asc.TPosition.VECIN, 1)
    place_queue = asc.TQue(asc.TPosition.VECIN, 1)
    best_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    at_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    sorted_buffer = asc.TBuf(asc.TPosition.VECCALC)
    merged_buffer = asc.TBuf(asc.TPosition.VECCALC)
    final_buffer = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(que=score_queue, num=1, len=LENGTH * 4)
    pipe.init_buffer(que=place_queue, num=1, len=LENGTH * 4)
    pipe.init_buffer(que=best_queue, num=1, len=TOP * 4)
    pipe.init_buffer(que=at_queue, num=1, len=TOP * 4)
    pipe.init_buffer(buf=sorted_buffer, num=LENGTH * 8)
    pipe.init_buffer(buf=merged_buffer, num=LENGTH * 8)
    pipe.init_buffer(buf=final_buffer, num=LENGTH * 8)
    scores = score_queue.alloc_tensor(asc.float32)
    numbers = place_queue.alloc_tensor(asc.uint32)
    asc.data_copy(scores, x_gm, count=LENGTH)
    asc.data_copy(numbers, places_gm, count=LENGTH)
    score_queue.enque(scores)
    place_queue.enque(numbers)
    src = score_queue.deque(asc.float32)
    index = place_queue.deque(asc.uint32)

    records = sorted_buffer.get(asc.float32)
    merged = merged_buffer.get(asc.float32)
    final = final_buffer.get(asc.float32)
    asc.sort32(records, src, index, LENGTH // 32)
    step = 32 * RECORD
    for half in range(2):
        base = half * 4 * step
        lists = asc.MrgSortSrcList(
            asc.float32,
            records[base:],
            records[base + step :],
            records[base + 2 * step :],
            records[base + 3 * step :],
        )
        asc.mrg_sort(merged[base:], lists, asc.MrgSort4Info([32, 32, 32, 32], False, 15, 1))
    pair = asc.MrgSortSrcList(asc.float32, merged, merged[4 * step :])
    asc.mrg_sort(final, pair, asc.MrgSort4Info([128, 128, 0, 0], False, 3, 1))

    best_local = best_queue.alloc_tensor(asc.float32)
    at_local = at_queue.alloc_tensor(asc.uint32)
    params = asc.GatherMaskParams(1, 1, 8, 0)
    asc.gather_mask(best_local, final, 1, False, 0, params)
    asc.gather_mask(at_local, final.reinterpret_cast(asc.uint32), 2, False, 0, params)
    best_queue.enque(best_local)
    at_queue.enque(at_local)
    score_queue.free_tensor(src)
    place_queue.free_tensor(index)
    best_done = best_queue.deque(asc.float32)
    at_done = at_queue.deque(asc.uint32)
    asc.data_copy(best_gm, best_done, count=TOP)
    asc.data_copy(at_gm, at_done, count=TOP)
    best_queue.free_tensor(best_done)
    at_queue.free_tensor(at_done)


@asc.jit
def sort_kernel(
    x: asc.GlobalAddress, places: asc.GlobalAddress, z: asc.GlobalAddress, full: asc.ConstExpr[bool]
):
    x_gm = asc.GlobalTensor()
    places_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    places_gm.set_global_buffer(places)
    z_gm.set_global_buffer(z)
    pipe = asc.TPipe()
    in_queue = asc.TQue(asc.TPosition.VECIN, 1)
    place_queue = asc.TQue(asc.TPosition.VECIN, 1)
    out_queue = asc.TQue(asc.TPosition.VECOUT, 1)
    work_buffer = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(que=in_queue, num=1, len=LENGTH * 4)
    pipe.init_buffer(que=place_queue, num=1, len=LENGTH * 4)
    pipe.init_buffer(que=out_queue, num=1, len=LENGTH * 8)
    pipe.init_buffer(buf=work_buffer, num=LENGTH * 8)
    scores = in_queue.alloc_tensor(asc.float32)
    numbers = place_queue.alloc_tensor(asc.uint32)
    asc.data_copy(scores, x_gm, count=LENGTH)
    asc.data_copy(numbers, places_gm, count=LENGTH)
    in_queue.enque(scores)
    place_queue.enque(numbers)
    src = in_queue.deque(asc.float32)
    index = place_queue.deque(asc.uint32)
    dst = out_queue.alloc_tensor(asc.float32)
    asc.sort(dst, src, index, work_buffer.get(asc.float32), LENGTH // 32, is_full_sort=full)
    out_queue.enque(dst)
    in_queue.free_tensor(src)
    place_queue.free_tensor(index)
    result = out_queue.deque(asc.float32)
    asc.data_copy(z_gm, result, count=LENGTH * RECORD)
    out_queue.free_tensor(result)


if __name__ == "__main__":
    x = np.random.default_rng(9).permutation(LENGTH).astype(np.float32)
    places = np.arange(LENGTH, dtype=np.uint32)
    best, at = np.zeros(TOP, np.float32), np.zeros(TOP, np.uint32)
    topk_kernel[1](x, places, best, at)
    order = np.argsort(-x)
    assert np.array_equal(best, x[order[:TOP]])
    assert np.array_equal(at, order[:TOP])
    for full in (True, False):
        z = np.zeros((LENGTH, RECORD), np.float32)
        sort_kernel[1](x, places, z, full)
        groups = 1 if full else LENGTH // 32
        order = np.argsort(-x.reshape(groups, -1), axis=1)
        expected = order + np.arange(groups)[:, None] * (LENGTH // groups)
        assert np.array_equal(z[:, 1].copy().view(np.uint32), expected.ravel()), full
        assert np.array_equal(z[:, 0], x[expected.ravel()]), full
