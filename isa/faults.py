"""How the instruction set reports a mistake, without knowing who listens.

`fault` raises `IsaFault`; the simulator's stream turns it into its own error with call site, core and
pipe. Used alone, `isa` shows the message as it stands.
"""

from __future__ import annotations

from typing import NoReturn

from isa.stream import current


class IsaFault(Exception):
    """An instruction got what it does not take. `kind` and `code` classify it as a finding does."""

    def __init__(
        self,
        kind: str,
        code: str,
        message: str,
        tensor: str = "",
        byte_range: tuple[int, int] | None = None,
        pipe: str = "",
    ) -> None:
        super().__init__(kind, code, message, tensor, byte_range, pipe)
        self.kind = kind
        self.code = code
        self.message = message
        self.tensor = tensor
        self.byte_range = byte_range
        self.pipe = pipe

    def __str__(self) -> str:
        return self.message


def fault(
    kind: str,
    code: str,
    message: str,
    tensor: str = "",
    byte_range: tuple[int, int] | None = None,
    pipe: str = "",
) -> NoReturn:
    """Raise the fault described, through the current stream where there is one."""
    error = IsaFault(kind, code, message, tensor, byte_range, pipe)
    stream = current.get(None)
    if stream is not None:
        stream.fault(error)
    raise error
