"""`import ascend_sim.pyasc` at the top of a program: from there on `import asc` is this simulator.

The lines after it are pyasc's own, `import asc` and `import asc.runtime.config as config`, and the program runs
with plain Python. `ascend-sim run program.py` needs no such line.
"""

from ascend_sim.stand_in import install

install()
