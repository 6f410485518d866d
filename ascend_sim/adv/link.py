"""What a Matmul object knows of its cube core, be it the running one or one that gets messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ascend_sim.adv.commands import Command
    from isa.tensor import GlobalTensor, LocalTensor
    from isa.types import DType


class Link(Protocol):
    """How an object reaches its cube core."""

    on_cube_core: bool

    def send(self, command: Command, *, wait: bool) -> None:
        """Have a command done; with `wait`, go on only when its results are in GM."""
        ...

    def wait(self) -> None:
        """Go on only when the results of the last command sent with a later wait are in GM."""
        ...

    def promise(self, command: Command) -> None:
        """Have a command done, `wait` follows later."""
        ...

    def lend(self, tensor: LocalTensor, count: int, area: str) -> GlobalTensor:
        """Copy `count` elements of a local operand to where the cube core can read them."""
        ...

    def fetched(self) -> None:
        """Let the vector pipe wait for what has been fetched."""
        ...

    def fetch(
        self, target: LocalTensor, source: GlobalTensor, rows: int, columns: int, pitch: int
    ) -> None:
        """Copy a result to a local tensor, `pitch` elements a row there."""
        ...

    def area(self, name: str, dtype: DType, count: int) -> GlobalTensor:
        """Return room for `count` elements in the workspace."""
        ...
