"""pyasc's `asc.language.core.struct`: structures that a program passes to kernels."""

from ascend_sim.lang.structs import BaseField, Field, Struct, StructField

__all__ = ["BaseField", "Field", "Struct", "StructField"]
