"""Host checks that several operations share. Each raises `Refusal` with the library's status."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ops.soc import is_910b_family
from ops.status import Refusal, Status
from ops.tensor import TensorDesc

MAX_DIMS = 8
MAX_TENSOR_BYTES = 256 * 2**30
MAX_SEQUENCES = 32


def reserved_zero(rsv: bytes) -> None:
    """Every reserved byte of the parameter is 0."""
    for i, byte in enumerate(rsv):
        if byte:
            raise Refusal(
                Status.ERROR_INVALID_PARAM, f"rsv[{i}] is {byte}; reserved bytes must be 0"
            )


def soc_of_910b_family(soc: str) -> None:
    """The operation exists on the 910B family only."""
    if not is_910b_family(soc):
        raise Refusal(
            Status.ERROR_INVALID_PARAM,
            f"SoC {soc!r} is not of the 910B family (Ascend910B1 to Ascend910B4)",
        )


def sequence_lengths(name: str, lengths: Sequence[int], longest: int | None = None) -> None:
    """A list of sequence lengths has 1 to 32 entries, each above 0 and at most `longest`."""
    if not 1 <= len(lengths) <= MAX_SEQUENCES:
        raise Refusal(
            Status.ERROR_INVALID_PARAM,
            f"{name} has {len(lengths)} entries; 1 to {MAX_SEQUENCES} are allowed",
        )
    for i, length in enumerate(lengths):
        if length <= 0 or (longest is not None and length > longest):
            allowed = "above 0" if longest is None else f"1 to {longest}"
            raise Refusal(
                Status.ERROR_INVALID_PARAM, f"{name}[{i}] is {length}; it must be {allowed}"
            )


def tensor_count(kind: str, given: int, names: Sequence[str]) -> None:
    """There are as many tensors as the operation has; `kind` is "input" or "output"."""
    if given != len(names):
        raise Refusal(
            # The library reports a wrong number of outputs with the same status.
            Status.ERROR_INVALID_IN_TENSOR_NUM, f"{given} {kind} tensors given; it has {len(names)}: {', '.join(names)}"
        )  # fmt: skip


def tensors_valid(
    descs: Sequence[TensorDesc], names: Sequence[str], may_be_empty: Callable[[int], bool]
) -> None:
    """Every tensor has 1 to 8 dims and 1 byte to 256 GiB, unless it is empty and may be."""
    for i, (desc, name) in enumerate(zip(descs, names, strict=True)):
        if desc.is_empty and may_be_empty(i):
            continue
        dims = len(desc.shape)
        if not 1 <= dims <= MAX_DIMS:
            raise Refusal(
                Status.ERROR_INVALID_TENSOR_DIM,
                f"{name} has {dims} dims; 1 to {MAX_DIMS} are allowed",
            )
        if not 0 < desc.nbytes <= MAX_TENSOR_BYTES:
            raise Refusal(
                Status.ERROR_INVALID_TENSOR_SIZE, f"{name} {list(desc.shape)} has {desc.nbytes} bytes; "
                f"1 to {MAX_TENSOR_BYTES} (256 GiB) are allowed",
            )  # fmt: skip


def types_supported(
    descs: Sequence[TensorDesc], names: Sequence[str], columns: Sequence[Sequence[str]]
) -> None:
    """The types of the tensors that are not empty stand in one of `columns`, and all formats are nd.

    A column of the library's operator table gives a type for each tensor, inputs first; `descs` may stop
    before the outputs.
    """
    for i, desc in enumerate(descs):
        if not desc.is_empty and desc.format != "nd":
            raise _no_match(names[i], f"format {desc.format}", "nd")
    candidates = list(columns)
    for i, desc in enumerate(descs):
        if desc.is_empty:
            continue
        matching = [column for column in candidates if column[i] == desc.dtype]
        if not matching:
            raise _no_match(
                names[i], desc.dtype, " or ".join(sorted({column[i] for column in candidates}))
            )
        candidates = matching


def dims(name: str, desc: TensorDesc, wanted: int) -> None:
    """The tensor has `wanted` dims."""
    if len(desc.shape) != wanted:
        raise Refusal(
            Status.ERROR_INVALID_TENSOR_DIM,
            f"{name} has {len(desc.shape)} dims {list(desc.shape)}; it must have {wanted}",
        )


def same_shape(name: str, desc: TensorDesc, other_name: str, other: TensorDesc) -> None:
    """Two tensors have the same shape."""
    if desc.shape != other.shape:
        raise Refusal(
            Status.ERROR_INVALID_TENSOR_SIZE, f"{name} is {list(desc.shape)} and {other_name} is {list(other.shape)}; "
            "their shapes must be the same",
        )  # fmt: skip


def _no_match(name: str, given: str, allowed: str) -> Refusal:
    return Refusal(
        Status.ERROR_INVALID_TENSOR_INI_MATCH, f"{name} is {given}, which the operator's table does not have there; "
        f"allowed: {allowed}",
    )  # fmt: skip
