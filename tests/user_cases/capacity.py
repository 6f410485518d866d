"""Buffers that do not fit: in bytes, with a table of the holders and what would fit."""

from __future__ import annotations

from ascend_sim import asc
from tests.user_cases.kit import Told, Want, case, told


@case(
    "CAP-01",
    Want(
        "CAPACITY", "memory-overflow", "qy", "qy",
        None, ("260096 bytes of UB asked", "qx 2 x 97280 = 194560", "63744 too many", "qy 1 x 65536"),
    ),
)  # fmt: skip
def ub_overflow_in_bytes(wrong: bool) -> Told:
    """Two queues ask for more than UB has."""

    def kernel() -> None:
        pipe = asc.TPipe()
        qx, qy = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1)
        pipe.init_buffer(que=qx, num=2, len=(95 if wrong else 32) * 1024)
        pipe.init_buffer(que=qy, num=1, len=64 * 1024)  # qy

    return told(kernel)


@case(
    "CAP-03",
    Want(
        "CAPACITY", "memory-overflow", "co1", "qc",
        None, ("262144 bytes of L0C asked", "131072 there", "128 x 256"),
    ),
)  # fmt: skip
def accumulator_too_large(wrong: bool) -> Told:
    """L0C holds 32768 sums of float32."""

    def kernel() -> None:
        pipe = asc.TPipe()
        qc = asc.TQue(asc.TPosition.CO1, 1)
        pipe.init_buffer(que=qc, num=1, len=256 * (256 if wrong else 128) * 4)  # co1

    return told(kernel, kernel_type="AIC_ONLY")


@case(
    "CAP-05",
    Want(
        "CAPACITY", "memory-overflow", "fits", "qy",
        None, ("349568 bytes of UB asked", "2 x 87392", "with 49088 bytes a buffer all of them fit"),
    ),
)  # fmt: skip
def tiles_too_few(wrong: bool) -> Told:
    """Eight tiles a core make buffers that do not fit."""
    tiles = 8 if wrong else 23
    length = -(-8 * 1024 * 1024 // 48 // tiles) * 4

    def kernel() -> None:
        pipe = asc.TPipe()
        qx, qy, qz = (
            asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECOUT, 1),
        )  # fmt: skip
        pipe.init_buffer(que=qx, num=2, len=length)
        pipe.init_buffer(que=qy, num=2, len=length)  # fits
        pipe.init_buffer(que=qz, num=2, len=length)

    return told(kernel)


@case(
    "CAP-06",
    Want(
        "CAPACITY", "memory-overflow", "qb", "qb",
        None, ("245760 bytes of UB asked", "2 x 61440", "with 1 buffer each they take 122880 bytes"),
    ),
)  # fmt: skip
def double_buffers_double_the_demand(wrong: bool) -> Told:
    """With one buffer it fits."""
    number = 2 if wrong else 1

    def kernel() -> None:
        pipe = asc.TPipe()
        qa, qb = asc.TQue(asc.TPosition.VECIN, 1), asc.TQue(asc.TPosition.VECIN, 1)
        pipe.init_buffer(que=qa, num=number, len=60 * 1024)
        pipe.init_buffer(que=qb, num=number, len=60 * 1024)  # qb

    return told(kernel)
