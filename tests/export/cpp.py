"""Executes the AscendC C++ that pyasc writes for one block, and lists what each pipe is told, in order.

pyasc writes one statement a line, each a call or one operation on names. Lines are rewritten as Python and run
over a small model of the language, written from the manual: queues and their events, tensors as places. Nothing
of the simulator is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

SIZE = {
    "half": 2, "float": 4, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4,
    "int64_t": 8, "uint64_t": 8,
}  # fmt: skip
NUMPY = {"half": np.float16, "float": np.float32} | {
    f"{kind}_t": np.dtype(kind)
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}
EVENTS = {"VECIN": ("MTE2_V", "V_MTE2"), "VECOUT": ("V_MTE3", "MTE3_V"), "A1": ("MTE2_MTE1", "MTE1_MTE2"),
          "B1": ("MTE2_MTE1", "MTE1_MTE2"), "A2": ("MTE1_M", "M_MTE1"), "B2": ("MTE1_M", "M_MTE1"),
          "CO1": ("M_FIX", "FIX_M")}  # fmt: skip
"""Of a queue at a position: what enque sets and deque waits for, what free sets and alloc waits for."""
MEMORY = {"VECIN": "UB", "VECOUT": "UB", "VECCALC": "UB", "A1": "L1", "B1": "L1", "A2": "L0A", "B2": "L0B",
          "CO1": "L0C", "C1": "L1", "C2": "BT"}  # fmt: skip

REPEATS_AT = {
    "BlockReduceSum": 2, "BlockReduceMax": 2, "BlockReduceMin": 2, "PairReduceSum": 2, "RepeatReduceSum": 2,
    "WholeReduceSum": 3, "WholeReduceMax": 3, "WholeReduceMin": 3, "Brcb": 2, "Gatherb": 3, "Sort32": 3, "Copy": 3,
}  # fmt: skip
"""Which argument counts the repeats, where it is not the last one before a structure."""

WORK_TENSOR = ("ReduceMax", "ReduceMin")
"""Calls whose third tensor is a scratch place, which is no source of the result."""

Place = tuple[str, int]
"""A memory, or the name of a tensor in GM, and a byte address."""


@dataclass(frozen=True)
class Told:
    """One thing that a pipe is told: an instruction, a flag, a barrier."""

    name: str
    places: tuple[Place, ...] = ()
    amount: int | None = None  # repeats of a vector instruction, bytes of a copy
    detail: str = ""  # of flags and barriers: which


def told(name: str, places: list[Place], amount: int | None) -> Told:
    """Make a `Told` of an instruction: its destination, then its sources in any order."""
    return Told(name, (places[0], *sorted(places[1:])), amount)


@dataclass
class Tensor:
    """A view: where it begins, and how large an element is."""

    memory: str
    address: int
    size: int
    block: Any = None
    data: Any = None  # of GM: the array's bytes, to read scalars from

    def SetGlobalBuffer(self, source: Tensor, *_: int) -> None:
        self.memory, self.address, self.data = source.memory, source.address, source.data

    def __getitem__(self, offset: int) -> Tensor:
        return Tensor(
            self.memory, self.address + offset * self.size, self.size, self.block, self.data
        )

    __add__ = __getitem__

    def ReinterpretCast(self, kind: str) -> Tensor:
        return Tensor(self.memory, self.address, SIZE[kind], self.block, self.data)

    @property
    def place(self) -> Place:
        return self.memory, self.address


@dataclass
class Struct:
    """A structure of parameters: its type and values in the order of its fields."""

    kind: str
    values: list[Any]


class Name:
    """An enumerator: AscendC.TPosition.VECIN."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __getattr__(self, name: str) -> Name:
        return Name(f"{self.text}.{name}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and self.text == other.text

    __hash__ = object.__hash__

    @property
    def last(self) -> str:
        return self.text.rpartition(".")[2]


@dataclass
class Block:
    """A buffer of a queue."""

    memory: str
    address: int
    freed: int | None = None  # event id that its free_tensor has set


@dataclass
class Queue:
    """TQue or TBuf."""

    position: str
    depth: int
    machine: Machine
    blocks: list[Block] = field(default_factory=list)
    waiting: list[tuple[Tensor, int]] = field(default_factory=list)
    turn: int = 0

    def AllocTensor(self, kind: str) -> Tensor:
        block = self.blocks[self.turn % len(self.blocks)]
        self.turn += 1
        if block.freed is not None:
            self.machine.flag("wait_flag", EVENTS[self.position][1], block.freed)
            self.machine.ids[EVENTS[self.position][1]].discard(block.freed)
            block.freed = None
        return Tensor(block.memory, block.address, SIZE[kind], block)

    def EnQue(self, tensor: Tensor) -> None:
        event = EVENTS[self.position][0]
        identity = self.machine.take(event)
        self.machine.flag("set_flag", event, identity)
        self.waiting.append((tensor, identity))

    def DeQue(self, kind: str) -> Tensor:
        tensor, identity = self.waiting.pop(0)
        event = EVENTS[self.position][0]
        self.machine.flag("wait_flag", event, identity)
        self.machine.ids[event].discard(identity)
        return Tensor(tensor.memory, tensor.address, SIZE[kind], tensor.block)

    def FreeTensor(self, tensor: Tensor) -> None:
        event = EVENTS[self.position][1]
        tensor.block.freed = self.machine.take(event)
        self.machine.flag("set_flag", event, tensor.block.freed)

    def Get(self, kind: str, *_: int) -> Tensor:
        return Tensor(self.blocks[0].memory, self.blocks[0].address, SIZE[kind], self.blocks[0])


class Machine:
    """What the C++ runs on: it writes down what each pipe is told."""

    def __init__(self, block: int, blocks: int) -> None:
        self.block = block
        self.blocks = blocks
        self.told: list[Told] = []
        self.ids: dict[str, set[int]] = {}
        self.next: dict[str, int] = {}
        self.queues: list[Queue] = []

    def take(self, event: str) -> int:
        used = self.ids.setdefault(event, set())
        identity = next(i for i in range(8) if i not in used)
        used.add(identity)
        return identity

    def flag(self, name: str, event: str, identity: int) -> None:
        self.told.append(Told(name, detail=f"{event} {identity}"))

    def InitBuffer(self, queue: Queue, *sizes: int) -> None:
        count, size = sizes if len(sizes) == 2 else (1, sizes[0])
        memory = MEMORY[queue.position]
        self.queues.append(queue)
        for _ in range(count):
            address = self.next.get(memory, 0)
            queue.blocks.append(Block(memory, address))
            self.next[memory] = address + math.ceil(size / 32) * 32

    def end(self) -> None:
        """Do what the end of the TPipe's life does: wait for all buffers, then for all pipes."""
        for queue in self.queues:
            for block in queue.blocks:
                if block.freed is not None:
                    self.flag("wait_flag", EVENTS[queue.position][1], block.freed)
        if self.queues:
            self.on_PipeBarrier("PIPE_ALL")

    def call(self, name: str, *args: Any) -> Any:
        """Note a call of namespace AscendC."""
        template = args[0][1:-1] if args and isinstance(args[0], str) and args[0][:1] == "<" else ""
        args = args[1:] if template else args
        known = getattr(self, f"on_{name}", None)
        if known is not None:
            return known(template, *args)
        tensors = [tensor for arg in args for tensor in _tensors(arg)]
        if name == "LoadData":  # from the fractal that the structure begins at
            tensors[1] = Tensor(tensors[1].memory, tensors[1].address + 512 * args[-1].values[0], 2)
        if name in WORK_TENSOR:
            del tensors[2:]
        if tensors:
            self.told.append(told(name, [t.place for t in tensors], _amount(name, tensors, args)))
        return 0  # for calls that ask for a number

    def on_ReduceSum(self, _: str, dst: Tensor, src: Tensor, _work: Tensor, count: int) -> None:
        """The vector unit sums up, the scalar unit stores the sum, and both others wait for that."""
        self.told.append(told("ReduceSum", [src.place], math.ceil(count * src.size / 256)))
        self._hand_over("V_S")
        self.told.append(Told("set_value", (dst.place,)))
        self._hand_over("S_V")
        self._hand_over("S_MTE3")

    def _hand_over(self, event: str) -> None:
        self.flag("set_flag", event, 0)
        self.flag("wait_flag", event, 0)

    def on_GatherMask(self, _: str, *args: Any) -> None:
        """The count of what it kept goes to the scalar unit."""
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        self.told.append(told("GatherMask", [tensor.place for tensor in tensors], None))
        self._hand_over("V_S")

    def on_GetBlockIdx(self, _: str) -> int:
        return self.block

    def on_GetBlockNum(self, _: str) -> int:
        return self.blocks

    def on_SetFlag(self, event: str, identity: int) -> None:
        self.flag("set_flag", event.rpartition(".")[2], identity)

    def on_WaitFlag(self, event: str, identity: int) -> None:
        self.flag("wait_flag", event.rpartition(".")[2], identity)

    def on_PipeBarrier(self, pipe: str) -> None:
        self.told.append(
            Told("pipe_barrier", detail=pipe.removeprefix("PIPE_").replace("ALL", "S"))
        )


def _tensors(arg: Any) -> Iterator[Tensor]:
    if isinstance(arg, Tensor):
        yield arg
    elif isinstance(arg, list):
        for one in arg:
            yield from _tensors(one)


def _amount(name: str, tensors: list[Tensor], args: tuple[Any, ...]) -> int | None:
    """Return what a call works on: bytes of a move, repeats of a vector instruction, fractals of an Mmad."""
    size, last = tensors[0].size, args[-1]
    if name == "Mmad":
        m, n, k, *_ = last.values
        return math.ceil(m / 16) * math.ceil(n / 16) * math.ceil(k * tensors[1].size / 32)
    if name in WORK_TENSOR:
        return None
    if name == "Duplicate" and len(args) == 6:
        return int(args[3])
    if name == "Gather" and len(args) == 7:
        return int(args[5])
    if name in REPEATS_AT:
        return int(args[REPEATS_AT[name]])
    on_chip = [tensor.memory in set(MEMORY.values()) for tensor in tensors]
    if isinstance(last, Struct) and last.kind in AMOUNTS:
        return AMOUNTS[last.kind](last.values, size, not all(on_chip))
    if isinstance(last, Struct) and last.kind in ("UnaryRepeatParams", "BinaryRepeatParams"):
        numbers = [arg for arg in args if isinstance(arg, int)]
        return numbers[-1] & 0xFF if len(numbers) > 1 else None
    if type(last) is int:
        widest = max(tensor.size for tensor in tensors)
        return last * size if not all(on_chip) else math.ceil(last * widest / 256)
    return None


AMOUNTS: dict[str, Callable[[list[int], int, bool], int]] = {
    "DataCopyParams": lambda v, _, moves: v[0] * (v[1] * 32 if moves else math.ceil(v[1] / 8)),
    "DataCopyExtParams": lambda v, size, _: v[0] * v[1],
    "FixpipeParamsV220": lambda v, size, _: v[0] * v[1] * size,
    "Nd2NzParams": lambda v, size, _: v[0] * v[1] * v[2] * size,
    "LoadData2DParams": lambda v, size, _: v[1] * 512,
}
"""By a structure, its values, the element's size, and whether the call moves between memories."""


def differences(cpp: list[Told], simulated: list[Told]) -> list[str]:
    """Return where the two differ, none where they agree. An amount that C++ does not say is not compared."""
    if len(cpp) != len(simulated):
        return [f"{len(cpp)} in C++, {len(simulated)} simulated", *map(str, (*cpp, *simulated))]
    return [
        f"{index}: C++ {one}, simulated {other}"
        for index, (one, other) in enumerate(zip(cpp, simulated, strict=True))
        if one != (replace(other, amount=None) if one.amount is None else other)
    ]


# ---- from C++ to Python -----------------------------------------------------------------------


def run(cpp: str, arguments: dict[str, Any], block: int, blocks: int) -> list[Told]:
    """Execute the kernel for one block and return what the pipes are told.

    `arguments` has the kernel's parameters by name: numpy arrays and numbers.
    """
    machine = Machine(block, blocks)
    lines = [line.strip() for line in cpp.splitlines() if not line.startswith(("//", "#"))]
    head = next(i for i, line in enumerate(lines) if "__global__" in line)
    names = re.findall(r"(\w+)(?:,|\))", lines[head].partition("(")[2])
    text = "\n".join(_python(lines[head + 1 :]))
    space = _space(machine)
    for name in names:
        bare = re.sub(r"^v\d+_", "", name)
        value = arguments.get(bare)
        if isinstance(value, np.ndarray):
            raw = value.reshape(-1).view(np.uint8)
            space[name] = Tensor(bare, 0, value.dtype.itemsize, data=raw)
        else:
            space[name] = value
    exec(compile(text, "<C++>", "exec"), space)
    machine.end()
    return machine.told


def _python(lines: list[str]) -> Iterator[str]:
    """Yield the body's lines as Python. A `for` becomes a `while`, its step stands at the end of its body."""
    steps: list[str | None] = []
    for line in lines:
        indent = "  " * len(steps)
        if line in ("", "return;") or line.startswith("set_ffts_base_addr"):
            continue
        if line in ("}", "};"):
            if not steps:
                return
            step = steps.pop()
            yield indent + (step or "pass")
            continue
        if line == "} else {":
            yield indent + "pass"
            yield indent[2:] + "else:"
            continue
        loop = re.fullmatch(r"for \(\w+ (\w+) = (\w+); (.+); (\w+) \+= (\w+)\) \{", line)
        if loop:
            yield f"{indent}{loop[1]} = {loop[2]}"
            yield f"{indent}while {_expression(loop[3])}:"
            steps.append(f"{loop[4]} += {loop[5]}")
            continue
        opened = re.fullmatch(r"(if|while) \((.+)\) \{", line)
        if opened:
            yield f"{indent}{opened[1]} {_expression(opened[2])}:"
            steps.append(None)
            continue
        yield indent + _statement(line.removesuffix(";"))


TYPE = r"(?:constexpr |__gm__ |const )*(?:AscendC::)?\w+(?:<.*?>)?\*?"


def _statement(line: str) -> str:
    built = re.fullmatch(rf"({TYPE}) (\w+)\{{(.*)\}}", line)
    if built:
        kind = built[1].rpartition("::")[2]
        return f"{built[2]} = Struct({kind!r}, [{_expression(built[3])}])"
    array = re.fullmatch(rf"{TYPE} (\w+)\[\d*\] = \{{(.*)\}}", line)
    if array:
        return f"{array[1]} = [{_expression(array[2])}]"
    assigned = re.fullmatch(rf"(?:{TYPE} )?(\w+) = (.+)", line)
    if assigned:
        return f"{assigned[1]} = {_expression(assigned[2])}"
    declared = re.fullmatch(rf"({TYPE}) (\w+)", line)
    if declared:
        return f"{declared[2]} = declare({declared[1].replace('AscendC::', '')!r})"
    return _expression(line)


def _expression(text: str) -> str:
    text = re.sub(r"static_cast<([\w:]+)>\(", r"cast('\1', ", text)
    text = re.sub(r"\((u?int\d+_t|float|half|bool)\) ?", "", text)
    text = text.replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"!(?!=)", " not ", text)
    # Template arguments become a first argument, a text in angle brackets where it is a call of AscendC's.
    text = re.sub(r"AscendC::(\w+)<([^()]*)>\(", r"call('\1', '<\2>', ", text)
    text = re.sub(r"AscendC::(\w+)\(", r"call('\1', ", text)
    text = re.sub(r"\.(\w+)<([\w:]+)>\(", r".\1('\2', ", text)
    text = text.replace("::", ".")
    text = re.sub(r"\btrue\b", "True", text)
    text = re.sub(r"\bfalse\b", "False", text)
    return re.sub(
        r"(\w+) ([/%]) (\w+)", lambda m: f"{'div' if m[2] == '/' else 'rem'}({m[1]}, {m[3]})", text
    )


