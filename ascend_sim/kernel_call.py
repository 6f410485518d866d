"""A kernel, called inside a running kernel: an ordinary function, without a frame of its own between the two."""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import mypyc_attr

from ascend_sim.errors import ConfigError
from isa.stream import current

_running: Final[Any] = current.get


@mypyc_attr(allow_interpreted_subclasses=True)
class KernelCall:
    """What can be called inside a kernel only: its `function`."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the function inside a running kernel. Raises ConfigError outside one."""
        if _running(None) is None:
            name = self.function.__name__
            raise ConfigError(
                f"{name} is a kernel: launch it with {name}[blocks](…) or ascend_sim.launch({name}, …)"
            )
        if keywords:
            return self.function(*args, **keywords)
        return self.function(*args)
