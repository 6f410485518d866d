"""TPipe and what it hands out."""

from ascend_sim.lang.buffers import TBuf, TBufPool
from ascend_sim.lang.pipe import TPipe, get_tpipe_ptr
from ascend_sim.lang.queues import TQue, TQueBind

__all__ = [
    "TBuf",
    "TBufPool",
    "TPipe",
    "TQue",
    "TQueBind",
    "get_tpipe_ptr",
]
