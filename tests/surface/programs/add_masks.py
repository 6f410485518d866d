"""Masks in every way: a number of lanes, a list of bits, a register, an element count; lanes that are off keep dst."""

import asc
import numpy as np

LENGTH = 512  # float16: 128 lanes a repeat
BITS_LOW = 0x5555555555555555
BITS_HIGH = 0x00000000FFFFFFFF


@asc.jit
def masks_kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    y_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    y_gm.set_global_buffer(y)
    z_gm.set_global_buffer(z)
    pipe = asc.TPipe()
    queue_x = asc.TQue(asc.TPosition.VECIN, 1)
    queue_y = asc.TQue(asc.TPosition.VECIN, 1)
    queue_z = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que=queue_x, num=1, len=LENGTH * asc.half.sizeof())
    pipe.init_buffer(que=queue_y, num=1, len=LENGTH * asc.half.sizeof())
    pipe.init_buffer(que=queue_z, num=1, len=5 * LENGTH * asc.half.sizeof())
    x_local = queue_x.alloc_tensor(asc.half)
    y_local = queue_y.alloc_tensor(asc.half)
    asc.data_copy(x_local, x_gm, count=LENGTH)
    asc.data_copy(y_local, y_gm, count=LENGTH)
    queue_x.enque(x_local)
    queue_y.enque(y_local)
    a = queue_x.deque(asc.half)
    b = queue_y.deque(asc.half)
    c = queue_z.alloc_tensor(asc.half)
    asc.duplicate(c, -1.0, count=5 * LENGTH)

    params = asc.BinaryRepeatParams(1, 1, 1, 8, 8, 8)
    repeats = LENGTH // 128
    asc.add(c, a, b, mask=100, repeat_times=repeats, repeat_params=params)
    asc.sub(
        c[LENGTH:], a, b, mask=[BITS_LOW, BITS_HIGH], repeat_times=repeats, repeat_params=params
    )

    asc.set_mask_norm()
    asc.set_vector_mask(BITS_HIGH, BITS_LOW, dtype=asc.half, mode=asc.MaskMode.NORMAL)
    asc.mul(
        c[2 * LENGTH :], a, b, mask=0, repeat_times=repeats, repeat_params=params, is_set_mask=False
    )
    asc.reset_mask()

    asc.set_mask_count()
    asc.set_vector_mask(300, dtype=asc.half, mode=asc.MaskMode.COUNTER)
    asc.max(c[3 * LENGTH :], a, b, mask=0, repeat_times=1, repeat_params=params, is_set_mask=False)
    asc.set_mask_norm()
    asc.reset_mask()

    asc.min(c[4 * LENGTH :], a, b, count=LENGTH)
    queue_z.enque(c)
    queue_x.free_tensor(a)
    queue_y.free_tensor(b)
    result = queue_z.deque(asc.half)
    asc.data_copy(z_gm, result, count=5 * LENGTH)
    queue_z.free_tensor(result)


if __name__ == "__main__":
    rng = np.random.default_rng(2)
    x, y = rng.integers(-64, 64, (2, LENGTH)).astype(np.float16)
    z = np.zeros((5, LENGTH), np.float16)
    masks_kernel[1](x, y, z)

    lanes = np.arange(LENGTH) % 128
    word = np.where(lanes < 64, BITS_LOW, BITS_HIGH).astype(np.uint64)
    on = (word >> (lanes % 64).astype(np.uint64)) & np.uint64(1) == 1
    expected = [
        np.where(lanes < 100, x + y, -1),
        np.where(on, x - y, -1),
        np.where(on, x * y, -1),
        np.where(np.arange(LENGTH) < 300, np.maximum(x, y), -1),
        np.minimum(x, y),
    ]
    for number, (got, wanted) in enumerate(zip(z, expected, strict=True)):
        assert np.array_equal(got, wanted), number
