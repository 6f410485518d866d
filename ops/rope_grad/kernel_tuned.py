"""A rewritten device kernel of `rope_grad`: all heads, cos and sin read once, loads, arithmetic and stores overlapped.

What is different from the library's kernel: a block owns a range of positions instead of a head. It builds the
factors of a piece of that range once and uses them for every sample and every head, whole rows go over the bus
in one piece, two buffers a queue keep the three pipes at work at once, and barriers stand only where one vector
instruction needs another one's result. Gradients are read past L2, which is left to the results.

With `adjoint` 0 the results are the library's, bit for bit; with 1 they are the true adjoint of the rotary embedding,
which mixes the halves of a head: [left * cos + right * sin, right * cos - left * sin].

It stays inside the subset of Python that pyasc compiles.
"""

# pyasc's dialect: what a ConstExpr, an address or a scalar load is, its compiler knows and mypy does not.
# mypy: ignore-errors

from ascend_sim import asc


@asc.jit(auto_sync=False)
def rope_grad_tuned(
    q_embedded_grad: asc.GlobalAddress,
    k_embedded_grad: asc.GlobalAddress,
    cos: asc.GlobalAddress,
    sin: asc.GlobalAddress,
    q_grad: asc.GlobalAddress,
    k_grad: asc.GlobalAddress,
    plan: asc.GlobalAddress,
    lengths: asc.GlobalAddress,
    batch: asc.ConstExpr[int],
    hidden_size: asc.ConstExpr[int],
    group: asc.ConstExpr[int],
    factor_rows: asc.ConstExpr[int],
    tile_rows: asc.ConstExpr[int],
    adjoint: asc.ConstExpr[int],
) -> None:
    """Compute `q_grad` and `k_grad` (float16, [rows, hidden size]) at this block's positions of all samples.

    `plan` holds the first position of each block and one past the last (int32), `lengths` the samples' lengths.
    `group` columns, whole heads, are worked on at a time, in tiles of `tile_rows` rows; the factors of
    `factor_rows` positions are kept.
    """
    plan_gm = asc.GlobalTensor()
    plan_gm.set_global_buffer(plan)
    lengths_gm = asc.GlobalTensor()
    lengths_gm.set_global_buffer(lengths)
    q_embedded_grad_gm = asc.GlobalTensor()
    q_embedded_grad_gm.set_global_buffer(q_embedded_grad)
    q_embedded_grad_gm.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
    k_embedded_grad_gm = asc.GlobalTensor()
    k_embedded_grad_gm.set_global_buffer(k_embedded_grad)
    k_embedded_grad_gm.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
    cos_gm = asc.GlobalTensor()
    cos_gm.set_global_buffer(cos)
    sin_gm = asc.GlobalTensor()
    sin_gm.set_global_buffer(sin)
    q_grad_gm = asc.GlobalTensor()
    q_grad_gm.set_global_buffer(q_grad)
    k_grad_gm = asc.GlobalTensor()
    k_grad_gm.set_global_buffer(k_grad)

    pipe = asc.TPipe()
    tables_in = asc.TQue(asc.TPosition.VECIN, 1)
    gradients_in = asc.TQue(asc.TPosition.VECIN, 2)
    gradients_out = asc.TQue(asc.TPosition.VECOUT, 2)
    factor_buffer = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(que=tables_in, num=1, len=2 * factor_rows * 128 * 2)
    pipe.init_buffer(que=gradients_in, num=2, len=tile_rows * group * 2)
    pipe.init_buffer(que=gradients_out, num=2, len=tile_rows * group * 2)
    pipe.init_buffer(factor_buffer, 2 * factor_rows * 128 * 2)
    factors = factor_buffer.get(asc.float16)

    first = plan_gm.get_value(asc.get_block_idx())
    last = plan_gm.get_value(asc.get_block_idx() + 1)
    # Limits as values known at run time only: pyasc lets a branch change a value to one of its own type.
    zero = first - first
    most_rows = zero + factor_rows
    most_tile_rows = zero + tile_rows
    most_columns = zero + group
    pieces = (last - first + factor_rows - 1) // factor_rows
    for piece in range(pieces):
        position = first + factor_rows * piece
        rows = last - position
        if rows > most_rows:
            rows = most_rows
        build_factors(cos_gm, sin_gm, tables_in, factors, position, rows, factor_rows, adjoint)
        sample_start = zero
        for sample in range(batch):
            length = lengths_gm.get_value(sample)
            count = length - position
            if count > rows:
                count = rows
            tiles = (count + tile_rows - 1) // tile_rows
            for tile in range(tiles):
                tile_start = tile_rows * tile
                tile_count = count - tile_start
                if tile_count > most_tile_rows:
                    tile_count = most_tile_rows
                row = sample_start + position + tile_start
                for column in range(0, hidden_size, group):
                    width = zero + hidden_size - column
                    if width > most_columns:
                        width = most_columns
                    start = hidden_size * row + column
                    load_tile(
                        q_embedded_grad_gm, gradients_in, start, tile_count, width, hidden_size
                    )
                    load_tile(
                        k_embedded_grad_gm, gradients_in, start, tile_count, width, hidden_size
                    )
                    compute_tile(gradients_in, gradients_out, factors, tile_start, tile_count, width,
                                 factor_rows, adjoint)  # fmt: skip
                    store_tile(q_grad_gm, gradients_out, start, tile_count, width, hidden_size)
                    compute_tile(gradients_in, gradients_out, factors, tile_start, tile_count, width,
                                 factor_rows, adjoint)  # fmt: skip
                    store_tile(k_grad_gm, gradients_out, start, tile_count, width, hidden_size)
            sample_start += length


