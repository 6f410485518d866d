"""The operator library: operators with their host side, as the CANN transformer library has them.

`create_operation` makes an operation; `infer_shape`, `setup` and `execute` are its stages, as in the library.
`find_operator` gives an operator's record: options, constants, and a way to run it on default data.
"""

from ops.catalog import create_operation, find_operator, list_operators
from ops.context import Context
from ops.status import OperationError, Status
from ops.tensor import Tensor, TensorDesc

__all__ = [
    "Context",
    "OperationError",
    "Status",
    "Tensor",
    "TensorDesc",
    "create_operation",
    "find_operator",
    "list_operators",
]
