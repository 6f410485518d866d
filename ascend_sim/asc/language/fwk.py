"""TPipe and what it hands out."""

from ascend_sim.lang.queues import (
    TBuf,
    TPipe,
    TQue,
    TQueBind,
    get_tpipe_ptr,
)

__all__ = [
    "TBuf",
    "TPipe",
    "TQue",
    "TQueBind",
    "get_tpipe_ptr",
]  # fmt: skip
