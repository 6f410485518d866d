"""The kernel language, in pyasc's spelling: `from ascend_sim import asc`.

A facade, laid out as pyasc's package is: instructions come from `isa`, TPipe, TQue, TBuf and jit from
`ascend_sim.lang`. Under `ascend-sim run`, or after `import ascend_sim.pyasc`, `import asc` is this package.
`bfloat16`, `GlobalTensor.reinterpret_cast`, slices with a stop and phases are additions to pyasc.
"""

from ascend_sim.asc.language import basic, core, fwk
from ascend_sim.asc.language.basic import *
from ascend_sim.asc.language.core import *
from ascend_sim.asc.language.fwk import *
from ascend_sim.lang.jit import CodegenOptions, CompileOptions, LaunchOptions, jit

__all__ = ["CodegenOptions", "CompileOptions", "LaunchOptions", "jit"]
__all__ += basic.__all__
__all__ += core.__all__
__all__ += fwk.__all__

# What follows may itself be written in the names above.
from ascend_sim.asc import adv, language, lib, runtime
