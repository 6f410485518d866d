"""The kernel language, in pyasc's spelling: `from ascend_sim import asc`.

A facade, laid out as pyasc's package is: instructions come from `isa`, TPipe, TQue, TBuf and jit from
`ascend_sim.lang`. Under `ascend-sim run`, or after `import ascend_sim.pyasc`, `import asc` is this package.
`bfloat16`, `GlobalTensor.reinterpret_cast`, slices with a stop and phases are additions to pyasc.
"""

import re
from typing import NoReturn

from ascend_sim.asc.language import basic, core, fwk
from ascend_sim.asc.language.basic import *
from ascend_sim.asc.language.core import *
from ascend_sim.asc.language.fwk import *
from ascend_sim.chip_file import nearest
from ascend_sim.lang.jit import CodegenOptions, CompileOptions, LaunchOptions, jit

__all__ = ["CodegenOptions", "CompileOptions", "LaunchOptions", "jit"]
__all__ += basic.__all__
__all__ += core.__all__
__all__ += fwk.__all__

# What follows may itself be written in the names above.
from ascend_sim.asc import adv, language, lib, runtime
from ascend_sim.asc.language.core import struct
from ascend_sim.asc.lib import host
from ascend_sim.asc.runtime import config

_ELSEWHERE = (struct, adv, config, host)
"""Modules whose names people look for in `asc` itself."""


def __getattr__(name: str) -> NoReturn:
    """Suggest the nearest name for one that is not there; C++ spellings lead to pyasc's."""
    for module in _ELSEWHERE:
        if name in module.__all__:
            raise AttributeError(
                f"asc has no name {name!r}; it is in {module.__name__.removeprefix('ascend_sim.')}",
                name=name,
            )
    pythonic = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    hint = f"; did you mean {pythonic!r}?" if pythonic in __all__ else nearest(name, __all__)
    raise AttributeError(f"asc has no name {name!r}{hint}", name=name)
