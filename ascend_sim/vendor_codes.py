"""What the vendor's tools and the board call the mistakes that findings name.

Four vocabularies: npuchk's codes (the checker of the CPU twin), msSanitizer's headlines, the bits of the AI Core's
error register as the runtime's log prints them, and the runtime's return code, which only tells a fault from a time-out
and a vector task from others. Names and numbers are facts of those tools' documents and of the runtime's table of bits.
What has no entry is silent on the board: wrong numbers, or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

RUNTIME = {
    507014: "AICORE_TIMEOUT, a task with cube cores",
    507015: "AICORE_EXCEPTION, a task with cube cores",
    507016: "AICORE_TRAP, a task with cube cores",
    507034: "VECTOR_CORE_TIMEOUT, a task of vector cores alone",
    507035: "VECTOR_CORE_EXCEPTION, a task of vector cores alone",
    507036: "VECTOR_CORE_TRAP, a task of vector cores alone",
}
"""Return codes of the runtime. The kind of task decides between two, not the kind of fault."""

NPUCHK = {
    "ErrorRead1": "read of an address that is not allocated, or freed",
    "ErrorRead2": "read of bytes that nothing has written",
    "ErrorRead3": "read out of bounds",
    "ErrorRead4": "read that does not start on a 32-byte border",
    "ErrorWrite1": "write to an address that is not allocated, or freed",
    "ErrorWrite2": "write out of bounds",
    "ErrorWrite3": "overwrite of data that nobody has read",
    "ErrorWrite4": "write that does not start on a 32-byte border",
    "ErrorSync1": "write without the barrier or flags that it needs",
    "ErrorSync2": "read without the barrier or flags that it needs",
    "ErrorSync3": "a set and a wait that do not pair",
    "ErrorSync4": "an event id that is set twice before a wait",
    "ErrorLeak": "a tensor that is never freed",
    "ErrorFree": "a tensor that is freed twice",
    "ErrorBuffer0": "no InitBuffer",
    "ErrorBuffer1": "a tensor of another queue",
    "ErrorBuffer2": "a position that the call does not take",
    "ErrorBuffer3": "memory of a tensor that is not valid",
    "ErrorBuffer4": "a TBufPool that is not initialised",
}

REGISTER = {
    "CCU_ILLEGAL_INSTR": 4,
    "CUBE_L0A_WRAP_AROUND": 12,
    "CUBE_L0B_WRAP_AROUND": 15,
    "CUBE_L0C_WRAP_AROUND": 19,
    "MTE_BIU_RDWR_RESP": 23,
    "MTE_GDMA_READ_OVERFLOW": 32,
    "MTE_GDMA_WRITE_OVERFLOW": 33,
    "VEC_UB_SELF_RDWR_CFLT": 61,
    "VEC_UB_WRAP_AROUND": 62,
    "MTE_ATM_ADDR_MISALG": 74,
    "VEC_INSTR_ADDR_MISALIGN": 75,
    "VEC_INSTR_ILLEGAL_CFG": 76,
    "CCU_BUS_ERR": 79,
    "MTE_ERR_ADDR_MISALIGN": 80,
    "MTE_ERR_INSTR_ILLEGAL_CFG": 116,
    "CCU_MPU_ERR": 121,
    "CCU_CROSS_CORE_SET_OVFL_ERR": 140,
    "MTE_ERR_L0C_RDWR_CFLT": 144,
}
"""Bits of the error register by name; the log prints them in words of 64."""

_FAULT, _HANG, _TRAP = (507015, 507035), (507014, 507034), (507016, 507036)


@dataclass(frozen=True, slots=True)
class Vendor:
    """The names of one mistake elsewhere."""

    npuchk: tuple[str, ...] = ()
    register: tuple[str, ...] = ()
    runtime: tuple[int, ...] = ()
    sanitizer: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return them as plain JSON; bits with their number, word and value."""
        return {
            "npuchk": list(self.npuchk),
            "register": [
                {"name": name, "bit": bit, "word": bit // 64, "value": f"{1 << bit % 64:#x}"}
                for name in self.register
                for bit in (REGISTER[name],)
            ],
            "runtime": list(self.runtime),
            "sanitizer": self.sanitizer,
        }

    def text(self) -> list[str]:
        """Return them as sentences; one that says so where there are none."""
        lines = []
        if self.npuchk:
            lines.append(f"npuchk: {', '.join(f'{one} ({NPUCHK[one]})' for one in self.npuchk)}.")
        if self.sanitizer:
            lines.append(f"msSanitizer: {self.sanitizer}.")
        if self.register:
            bits = [f"{one} (bit {REGISTER[one]}, {_word(REGISTER[one])})" for one in self.register]
            lines.append(f"Error register: {', '.join(bits)}.")
        if self.runtime:
            codes = [f"{one} ({RUNTIME[one]})" for one in self.runtime]
            lines.append(f"Runtime: {', '.join(codes)}.")
        return lines or [
            "On the board it has no code: the kernel ends, and its numbers may be wrong."
        ]

    def names(self) -> Iterator[str]:
        """Yield every name and number."""
        yield from self.npuchk
        yield from self.register
        yield from map(str, self.runtime)


def _word(bit: int) -> str:
    return f"{1 << bit % 64:#x} in word {bit // 64}"


_NOTHING = Vendor()
_OUTSIDE = Vendor(
    ("ErrorRead3", "ErrorWrite2"),
    ("VEC_UB_WRAP_AROUND", "MTE_GDMA_READ_OVERFLOW", "MTE_GDMA_WRITE_OVERFLOW"),
    _FAULT,
    "illegal read or write of size N",
)
_PARAMETER = Vendor((), ("VEC_INSTR_ILLEGAL_CFG", "MTE_ERR_INSTR_ILLEGAL_CFG"), _FAULT)
_HAZARD = "Potential {} hazard detected"
_REGISTER_LEFT = Vendor(sanitizer="Register X was not reset to default")
_OTHER_CORES = (
    "out of bounds of size N (bytes that another core wrote), and the hazard of racecheck"
)

OF_KIND: dict[str, Vendor] = {
    "BOUNDS": _OUTSIDE,
    "UNINIT": Vendor(("ErrorRead2",), sanitizer="uninitialized read of size N"),
    "ALIGNMENT": Vendor(
        ("ErrorRead4", "ErrorWrite4"), ("VEC_INSTR_ADDR_MISALIGN", "MTE_ERR_ADDR_MISALIGN"), _FAULT,
        "misaligned access of size N",
    ),
    "ILLEGAL_PARAM": _PARAMETER,
    "CAPACITY": Vendor((), ("VEC_UB_WRAP_AROUND",), _FAULT),
    "DEADLOCK": Vendor((), (), _HANG, "N pipe(s) locked up"),
}  # fmt: skip
"""By kind, for codes that have no entry of their own."""

OF_CODE: dict[str, Vendor] = {
    "gm-out-of-bounds": Vendor(
        ("ErrorRead3", "ErrorWrite2"), ("MTE_BIU_RDWR_RESP", "CCU_BUS_ERR"), _FAULT,
        "illegal read or write of size N on GM",
    ),
    "array-index": _NOTHING,
    "matmul-room": _NOTHING,
    "row-offset-overflow": _NOTHING,
    "shape-dimension": _NOTHING,
    "operands-overlap": Vendor((), ("VEC_UB_SELF_RDWR_CFLT",), _FAULT),
    "operand-overlap": Vendor((), ("VEC_UB_SELF_RDWR_CFLT",), _FAULT),
    "live-tensors-overlap": Vendor(("ErrorWrite3",)),
    "gm-misaligned": Vendor(
        (), ("MTE_ERR_ADDR_MISALIGN", "MTE_ATM_ADDR_MISALG"), _FAULT, "misaligned access of size N"
    ),
    "…-limit": _NOTHING,
    "wrong-position": Vendor(("ErrorBuffer2",), ("CCU_ILLEGAL_INSTR",), _FAULT),
    "cast-pair": Vendor((), ("CCU_ILLEGAL_INSTR", "VEC_INSTR_ILLEGAL_CFG"), _FAULT),
    "race-raw": Vendor(("ErrorSync2",), sanitizer=_HAZARD.format("RAW")),
    "race-war": Vendor(("ErrorSync1",), sanitizer=_HAZARD.format("WAR")),
    "race-waw": Vendor(("ErrorSync1",), sanitizer=_HAZARD.format("WAW")),
    "race-blocks-raw": Vendor(sanitizer=_OTHER_CORES),
    "race-blocks-war": Vendor(sanitizer=_OTHER_CORES),
    "race-blocks-waw": Vendor(sanitizer=_OTHER_CORES),
    "flag-left-set": Vendor(("ErrorSync3",), sanitizer="Unpaired set_flag instructions detected"),
    "flag-set-twice": Vendor(("ErrorSync4",), sanitizer="Unpaired set_flag instructions detected"),
    "cross-core-counter-overflow": Vendor((), ("CCU_CROSS_CORE_SET_OVFL_ERR",), _FAULT),
    "cross-core-counter-left": Vendor(("ErrorSync3",)),
    "redundant-flag": Vendor(sanitizer="Redundant set_flag instructions detected"),
    "deque-empty": Vendor((), (), _HANG),
    "double-free": Vendor(("ErrorFree",), sanitizer="illegal free()"),
    "tensor-not-freed": Vendor(("ErrorLeak",), sanitizer="LeakCheck: detected memory leaks"),
    "use-after-free": Vendor(("ErrorRead1", "ErrorWrite1")),
    "foreign-tensor": Vendor(("ErrorBuffer1",)),
    "no-buffer": Vendor(("ErrorBuffer0", "ErrorBuffer4")),
    "queue-position": Vendor(("ErrorBuffer2",)),
    "too-many-buffers": Vendor((), (), _HANG),
    "no-event-id": Vendor((), (), _HANG),
    "atomic-left-on": _REGISTER_LEFT,
    "counter-mode-left-on": _REGISTER_LEFT,
    "mask-left-narrow": _REGISTER_LEFT,
    "hf32-left-on": _REGISTER_LEFT,
    "trap": Vendor((), (), _TRAP),
}  # fmt: skip


def vendor_of(kind: str, code: str) -> Vendor:
    """Return what a finding is called elsewhere."""
    known = OF_CODE.get("…-limit" if code.endswith("-limit") else code)
    return OF_KIND.get(kind, _NOTHING) if known is None else known


def find(word: str) -> str | None:
    """Return the vendor's name that a word stands for: a code, a bit's name or number ("bit 62"), or its value.

    A value is looked for in each word of the register: 0x800 is bit 11 and bit 75; those in `REGISTER` count.
    """
    names = [*NPUCHK, *REGISTER, *map(str, RUNTIME)]
    for name in names:
        if name.lower() == word.lower():
            return name
    bits = {number: name for name, number in REGISTER.items()}
    if word.lower().startswith("bit") and word[3:].strip().isdigit():
        return bits.get(int(word[3:]))
    if word.lower().startswith("0x"):
        try:
            value = int(word, 16)
        except ValueError:
            return None
        return next((name for name, bit in REGISTER.items() if 1 << bit % 64 == value), None)
    return None


def meaning(name: str) -> str:
    """Return what a vendor's name means."""
    if name in NPUCHK:
        return f"{name} (npuchk): {NPUCHK[name]}."
    if name in REGISTER:
        return f"{name}: bit {REGISTER[name]} of the AI Core's error register, {_word(REGISTER[name])}."
    return f"{name} (runtime): {RUNTIME[int(name)]}."
