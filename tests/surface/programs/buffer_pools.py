"""Two stages that use the same bytes of UB one after the other: pools of buffers."""

import asc
import numpy as np

LENGTH = 8192


@asc.jit
def stages_kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    y_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    y_gm.set_global_buffer(y)
    z_gm.set_global_buffer(z)
    pipe = asc.TPipe()
    whole = asc.TBufPool(asc.TPosition.VECCALC, 16)
    first = asc.TBufPool(asc.TPosition.VECCALC, 16)
    second = asc.TBufPool(asc.TPosition.VECCALC, 16)
    queue_x = asc.TQue(asc.TPosition.VECIN, 1)
    queue_y = asc.TQue(asc.TPosition.VECIN, 1)
    queue_z = asc.TQue(asc.TPosition.VECOUT, 1)
    again_x = asc.TQue(asc.TPosition.VECIN, 1)
    again_z = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buf_pool(whole, 3 * LENGTH * 4)
    whole.init_buf_pool(first, 3 * LENGTH * 4)
    whole.init_buf_pool(second, 3 * LENGTH * 4, first)

    first.init_buffer(queue_x, 1, LENGTH * 4)
    first.init_buffer(queue_y, 1, LENGTH * 4)
    first.init_buffer(queue_z, 1, LENGTH * 4)
    x_local = queue_x.alloc_tensor(asc.float32)
    y_local = queue_y.alloc_tensor(asc.float32)
    asc.data_copy(x_local, x_gm, LENGTH)
    asc.data_copy(y_local, y_gm, LENGTH)
    queue_x.enque(x_local)
    queue_y.enque(y_local)
    a = queue_x.deque(asc.float32)
    b = queue_y.deque(asc.float32)
    c = queue_z.alloc_tensor(asc.float32)
    asc.add(c, a, b, LENGTH)
    queue_z.enque(c)
    queue_x.free_tensor(a)
    queue_y.free_tensor(b)
    done = queue_z.deque(asc.float32)
    asc.data_copy(z_gm, done, LENGTH)
    queue_z.free_tensor(done)
    first.reset()

    second.init_buffer(again_x, 1, LENGTH * 4)
    second.init_buffer(again_z, 1, LENGTH * 4)
    d = again_x.alloc_tensor(asc.float32)
    asc.data_copy(d, x_gm[LENGTH:], LENGTH)
    again_x.enque(d)
    e = again_x.deque(asc.float32)
    f = again_z.alloc_tensor(asc.float32)
    asc.abs(f, e, LENGTH)
    again_z.enque(f)
    again_x.free_tensor(e)
    g = again_z.deque(asc.float32)
    asc.data_copy(z_gm[LENGTH:], g, LENGTH)
    again_z.free_tensor(g)
    second.reset()
    whole.reset()


if __name__ == "__main__":
    x = np.random.default_rng(13).normal(size=2 * LENGTH).astype(np.float32)
    y = np.random.default_rng(14).normal(size=LENGTH).astype(np.float32)
    z = np.zeros_like(x)
    stages_kernel[1](x, y, z)
    assert np.array_equal(z, np.concatenate([x[:LENGTH] + y, np.abs(x[LENGTH:])]))
