"""The device kernel of `rope_grad`: vector cores only, one head a block.

It stays inside the subset of Python that pyasc compiles, so that this one file also passes through pyasc's
front end and runs on an NPU. It knows no chip and no host: it is given addresses and two compile-time
constants. Faults of the operator library's kernel stand here on purpose: a block computes the head of its own
number and no other, and every head builds `work` again.
"""

# pyasc's dialect: what a ConstExpr, an address or a scalar load is, its compiler knows and mypy does not.
# mypy: ignore-errors

from ascend_sim import asc


@asc.jit(auto_sync=False)
def rope_grad(
    q_embedded_grad: asc.GlobalAddress,
    k_embedded_grad: asc.GlobalAddress,
    cos: asc.GlobalAddress,
    sin: asc.GlobalAddress,
    q_grad: asc.GlobalAddress,
    k_grad: asc.GlobalAddress,
    tiling_record: asc.GlobalAddress,
    tiling_lengths: asc.GlobalAddress,
    max_process_num: asc.ConstExpr[int],
    buffer_num: asc.ConstExpr[int],
) -> None:
    """Compute this block's head of `q_grad` and `k_grad` (float16, [rows, hidden size]).

    `tiling_record` holds five int64 (rows of the tables, hidden size, head size, rows of the gradients,
    samples), `tiling_lengths` one int32 a sample. `max_process_num` is the size of one buffer in elements,
    `buffer_num` the number of buffers of each queue.
    """
    record_gm = asc.GlobalTensor()
    record_gm.set_global_buffer(tiling_record)
    lengths_gm = asc.GlobalTensor()
    lengths_gm.set_global_buffer(tiling_lengths)
    # All five fields are read, used or not: each read is a scalar load that takes time.
    record_gm.get_value(0)
    hidden_size = record_gm.get_value(1)
    head_size = record_gm.get_value(2)
    record_gm.get_value(3)
    batch = record_gm.get_value(4)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)

    # In a product the record's int64 stands on the left: pyasc gives a product its left operand's type.
    head_start = head_size * asc.get_block_idx()
    q_embedded_grad_gm = asc.GlobalTensor()
    q_embedded_grad_gm.set_global_buffer(q_embedded_grad + head_start)
    k_embedded_grad_gm = asc.GlobalTensor()
    k_embedded_grad_gm.set_global_buffer(k_embedded_grad + head_start)
    cos_gm = asc.GlobalTensor()
    cos_gm.set_global_buffer(cos)
    sin_gm = asc.GlobalTensor()
    sin_gm.set_global_buffer(sin)
    q_grad_gm = asc.GlobalTensor()
    q_grad_gm.set_global_buffer(q_grad + head_start)
    k_grad_gm = asc.GlobalTensor()
    k_grad_gm.set_global_buffer(k_grad + head_start)

    pipe = asc.TPipe()
    q_in = asc.TQue(asc.TPosition.VECIN, 1)
    k_in = asc.TQue(asc.TPosition.VECIN, 1)
    cos_in = asc.TQue(asc.TPosition.VECIN, 1)
    sin_in = asc.TQue(asc.TPosition.VECIN, 1)
    q_out = asc.TQue(asc.TPosition.VECOUT, 1)
    k_out = asc.TQue(asc.TPosition.VECOUT, 1)
    work_buffer = asc.TBuf(asc.TPosition.VECCALC)
    buffer_bytes = max_process_num * q_embedded_grad.dtype.sizeof()
    pipe.init_buffer(que=q_in, num=buffer_num, len=buffer_bytes)
    pipe.init_buffer(que=k_in, num=buffer_num, len=buffer_bytes)
    pipe.init_buffer(que=cos_in, num=buffer_num, len=buffer_bytes)
    pipe.init_buffer(que=sin_in, num=buffer_num, len=buffer_bytes)
    pipe.init_buffer(que=q_out, num=buffer_num, len=buffer_bytes)
    pipe.init_buffer(que=k_out, num=buffer_num, len=buffer_bytes)
    pipe.init_buffer(work_buffer, buffer_bytes)

    rows_per_loop = max_process_num // head_size
    # The sum of the lengths so far. It starts as a value that is known at run time only, because pyasc
    # does not let a loop change a literal.
    cur_sum_seq_len = head_start - head_start
    for sample in range(batch):
        seq_len = lengths_gm.get_value(sample)
        full_tiles = seq_len // rows_per_loop
        for tile in range(full_tiles):
            process_tile(
                q_embedded_grad_gm, k_embedded_grad_gm, cos_gm, sin_gm, q_grad_gm, k_grad_gm,
                q_in, k_in, cos_in, sin_in, q_out, k_out, work_buffer,
                cur_sum_seq_len, rows_per_loop * tile, rows_per_loop, hidden_size, head_size,
            )  # fmt: skip
        rest_start = rows_per_loop * full_tiles
        rest = -rest_start + seq_len
        if rest > 0:
            process_tile(
                q_embedded_grad_gm, k_embedded_grad_gm, cos_gm, sin_gm, q_grad_gm, k_grad_gm,
                q_in, k_in, cos_in, sin_in, q_out, k_out, work_buffer,
                cur_sum_seq_len, rest_start, rest, hidden_size, head_size,
            )  # fmt: skip
        cur_sum_seq_len += seq_len
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)


