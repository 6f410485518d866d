"""A small program around one instruction: tensors go in, the instruction works, the result is checked.

Everything stays inside what pyasc translates.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from isa.types import DType

SPACE_BYTES = 32
VALUES = "np.arange({count}) % 7"
"""What an input holds where the example does not say."""


@dataclass(frozen=True, slots=True)
class Array:
    """A tensor in GM: its name in the program, element type, number of elements, and an expression of its values."""

    name: str
    dtype: str
    count: int
    values: str

    @property
    def line(self) -> str:
        """The statement that makes it."""
        return f"{self.name} = np.array({self.values}).astype({numpy_name(self.dtype)})"


@dataclass(frozen=True, slots=True)
class Example:
    """A program: tensors (the last is written), the kernel's own lines, and what must hold after the launch.

    `about` is the line of the body that the example is there for.
    """

    arrays: tuple[Array, ...]
    body: tuple[str, ...]
    about: str
    check: str
    kernel_type: str = ""
    blocks: int = 1

    @property
    def text(self) -> str:
        """The program, ready to run."""
        return "\n".join(
            [
                *_head(self),
                *textwrap.indent("\n".join(self.body), "    ").splitlines(),
                *_tail(self),
            ]
        )


def numpy_name(dtype: str) -> str:
    """Return numpy's word for an element type."""
    return f"ml_dtypes.{dtype}" if dtype == "bfloat16" else f"np.{dtype}"


def _head(example: Example) -> list[str]:
    words = [f"{array.name}: asc.GlobalAddress" for array in example.arrays]
    kind = f'(kernel_type="{example.kernel_type}")' if example.kernel_type else ""
    needs = ["import ml_dtypes"] if any(a.dtype == "bfloat16" for a in example.arrays) else []
    lines = [
        *needs,
        "import numpy as np",
        "",
        "from ascend_sim import asc",
        "",
        "",
        f"@asc.jit{kind}",
    ]
    lines.append(f"def kernel({', '.join(words)}):")
    for array in example.arrays:
        lines += [
            f"    {array.name}_gm = asc.GlobalTensor()",
            f"    {array.name}_gm.set_global_buffer({array.name})",
        ]
    return lines


def _tail(example: Example) -> list[str]:
    names = [array.name for array in example.arrays]
    return [
        "",
        "",
        *[array.line for array in example.arrays],
        f"kernel[{example.blocks}]({', '.join(names)})",
        f"print({names[-1]}.reshape(-1)[:8])",
        f"assert {example.check}",
        "",
    ]


class Frame:
    """Builds the kernel of a vector example: loads to UB, the instruction, the store."""

    def __init__(self) -> None:
        self.next = 0

    def local(self, name: str, dtype: str, count: int, position: str = "VECCALC") -> str:
        """Return the line that makes a tensor in UB, behind those made before."""
        size = DType(dtype).size * count
        line = (
            f"{name} = asc.LocalTensor(asc.{dtype}, asc.TPosition.{position}, {self.next}, {count})"
        )
        self.next += -(-size // SPACE_BYTES) * SPACE_BYTES
        return line


Spec = tuple[str, int] | tuple[str, int, str]
"""Element type, number of elements, and an expression of the values (default `VALUES`)."""


def vector(
    about: str,
    check: str,
    *,
    x: Spec | None = ("float16", 128),
    y: Spec | None = None,
    z: Spec = ("float16", 128),
    work: dict[str, Spec] | None = None,
    before: str = "",
    after: str = "",
    store: str = "",
) -> Example:
    """Return an example of a vector instruction: x is loaded into `a`, y into `b`, `c` is stored into z.

    `work` are further tensors in UB, `before` and `after` lines around the one that counts, `store` another way
    to store. Where `about` is one of the lines that load or store, it stands there.
    """
    frame = Frame()
    arrays, locals_, loads = [], [], []
    for name, local, spec in (("x", "a", x), ("y", "b", y)):
        if spec is None:
            continue
        dtype, count = spec[:2]
        arrays.append(Array(name, dtype, count, (*spec, VALUES.format(count=count))[2]))
        locals_.append(frame.local(local, dtype, count, "VECIN"))
        loads.append(f"asc.data_copy({local}, {name}_gm, {count})")
    locals_ += [frame.local(name, spec[0], spec[1]) for name, spec in (work or {}).items()]
    dtype, count = z[:2]
    arrays.append(Array("z", dtype, count, (*z, f"np.zeros({count})")[2]))
    locals_.append(frame.local("c", dtype, count, "VECOUT"))
    store = store or _store(count, DType(dtype).size)
    if loads:
        loads += ["asc.set_flag(asc.HardEvent.MTE2_V, 0)", "asc.wait_flag(asc.HardEvent.MTE2_V, 0)"]
    lines = [*locals_, *loads, *before.splitlines()]
    lines += [] if about in (*loads, *store.splitlines()) else [about]
    lines += after.splitlines()
    lines += ["asc.set_flag(asc.HardEvent.V_MTE3, 0)", "asc.wait_flag(asc.HardEvent.V_MTE3, 0)"]
    lines += store.splitlines()
    return Example(tuple(arrays), tuple(lines), about, check)


def _store(count: int, size: int) -> str:
    if count * size % SPACE_BYTES:
        return f"asc.data_copy_pad(z_gm, c, asc.DataCopyExtParams(1, {count * size}, 0, 0, 0))"
    return f"asc.data_copy(z_gm, c, {count})"


def cube(about: str, check: str, arrays: tuple[Array, ...], body: str) -> Example:
    """Return an example on a cube core, from its whole body."""
    return Example(
        arrays, tuple(textwrap.dedent(body).strip().splitlines()), about, check, "AIC_ONLY"
    )
