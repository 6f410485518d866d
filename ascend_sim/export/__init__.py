"""Kernels back to AscendC C++, through pyasc's front end in a Python of its own."""