@asc.jit(auto_sync=False)
def build_factors(
    cos_gm: asc.GlobalTensor,
    sin_gm: asc.GlobalTensor,
    tables_in: asc.TQue,
    factors: asc.LocalTensor,
    position: int,
    rows: int,
    factor_rows: asc.ConstExpr[int],
    adjoint: asc.ConstExpr[int],
) -> None:
    """Read cos and sin of some positions; keep cos and [right half of sin, -left half], or the sum of the two."""
    tables = tables_in.alloc_tensor(asc.float16)
    asc.data_copy(tables, cos_gm[128 * position :], count=128 * rows)
    asc.data_copy(tables[128 * factor_rows :], sin_gm[128 * position :], count=128 * rows)
    tables_in.enque(tables)
    tables = tables_in.deque(asc.float16)
    sines = tables[128 * factor_rows :]
    turned = factors[128 * factor_rows :]
    # Factors of the piece before may still be in use by the vector pipe itself, which does one after the other.
    half_rows = asc.DataCopyParams(rows, 4, 4, 4)
    asc.data_copy(turned, sines[64:], repeat_params=half_rows)
    asc.muls(turned[64:], sines, -1.0, mask=64, repeat_times=rows,
             repeat_params=asc.UnaryRepeatParams(1, 1, 8, 8))  # fmt: skip
    if adjoint:
        asc.muls(factors, tables, 1.0, count=128 * rows)
    else:
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.add(factors, tables, turned, count=128 * rows)
    asc.pipe_barrier(asc.PipeID.PIPE_V)
    tables_in.free_tensor(tables)


@asc.jit(auto_sync=False)
def load_tile(
    gradient_gm: asc.GlobalTensor,
    gradients_in: asc.TQue,
    start: int,
    rows: int,
    width: int,
    hidden_size: asc.ConstExpr[int],
) -> None:
    """Load `rows` rows of `width` columns."""
    gradient = gradients_in.alloc_tensor(asc.float16)
    wide_rows = asc.DataCopyParams(rows, width // 16, (hidden_size - width) // 16, 0)
    asc.data_copy(gradient, gradient_gm[start:], repeat_params=wide_rows)
    gradients_in.enque(gradient)


@asc.jit(auto_sync=False)
def compute_tile(
    gradients_in: asc.TQue,
    gradients_out: asc.TQue,
    factors: asc.LocalTensor,
    tile_start: int,
    rows: int,
    width: int,
    factor_rows: asc.ConstExpr[int],
    adjoint: asc.ConstExpr[int],
) -> None:
    """Multiply a tile by the factors of its positions, a head at a time: one repeat a row."""
    gradient = gradients_in.deque(asc.float16)
    result = gradients_out.alloc_tensor(asc.float16)
    pitch = width // 16
    factor = factors[128 * tile_start :]
    straight = asc.BinaryRepeatParams(1, 1, 1, pitch, pitch, 8)
    for column in range(0, width, 128):
        asc.mul(result[column:], gradient[column:], factor, mask=128, repeat_times=rows,
                repeat_params=straight)  # fmt: skip
    if adjoint:
        turned = factors[128 * (factor_rows + tile_start) :]
        # Nobody needs the gradient itself any more: multiply in place, then add the other half.
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        in_place = asc.BinaryRepeatParams(1, 1, 1, pitch, pitch, 8)
        for column in range(0, width, 128):
            asc.mul(gradient[column:], gradient[column:], turned[64:], mask=64, repeat_times=rows,
                    repeat_params=in_place)  # fmt: skip
            asc.mul(gradient[column + 64:], gradient[column + 64:], turned, mask=64, repeat_times=rows,
                    repeat_params=in_place)  # fmt: skip
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        added = asc.BinaryRepeatParams(1, 1, 1, pitch, pitch, pitch)
        for column in range(0, width, 128):
            asc.add(result[column:], result[column:], gradient[column + 64:], mask=64, repeat_times=rows,
                    repeat_params=added)  # fmt: skip
            asc.add(result[column + 64:], result[column + 64:], gradient[column:], mask=64, repeat_times=rows,
                    repeat_params=added)  # fmt: skip
    gradients_in.free_tensor(gradient)
    gradients_out.enque(result)


@asc.jit(auto_sync=False)
def store_tile(
    gradient_gm: asc.GlobalTensor,
    gradients_out: asc.TQue,
    start: int,
    rows: int,
    width: int,
    hidden_size: asc.ConstExpr[int],
) -> None:
    """Store `rows` rows of `width` columns."""
    result = gradients_out.deque(asc.float16)
    wide_rows = asc.DataCopyParams(rows, width // 16, 0, (hidden_size - width) // 16)
    asc.data_copy(gradient_gm[start:], result, repeat_params=wide_rows)
    gradients_out.free_tensor(result)
