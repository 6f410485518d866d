"""Looking at tensors while a kernel runs: values as text, and in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isa.access import Access, check_bounds
from isa.arguments import check_integer
from isa.faults import fault
from isa.stream import current
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import BLOCK_BYTES, Space

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def elements(name: str, tensor: Any, offset: int, count: int) -> Access:
    """Return the access to `count` elements of a tensor from element `offset`; fault where they are not its own."""
    stream = current.get(None)
    if stream is None:
        fault("HOST", "no-kernel", f"{name} was called outside a kernel")
    if not isinstance(tensor, (GlobalTensor, LocalTensor)):
        fault("ILLEGAL_PARAM", "wrong-operand", f"{name}: expected a tensor, got {tensor!r}")
    if isinstance(tensor, GlobalTensor) and tensor.buffer is None:
        fault("HOST", "unbound-tensor", f"{name}: a GlobalTensor is used before set_global_buffer")
    size = tensor.dtype.size
    base = (tensor.offset if isinstance(tensor, GlobalTensor) else tensor.addr) + offset * size
    access = Access(tensor, base, (count,), (size,), tensor.dtype)
    if count:
        capacity = 0 if tensor.space is Space.GM else stream.capacity(tensor.space)
        check_bounds(access, tensor, f"{name}:", capacity, "S")
    return access


def text_of(value: Any) -> str:
    """Return one element as dumps show it."""
    return f"{float(value):f}" if isinstance(value, (float, np.floating)) else str(value)


def in_blocks(values: NDArray[Any], itemsize: int) -> str:
    """Return values with one data block (32 bytes) a line."""
    per_line = BLOCK_BYTES // itemsize
    texts = [text_of(value) for value in values.tolist()]
    lines = [" ".join(texts[start : start + per_line]) for start in range(0, len(texts), per_line)]
    return "\n".join(lines)


def in_brackets(values: Sequence[Any], shape: tuple[int, ...]) -> str:
    """Return values nested as a shape says: "-" where the shape has more places than values, and no value more."""
    texts = [text_of(value) for value in values]
    if not shape:
        return f"[{', '.join(texts)}]"
    places = int(np.prod(shape))
    texts = (texts + ["-"] * (places - len(texts)))[:places]
    for size in reversed(shape):
        # The innermost rows stand on one line each, as the vendor's dumps have them.
        joint = ", " if size == shape[-1] and not texts[0].startswith("[") else ",\n"
        texts = [
            f"[{joint.join(texts[start : start + size])}]"
            for start in range(0, len(texts), max(size, 1))
        ]
    return texts[0] if texts else "[]"


def print_local(tensor: LocalTensor, data_len: int | None) -> None:
    """Print the first `data_len` elements, one data block a line, once all pipes are done."""
    count = tensor.get_size() if data_len is None else data_len
    count = check_integer("print", "data_len", count, 0, tensor.get_size())
    access = elements("print", tensor, 0, count)
    stream = current.get()

    def tell(values: NDArray[Any]) -> None:
        stream.write(in_blocks(values, tensor.dtype.size) + "\n")

    stream.observe("print", access, tell)


def to_file(tensor: LocalTensor, file_name: str) -> int:
    """Write a tensor's bytes to a file, once all pipes are done; return 0."""
    if not isinstance(file_name, (str, Path)):
        fault("ILLEGAL_PARAM", "file-name", f"to_file: expected a file's name, got {file_name!r}")
    access = elements("to_file", tensor, 0, tensor.get_size())
    current.get().observe(
        "to_file", access, lambda values: Path(file_name).write_bytes(values.tobytes()) and None
    )
    return 0
