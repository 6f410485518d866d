"""Runners: what stands between an operation and its kernel, and the pool that keeps them.

A runner turns an operation's parameter into a graph of kernel nodes, prepares each node (kernel and tiling) and
launches them. Runners are used again: a context's pool hands out one that is free with a new parameter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ascend_sim.errors import Finding, HostError, SimulatorBug
from ops.kernel_side import Kernel, KernelCall, TilingFailure, TilingResult, kernel_operation
from ops.machine import Machine, resolve_constants
from ops.status import Refusal, Status, host_error
from ops.tensor import Array, TensorDesc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascend_sim import Run

POOL_PLACES = 64
"""Places of a pool, one pool for each runner type (operator library)."""


@dataclass(frozen=True, slots=True)
class KernelNode:
    """A node of the graph: its kernel-side operation and which of the graph's tensors it takes."""

    operation: str
    param: Any
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KernelGraph:
    """The nodes in the order in which they run."""

    nodes: tuple[KernelNode, ...]


@dataclass(slots=True)
class PreparedNode:
    """A node with the kernel chosen and tiled. `failure` stands in place of a tiling that was refused."""

    node: KernelNode
    kernel: Kernel
    constants: Mapping[str, int]
    tiling: TilingResult | None
    failure: Finding | None


class Runner(ABC):
    """Parent of the operations' runners; a subclass makes the graph of its parameter."""

    type_name: ClassVar[str]

    def __init__(self, param: Any) -> None:
        self.param = param
        self.param_updated = True
        self.tiling_count = 0
        """How often this runner has computed its tiling."""
        self._prepared_for: tuple[Any, ...] | None = None
        self._nodes: list[PreparedNode] = []

    @abstractmethod
    def setup_kernel_graph(self) -> KernelGraph:
        """Return the graph of the current parameter."""

    def set_param(self, param: Any) -> None:
        """Take another parameter; `param_updated` is set only where it differs."""
        if param != self.param:
            self.param = param
            self.param_updated = True

    @property
    def failure(self) -> Finding | None:
        """The HOST finding of a tiling that was refused, if one was."""
        return next((node.failure for node in self._nodes if node.failure), None)

    def setup(
        self, inputs: tuple[TensorDesc, ...], outputs: tuple[TensorDesc, ...],
        constants: Mapping[str, Any], machine: Machine,
    ) -> int:  # fmt: skip
        """Choose and tile the kernels, and return the workspace size in bytes.

        Nothing is done again where parameter, tensors, constants and machine are those of the last time.
        Raises `Refusal` where the kernel side refuses; a refused tiling raises nothing (see `failure`).
        """
        asked = (inputs, outputs, dict(constants), machine)
        if self.param_updated or asked != self._prepared_for:
            self._prepared_for = None
            graph = self.setup_kernel_graph()
            self._nodes = [
                _prepare(node, inputs, outputs, constants, machine) for node in graph.nodes
            ]
            self.tiling_count += 1
            self.param_updated = False
            self._prepared_for = asked
        return sum(
            node.kernel.workspace_size(_call(node.node, inputs, outputs), node.tiling)
            for node in self._nodes
        )

    def check_prepared(
        self, inputs: tuple[TensorDesc, ...], outputs: tuple[TensorDesc, ...]
    ) -> None:
        """Raise `HostError` where the tensors are not those of the last setup."""
        if self._prepared_for is None or self._prepared_for[:2] != (inputs, outputs):
            raise host_error(
                "not-set-up", "these tensors are not those of the last setup: call setup with tensors of the same "
                "types, formats and shapes first",
            )  # fmt: skip

    def execute(self, inputs: Sequence[Array], outputs: Sequence[Array], machine: Machine) -> Run:
        """Launch the kernels on the arrays. Raises `HostError` after a refused tiling, and `KernelError`."""
        if self.failure is not None:
            raise HostError(self.failure.message, replace(self.failure))
        runs = [
            node.kernel.launch(
                node.tiling,
                [inputs[i] for i in node.node.inputs],
                [outputs[i] for i in node.node.outputs],
                node.constants,
                machine,
            )
            for node in self._nodes
            if node.tiling is not None
        ]
        if len(runs) != 1:
            raise SimulatorBug(
                f"{self.type_name}: a graph of {len(runs)} kernels cannot be reported as one run"
            )
        return runs[0]


def _call(
    node: KernelNode, inputs: Sequence[TensorDesc], outputs: Sequence[TensorDesc]
) -> KernelCall:
    return KernelCall(
        node.param, tuple(inputs[i] for i in node.inputs), tuple(outputs[i] for i in node.outputs)
    )


def _prepare(
    node: KernelNode, inputs: Sequence[TensorDesc], outputs: Sequence[TensorDesc],
    given: Mapping[str, Any], machine: Machine,
) -> PreparedNode:  # fmt: skip
    call = _call(node, inputs, outputs)
    operation = kernel_operation(node.operation)
    operation.infer_shape(call)
    kernel = operation.kernels[operation.best_kernel(call)]
    if not kernel.can_support(call):
        raise Refusal(Status.ERROR_INVALID_PARAM, f"{kernel.name} does not support these tensors")
    constants = resolve_constants(kernel.constants, given, kernel.name)
    try:
        size = kernel.tiling_size(call)
        tiling = kernel.tiling(call, constants, machine)
    except TilingFailure as failure:
        message = (
            f"{kernel.name}: tiling failed: {failure}. The library swallows this, reports NO_ERROR from setup and "
            "launches the kernel on an unfilled record; here the kernel does not run"
        )
        return PreparedNode(
            node, kernel, constants, None, Finding("HOST", "tiling-failed", message)
        )
    if len(tiling.record) != size:
        raise SimulatorBug(
            f"{kernel.name}: a tiling record of {len(tiling.record)} bytes, {size} announced"
        )
    return PreparedNode(node, kernel, constants, tiling, None)


@dataclass(slots=True)
class _Place:
    runner: Runner | None = None
    in_use: bool = False


class RunnerPool:
    """The runners of one type that a context keeps. Not for use by several threads."""

    def __init__(self, make: Callable[[Any], Runner]) -> None:
        self._make = make
        self._places = [_Place() for _ in range(POOL_PLACES)]

    def acquire(self, param: Any) -> Runner:
        """Return a runner with this parameter: of the first free place, or one outside a full pool."""
        place = next((place for place in self._places if not place.in_use), None)
        if place is None:
            return self._make(param)
        place.in_use = True
        if place.runner is None:
            place.runner = self._make(param)
        else:
            place.runner.set_param(param)
        return place.runner

    def release(self, runner: Runner) -> None:
        """Give a runner's place back. A runner from outside the pool just goes."""
        for place in self._places:
            if place.runner is runner:
                place.in_use = False

    @property
    def in_use(self) -> int:
        """How many places are taken."""
        return sum(place.in_use for place in self._places)


RUNNER_TYPES: dict[str, type[Runner]] = {}
"""Runner types by their registered names."""


def register_runner(runner: type[Runner]) -> type[Runner]:
    """Enter a runner type under its name (a class decorator)."""
    if runner.type_name in RUNNER_TYPES:
        raise SimulatorBug(f"two runner types are called {runner.type_name}")
    RUNNER_TYPES[runner.type_name] = runner
    return runner
