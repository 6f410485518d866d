"""What a kernel says while it runs: printf, dumps of tensors, time stamps, traps.

Text appears on standard output (on standard error where standard output is kept for JSON), each line with the
block that printed it. Each call costs the scalar unit one step; a dump waits until all pipes are empty, as the
hardware's does.
"""

from __future__ import annotations

import re
from typing import Any

from ascend_sim.lang.queues import program
from ascend_sim.lang.values import ShapeInfo
from isa.arguments import check_integer
from isa.faults import fault
from isa.numerics import is_number
from isa.show import elements, in_brackets
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import Space

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ 0#]*\d*(?:\.\d+)?)(?:hh|h|ll|l|z|j|t|L)?(?P<letter>.)", re.S
)
_INTEGERS = "diuxXo"
_FLOATS = "fFeEgG"
_DUMPED = (Space.UB, Space.L1, Space.L0C, Space.GM)


def printf(desc: str, *params: Any) -> None:
    """Print as C's printf does: %d %i %u %x %X %o %f %e %g %c %s %p %%, lengths such as %lld among them."""
    if not isinstance(desc, str):
        fault("ILLEGAL_PARAM", "printf-format", f"printf: the format is a string, got {desc!r}")
    program().show("printf", _formatted(desc, list(params)))


def _formatted(desc: str, params: list[Any]) -> str:
    left = list(params)

    def convert(match: re.Match[str]) -> str:
        letter, flags = match["letter"], match["flags"]
        if letter == "%":
            return "%"
        if letter not in _INTEGERS + _FLOATS + "csp":
            fault("ILLEGAL_PARAM", "printf-format", f"printf: no conversion {match[0]!r}")
        if not left:
            fault(
                "ILLEGAL_PARAM",
                "printf-format",
                f"printf({desc!r}): {_counts(desc, params)}",
            )
        value = left.pop(0)
        if letter == "s":
            return str(f"%{flags}s" % value)
        if letter == "c":
            return str(f"%{flags}c" % value)
        if not is_number(value):
            value = _address(desc, match[0], value)
        if letter == "p":
            return f"%#{flags}x" % int(value)
        if letter in _INTEGERS:
            whole = int(value)
            if letter not in "di" and whole < 0:
                whole += 1 << (32 if whole >= -(1 << 31) else 64)  # unsigned, as C shows it
            return f"%{flags}{'d' if letter == 'u' else letter}" % whole
        return f"%{flags}{letter}" % float(value)

    text = _CONVERSION.sub(convert, desc)
    if left:
        fault(
            "ILLEGAL_PARAM",
            "printf-format",
            f"printf({desc!r}): {_counts(desc, params)}",
        )
    return text


def _counts(desc: str, params: list[Any]) -> str:
    conversions = sum(found["letter"] != "%" for found in _CONVERSION.finditer(desc))
    values = "1 value" if len(params) == 1 else f"{len(params)} values"
    return f"{values} for {conversions} conversion{'s' * (conversions != 1)}"


def _address(desc: str, conversion: str, value: Any) -> int:
    if isinstance(value, LocalTensor):
        return value.addr
    if isinstance(value, GlobalTensor):
        return value.offset
    fault(
        "ILLEGAL_PARAM",
        "printf-format",
        f"printf({desc!r}): {conversion} needs a number, got {value!r}",
    )


def dump_tensor(
    tensor: GlobalTensor | LocalTensor,
    desc: int,
    dump_size: int,
    shape_info: ShapeInfo | None = None,
) -> None:
    """Print `dump_size` elements of a tensor in UB, L1, L0C or GM, nested as `shape_info` says.

    Where the shape has more places than elements, the rest is "-"; elements beyond it are left out.
    """
    desc = check_integer("dump_tensor", "desc", desc, 0, (1 << 32) - 1)
    if shape_info is not None and not isinstance(shape_info, ShapeInfo):
        fault(
            "ILLEGAL_PARAM",
            "wrong-params",
            f"dump_tensor: shape_info must be a ShapeInfo, got {shape_info!r}",
        )
    shape = shape_info.dims if shape_info is not None else ()
    _dump("dump_tensor", tensor, f"DumpTensor: desc={desc}", 0, dump_size, shape)


def dump_acc_chk_point(
    tensor: GlobalTensor | LocalTensor, index: int, count_off: int, dump_size: int
) -> None:
    """Print `dump_size` elements of a tensor from element `count_off`, under a number of its own."""
    name = "dump_acc_chk_point"
    index = check_integer(name, "index", index, 0, (1 << 32) - 1)
    count_off = check_integer(name, "count_off", count_off, 0, (1 << 32) - 1)
    head = f"DumpAccChkPoint: index={index}, offset={count_off}"
    _dump(name, tensor, head, count_off, dump_size, ())


def _dump(
    name: str, tensor: Any, head: str, offset: int, dump_size: Any, shape: tuple[int, ...]
) -> None:
    count = check_integer(name, "dump_size", dump_size, 0, (1 << 32) - 1)
    access = elements(name, tensor, offset, count)
    if access.space not in _DUMPED:
        fault(
            "ILLEGAL_PARAM",
            "wrong-position",
            f"{name}: {access.name} is in {access.space.name}; UB, L1, L0C and GM can be dumped",
        )
    stream = program()
    head += f", addr={access.base:#x}, data_type={access.dtype}, position={access.space.name}"

    def tell(values: Any) -> None:
        stream.write(f"{head}, dump_size={count}\n{in_brackets(values.tolist(), shape)}\n")

    stream.observe(name, access, tell)


def print_time_stamp(desc_id: int) -> None:
    """Print a number of the kernel's choice and the cycle; the traces mark the place."""
    desc_id = check_integer("print_time_stamp", "desc_id", desc_id, 0, (1 << 32) - 1)
    stream = program()
    cycle = stream.cycle_counter()
    text = f"descId is {desc_id}, rsv is 0, timeStamp is {cycle}, pcPtr is {_place()}, entry is 0\n"
    stream.show("print_time_stamp", text, f"id:{desc_id}")


def get_program_counter() -> int:
    """Return a number that stands for this place in the program: the same at every visit."""
    return _place()


def _place() -> int:
    return int(program().site(3))


def trap() -> None:
    """Stop the kernel here, as an exception of the core does."""
    program().stop(
        "trap",
        "STATE",
        "trap",
        "the kernel stopped itself with trap(); on the hardware the stream reports an exception of the core",
    )


def metrics_prof_start() -> None:
    """Begin what a profiler measures: what is issued from here on counts for the phase `metrics_prof`."""
    stream = program()
    stream.mark("metrics_prof_start")
    stream.open_phase("metrics_prof")


def metrics_prof_stop() -> None:
    """End what a profiler measures."""
    stream = program()
    stream.open_phase("")
    stream.mark("metrics_prof_stop")
