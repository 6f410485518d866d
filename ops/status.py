"""The operator library's status codes, and the error that carries one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from ascend_sim.errors import AscendSimError, Finding, HostError


class Status(IntEnum):
    """Names and numbers of the library (CANN transformer library 8.5, `types.h`)."""

    NO_ERROR = 0
    ERROR_INVALID_PARAM = 1
    ERROR_INVALID_GRAPH = 2
    ERROR_INTERNAL_ERROR = 3
    ERROR_RT_FAIL = 4
    ERROR_INVALID_IN_TENSOR_NUM = 5
    ERROR_INVALID_TENSOR_DTYPE = 6
    ERROR_INVALID_TENSOR_FORMAT = 7
    ERROR_INVALID_TENSOR_DIM = 8
    ERROR_INVALID_TENSOR_SIZE = 9
    ERROR_OPERATION_NULL_RUNNER = 10
    ERROR_CANN_ERROR = 12
    ERROR_INVALID_TENSOR_INI_MATCH = 13
    ERROR_INVALID_TENSOR_ADDR = 14
    ERROR_INVALID_TENSOR_NUM = 15
    ERROR_INVALID_TENSOR_DIM_NUM = 16
    ERROR_INVALID_SINGLE_OPERATION_PARAM = 17
    ERROR_OUT_OF_DEVICE_MEMORY = 26


class OperationError(AscendSimError):
    """The host side refused a parameter or a tensor.

    `status` is the library's name ("ERROR_INVALID_PARAM"), `stage` is `create`, `infer_shape`, `setup` or
    `execute`, `message` says which check failed, what was given and what is allowed.
    """

    def __init__(self, status: str, stage: str, message: str) -> None:
        super().__init__(status, stage, message)
        self.status = status
        self.stage = stage
        self.message = message

    @property
    def code(self) -> Status:
        """The library's number of `status`."""
        return Status[self.status]

    def __str__(self) -> str:
        return f"{self.status} ({self.code.value}) at {self.stage}: {self.message}"


class Refusal(Exception):
    """What a check raises. Checks do not know at which stage they run; `at_stage` adds that."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message


@contextmanager
def at_stage(stage: str, operation: str) -> Iterator[None]:
    """Turn a `Refusal` of the block into an `OperationError` that names the stage and the operation."""
    try:
        yield
    except Refusal as refusal:
        message = f"{operation}: {refusal.message}"
        raise OperationError(refusal.status.name, stage, message) from None


def host_error(code: str, message: str, tensor: str = "") -> HostError:
    """Return a `HostError` whose finding has this code and tensor."""
    return HostError(message, Finding("HOST", code, message, tensor=tensor))
