"""pyasc's `asc.language.core.enums`: the enumerations, those of the Matmul object's insides among them."""

from ascend_sim.asc.language.core import *
from ascend_sim.lang.enums import BatchOutMode, MatmulPolicy

__all__ = ["BatchOutMode", "MatmulPolicy"]
