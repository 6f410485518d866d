"""A launch's arguments: what the host passes, and what each block of the kernel gets for it.

Arrays become addresses in GM, structures lie in GM and are read when a block begins, numbers are passed as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ascend_sim.errors import host_error
from ascend_sim.lang.jit import ConstExpr, is_constant
from ascend_sim.lang.structs import Struct
from isa.tensor import GlobalAddress, GlobalTensor, GmBuffer
from isa.types import DType, dtype_of, uint64

WORD_BYTES = 8
"""What the scalar unit reads of a structure at a time."""


def bind_arguments(
    args: tuple[Any, ...], names: list[str]
) -> tuple[list[Callable[[], Any]], dict[str, GlobalAddress], dict[str, Any]]:
    """Return for each argument what makes a block's value of it, the addresses by name, and the arrays by name.

    Raises HostError for an argument that a kernel cannot take.
    """
    roots: dict[int, GmBuffer] = {}
    makers: list[Callable[[], Any]] = []
    addresses: dict[str, GlobalAddress] = {}
    arrays: dict[str, Any] = {}
    for name, argument in zip(names, args, strict=False):
        array = _as_array(argument)
        if array is not None:
            address = _address(name, array, roots)
            addresses[name] = address
            arrays[name] = argument
            makers.append(address.copy)
        elif isinstance(argument, Struct):
            addresses[name] = address = _struct_address(name, argument, roots)
            makers.append(partial(_read_struct, address, argument.create_local()))
        else:
            _check_scalar(name, argument)
            makers.append(partial(_same, ConstExpr.unwrap(argument)))
    return makers, addresses, arrays


def check_kinds(parameters: Mapping[str, inspect.Parameter], args: tuple[Any, ...]) -> None:
    """Raise HostError where a number stands for what the kernel declares as a GM address, or the reverse.

    Mostly two arguments have changed places, and a kernel whose tiling is a workspace does nothing or anything.
    """
    for (name, parameter), argument in zip(parameters.items(), args, strict=False):
        if parameter.kind is parameter.VAR_POSITIONAL:
            return
        wanted = parameter.annotation
        address = wanted is GlobalAddress or (isinstance(wanted, str) and "GlobalAddress" in wanted)
        number = wanted in (int, float, "int", "float") or is_constant(wanted)
        tiling = isinstance(wanted, type) and issubclass(wanted, Struct)
        given = _as_array(argument) is not None
        told = ""
        if address and (isinstance(argument, (int, float, np.generic, Struct))):
            what = "a structure" if isinstance(argument, Struct) else f"the number {argument}"
            told = f"{name} is {what}, and the kernel declares it as an address in GM"
        elif given and (number or tiling):
            kind = "a structure" if tiling else "a number"
            told = f"{name} is a tensor in GM, and the kernel declares it as {kind}"
        if told:
            raise host_error(
                "argument-type",
                f"argument {told}. The order is {', '.join(parameters)}: have two arguments changed places?",
            )


def as_pyasc_passes(name: str, argument: Any, *, constant: bool) -> Any:
    """Return an argument of `kernel[blocks](…)` as pyasc hands it over: run-time numbers are int32 or float32."""
    if constant or isinstance(argument, bool):
        return argument
    if isinstance(argument, int) and not -(1 << 31) <= argument < 1 << 31:
        raise host_error(
            "argument-type",
            f"argument {name} is {argument}, and a run-time integer is an int32. Pass numpy.int64({argument}), or "
            f"annotate {name} with asc.ConstExpr[int]",
        )
    if isinstance(argument, np.generic):
        return argument.item()
    return float(np.float32(argument)) if isinstance(argument, float) else argument


def _same(value: Any) -> Any:
    return value


def _struct_address(name: str, struct: Struct, roots: dict[int, GmBuffer]) -> GlobalAddress:
    """Return where a structure's bytes lie in GM, in whole words."""
    data = struct.pack()
    data = data.ljust(-(-len(data) // WORD_BYTES) * WORD_BYTES, b"\0")
    buffer = GmBuffer(name, np.frombuffer(data, np.uint8), len(roots) + 1)
    roots[-len(roots) - 1] = buffer  # at no address of the host's: it is a copy
    return GlobalAddress(buffer, uint64)


def _read_struct(address: GlobalAddress, struct: Struct) -> Struct:
    """Read a structure word by word, as a block does when it begins; return the block's own copy."""
    tensor = GlobalTensor()
    tensor.set_global_buffer(address.copy())
    for word in range(address.length // WORD_BYTES):
        tensor.get_value(word)
    return struct.create_local()


def _check_scalar(name: str, argument: Any) -> None:
    if argument is None or isinstance(argument, (bool, int, float, str, np.generic, DType, tuple)):
        return
    if isinstance(argument, (list, dict)):
        raise host_error(
            "argument-type",
            f"argument {name} is a {type(argument).__name__}: pass a numpy array or numbers",
        )


def _as_array(argument: Any) -> np.ndarray[Any, Any] | None:
    if isinstance(argument, np.ndarray):
        return argument
    if type(argument).__module__.split(".")[0] == "torch" and hasattr(argument, "untyped_storage"):
        return _torch_array(argument)
    return None


def _torch_array(tensor: Any) -> np.ndarray[Any, Any]:
    """Return a torch tensor's memory as a numpy array. bfloat16 goes through its bits."""
    if tensor.device.type != "cpu":
        raise host_error(
            "argument-type",
            f"a torch tensor is on {tensor.device}; the simulator needs it on the CPU",
        )
    if not tensor.is_contiguous():
        raise host_error(
            "not-contiguous", "a torch tensor is not contiguous; pass tensor.contiguous()"
        )
    import ml_dtypes  # noqa: PLC0415  only for its bfloat16
    import torch  # noqa: PLC0415  only where a torch tensor is given

    plain = tensor.detach()
    if plain.dtype is torch.bfloat16:
        return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)  # type: ignore[no-any-return]
    return plain.numpy()  # type: ignore[no-any-return]


def _address(name: str, array: np.ndarray[Any, Any], roots: dict[int, GmBuffer]) -> GlobalAddress:
    if not array.flags.c_contiguous:
        raise host_error(
            "not-contiguous",
            f"argument {name} is not contiguous (strides {array.strides} for shape {array.shape}); pass "
            f"numpy.ascontiguousarray({name}) and copy the result back",
        )
    try:
        dtype = dtype_of(array.dtype)
    except KeyError:
        raise host_error(
            "argument-type",
            f"argument {name} is of type {array.dtype}, which the machine does not have",
        ) from None
    root = array
    while isinstance(root.base, np.ndarray) and root.base.flags.c_contiguous:
        root = root.base
    start = root.__array_interface__["data"][0]
    buffer = roots.get(start)
    if buffer is None or buffer.nbytes < root.nbytes:
        flat = root.reshape(-1).view(np.uint8) if root.nbytes else np.empty(0, np.uint8)
        buffer = roots[start] = GmBuffer(name, flat, len(roots) + 1)
    offset = array.__array_interface__["data"][0] - start
    return GlobalAddress(buffer, dtype, offset, array.nbytes, array.shape)