def _space(machine: Machine) -> dict[str, Any]:
    """Return what names stand for while the rewritten lines run."""

    def div(a: int, b: int) -> int:
        return int(a / b) if isinstance(a, float) else abs(a) // abs(b) * (1 if a * b >= 0 else -1)

    def cast(kind: str, value: Any) -> Any:
        if kind not in NUMPY or kind in ("half", "float"):
            return float(value) if kind in NUMPY else value
        return int(np.array(int(value)).astype(NUMPY[kind]))

    def declare(kind: str) -> Any:
        outer, _, inner = kind.partition("<")
        if outer == "GlobalTensor":
            return Tensor("", 0, SIZE[inner.rstrip(">")])
        if outer in ("TQue", "TQueBind", "TBuf"):
            position = re.findall(r"TPosition::(\w+)", inner)[-1]
            return Queue(position, 1, machine)
        return machine if outer == "TPipe" else None

    def call(name: str, *args: Any) -> Any:
        if name == "LocalTensor":
            kind, position, address, _ = args
            return Tensor(MEMORY[position.last], address, SIZE[kind[1:-1]])
        return machine.call(name, *args)

    def get_value(tensor: Tensor, index: int) -> Any:
        machine.told.append(
            Told("get_value", ((tensor.memory, tensor.address + index * tensor.size),))
        )
        if tensor.data is None:
            return 1  # what was computed is not known here; nothing may hang on it
        kind = next(k for k, v in SIZE.items() if v == tensor.size and k.startswith("int"))
        start = tensor.address + index * tensor.size
        return int(tensor.data[start : start + tensor.size].view(NUMPY[kind])[0])

    def set_value(tensor: Tensor, index: int, _: Any) -> None:
        place = (tensor.memory, tensor.address + index * tensor.size)
        machine.told.append(Told("set_value", (place,)))

    Tensor.GetValue = get_value  # type: ignore[attr-defined]
    Tensor.SetValue = set_value  # type: ignore[attr-defined]
    return {"div": div, "rem": lambda a, b: a - div(a, b) * b, "cast": cast, "declare": declare, "call": call,
            "Struct": Struct, "AscendC": Name("AscendC"), "g_coreType": Name("AscendC.AIV")}  # fmt: skip