@asc.jit(auto_sync=False)
def process_tile(
    q_embedded_grad_gm: asc.GlobalTensor,
    k_embedded_grad_gm: asc.GlobalTensor,
    cos_gm: asc.GlobalTensor,
    sin_gm: asc.GlobalTensor,
    q_grad_gm: asc.GlobalTensor,
    k_grad_gm: asc.GlobalTensor,
    q_in: asc.TQue,
    k_in: asc.TQue,
    cos_in: asc.TQue,
    sin_in: asc.TQue,
    q_out: asc.TQue,
    k_out: asc.TQue,
    work_buffer: asc.TBuf,
    sample_start: int,
    tile_start: int,
    rows: int,
    hidden_size: int,
    head_size: int,
) -> None:
    """Take `rows` rows from row `tile_start` of a sample that begins at row `sample_start`."""
    offset = hidden_size * (sample_start + tile_start)
    copy_in(
        q_embedded_grad_gm[offset:], k_embedded_grad_gm[offset:],
        cos_gm[head_size * tile_start:], sin_gm[head_size * tile_start:],
        q_in, k_in, cos_in, sin_in, rows, hidden_size, head_size,
    )  # fmt: skip
    compute(q_in, k_in, cos_in, sin_in, q_out, k_out, work_buffer, rows, head_size)
    copy_out(q_grad_gm[offset:], k_grad_gm[offset:], q_out, k_out, rows, hidden_size, head_size)


@asc.jit(auto_sync=False)
def copy_in(
    q_embedded_grad_gm: asc.GlobalTensor,
    k_embedded_grad_gm: asc.GlobalTensor,
    cos_gm: asc.GlobalTensor,
    sin_gm: asc.GlobalTensor,
    q_in: asc.TQue,
    k_in: asc.TQue,
    cos_in: asc.TQue,
    sin_in: asc.TQue,
    rows: int,
    hidden_size: int,
    head_size: int,
) -> None:
    """Load a tile: both gradients row by row out of the wide rows, cos and sin in one piece."""
    q_embedded_grad_local = q_in.alloc_tensor(q_embedded_grad_gm.dtype)
    k_embedded_grad_local = k_in.alloc_tensor(k_embedded_grad_gm.dtype)
    cos_local = cos_in.alloc_tensor(cos_gm.dtype)
    sin_local = sin_in.alloc_tensor(sin_gm.dtype)
    # Lengths and gaps in blocks of 32 bytes, which is 16 elements.
    rows_of_head = asc.DataCopyParams(rows, head_size // 16, (hidden_size - head_size) // 16, 0)
    asc.data_copy(q_embedded_grad_local, q_embedded_grad_gm, repeat_params=rows_of_head)
    asc.data_copy(k_embedded_grad_local, k_embedded_grad_gm, repeat_params=rows_of_head)
    asc.data_copy(cos_local, cos_gm, count=head_size * rows)
    asc.data_copy(sin_local, sin_gm, count=head_size * rows)
    q_in.enque(q_embedded_grad_local)
    k_in.enque(k_embedded_grad_local)
    cos_in.enque(cos_local)
    sin_in.enque(sin_local)


@asc.jit(auto_sync=False)
def compute(
    q_in: asc.TQue,
    k_in: asc.TQue,
    cos_in: asc.TQue,
    sin_in: asc.TQue,
    q_out: asc.TQue,
    k_out: asc.TQue,
    work_buffer: asc.TBuf,
    rows: int,
    head_size: int,
) -> None:
    """Build `work = cos + [right half of sin, -left half of sin]`, then multiply both gradients by it."""
    q_embedded_grad_local = q_in.deque(asc.float16)
    k_embedded_grad_local = k_in.deque(asc.float16)
    cos_local = cos_in.deque(asc.float16)
    sin_local = sin_in.deque(asc.float16)
    q_grad_local = q_out.alloc_tensor(asc.float16)
    k_grad_local = k_out.alloc_tensor(asc.float16)
    work = work_buffer.get(asc.float16)
    half = head_size // 2
    count = head_size * rows

    half_rows = asc.DataCopyParams(rows, head_size // 32, head_size // 32, head_size // 32)
    asc.data_copy(work, sin_local[half:], repeat_params=half_rows)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    # The literal repeat strides (8 blocks, 128 elements) fit a head size of 128 and no other.
    asc.muls(work[half:], sin_local, -1.0, mask=half, repeat_times=rows,
             repeat_params=asc.UnaryRepeatParams(1, 1, 8, 8))  # fmt: skip
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.add(work, cos_local, work, count=count)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.mul(q_grad_local, q_embedded_grad_local, work, count=count)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.mul(k_grad_local, k_embedded_grad_local, work, count=count)
    asc.pipe_barrier(asc.PipeID.PIPE_V)

    q_out.enque(q_grad_local)
    k_out.enque(k_grad_local)
    q_in.free_tensor(q_embedded_grad_local)
    k_in.free_tensor(k_embedded_grad_local)
    cos_in.free_tensor(cos_local)
    sin_in.free_tensor(sin_local)


@asc.jit(auto_sync=False)
def copy_out(
    q_grad_gm: asc.GlobalTensor,
    k_grad_gm: asc.GlobalTensor,
    q_out: asc.TQue,
    k_out: asc.TQue,
    rows: int,
    hidden_size: int,
    head_size: int,
) -> None:
    """Store a tile of both results into the wide rows."""
    q_grad_local = q_out.deque(asc.float16)
    k_grad_local = k_out.deque(asc.float16)
    rows_of_head = asc.DataCopyParams(rows, head_size // 16, 0, (hidden_size - head_size) // 16)
    asc.data_copy(q_grad_gm, q_grad_local, repeat_params=rows_of_head)
    asc.data_copy(k_grad_gm, k_grad_local, repeat_params=rows_of_head)
    q_out.free_tensor(q_grad_local)
    k_out.free_tensor(k_grad_local)
