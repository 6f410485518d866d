"""The operators that there are: each folder beside this file that has an `OPERATOR`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ascend_sim.chip_file import nearest
from ascend_sim.errors import ConfigError
from ops.operation import Operation
from ops.operator_spec import OperatorSpec
from ops.status import OperationError, Status


@cache
def _operators() -> dict[str, OperatorSpec]:
    beside = [str(Path(__file__).parent)]
    folders = (module.name for module in pkgutil.iter_modules(beside) if module.ispkg)
    specs = [importlib.import_module(f"ops.{folder}").OPERATOR for folder in folders]
    return {spec.name: spec for spec in specs}


def list_operators() -> list[OperatorSpec]:
    """Return all operators, by name."""
    return sorted(_operators().values(), key=lambda spec: spec.name)


def find_operator(name: str) -> OperatorSpec:
    """Return an operator by the name of its folder. Raises `ConfigError`, with the nearest name."""
    operators = _operators()
    if name not in operators:
        known = ", ".join(sorted(operators))
        raise ConfigError(
            f"no operator is called {name!r}{nearest(name, operators)} (there are: {known})"
        )
    return operators[name]


def create_operation(
    name: str, param: Mapping[str, Any] | None = None, soc: str = "Ascend910B1"
) -> Operation:
    """Return the operation of the library's name (`RopeGradOperation`) with its parameter's JSON object.

    `soc` must be of the 910B family; "" and "Ascend910B" mean any of them. Raises `OperationError` for an
    unknown name, an unknown or wrong parameter and a SoC that the operation does not exist on.
    """
    operations = {spec.operation.name: spec.operation for spec in _operators().values()}
    if name not in operations:
        known = ", ".join(sorted(operations))
        message = f"no operation is called {name!r}{nearest(name, operations)} (there are: {known})"
        raise OperationError(Status.ERROR_INVALID_PARAM.name, "create", message)
    return operations[name]({} if param is None else param, soc)
