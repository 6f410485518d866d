"""pyasc's `asc.language`: the names of `asc`, by the part of the language that they belong to."""

from ascend_sim.asc.language import basic, core, fwk
from ascend_sim.asc.language.basic import *
from ascend_sim.asc.language.core import *
from ascend_sim.asc.language.fwk import *

__all__ = ["basic", "core", "fwk"]
__all__ += basic.__all__
__all__ += core.__all__
__all__ += fwk.__all__

from ascend_sim.asc import adv
