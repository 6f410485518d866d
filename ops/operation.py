"""The host side of an operation: create, infer the shapes, set up, execute.

A subclass says its tensors, its parameter and its own checks; what all operations of the library check
alike, and in which order, stands here.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ascend_sim.errors import KernelError, exit_code
from ops import checks
from ops.context import Context
from ops.machine import Machine
from ops.param import Param
from ops.runner import Runner
from ops.status import Refusal, Status, at_stage, host_error
from ops.tensor import Array, Tensor, TensorDesc, as_desc, as_tensor

if TYPE_CHECKING:
    from ascend_sim import Run


class Operation(ABC):
    """One operation with its parameter. Raises `OperationError` where the library returns a status.

    The order of the checks is the library's; the first that fails decides the status.
    """

    name: ClassVar[str]
    runner_type: ClassVar[str]
    param_type: ClassVar[type[Param]]
    input_names: ClassVar[tuple[str, ...]]
    output_names: ClassVar[tuple[str, ...]]
    type_columns: ClassVar[tuple[tuple[str, ...], ...]]
    """The operator's table: each column gives a type for every tensor, inputs first. All formats are nd."""

    def __init__(self, param: Mapping[str, Any], soc: str) -> None:
        self.soc = soc
        with at_stage("create", self.name):
            self.param = self.param_type.from_dict(param)
            checks.reserved_zero(getattr(self.param, "rsv", b""))
            self._check_create()
        self._runner: Runner | None = None
        self._context: Context | None = None
        self._give_back: weakref.finalize[Any, Operation] | None = None

    def param_json(self) -> str:
        """Return the parameter as the library prints it."""
        return self.param.to_json()

    def set_param(self, param: Mapping[str, Any]) -> None:
        """Take another parameter and drop the runner. Reserved bytes are not looked at again."""
        with at_stage("create", self.name):
            old = self.param
            self.param = self.param_type.from_dict(param)
            try:
                self._check_create()
            except Refusal:
                self.param = old
                raise
        self.drop_runner()

    def infer_shape(self, descs: Sequence[Any]) -> list[TensorDesc]:
        """Check the inputs (descs, tensors or arrays) and return the descs of the outputs."""
        inputs = tuple(as_desc(desc) for desc in descs)
        with at_stage("infer_shape", self.name):
            checks.tensor_count("input", len(inputs), self.input_names)
            checks.tensors_valid(inputs, self._labels_in, self.may_be_empty)
            checks.types_supported(inputs, self._labels_in, self.type_columns)
            self.check_inputs(inputs)
            return self.infer_outputs(inputs)

    def setup(self, inputs: Sequence[Any], outputs: Sequence[Any], context: Context | None) -> int:
        """Check the tensors, get a runner, tile, and return the workspace size in bytes.

        Never touches the data. A tiling that is refused raises nothing here; `execute` then does.
        """
        descs_in = tuple(as_desc(tensor) for tensor in inputs)
        descs_out = tuple(as_desc(tensor) for tensor in outputs)
        with at_stage("setup", self.name):
            if context is None:
                raise Refusal(Status.ERROR_INVALID_PARAM, "there is no context; give a Context()")
            self._check_setup(descs_in, descs_out)
            runner = self._runner_of(context)
            return runner.setup(descs_in, descs_out, context.tiling, context.machine_for(self.soc))

    def execute(self, inputs: Sequence[Any], outputs: Sequence[Any], context: Context) -> Run:
        """Run the operation on the tensors that were set up; outputs are written in place.

        Raises `HostError` for tensors that are not those of `setup` or not contiguous and after a tiling that was
        refused, and `KernelError` for a kernel that cannot go on.
        """
        with at_stage("execute", self.name):
            runner = self._runner
            if runner is None or context is not self._context:
                raise Refusal(
                    Status.ERROR_OPERATION_NULL_RUNNER,
                    "no runner for this context; call setup first",
                )
        machine = context.machine_for(self.soc)
        tensors_in = [as_tensor(tensor) for tensor in inputs]
        tensors_out = [as_tensor(tensor) for tensor in outputs]
        runner.check_prepared(
            tuple(tensor.desc for tensor in tensors_in),
            tuple(tensor.desc for tensor in tensors_out),
        )
        arrays_in = _launchable(tensors_in, self._labels_in)
        arrays_out = _launchable(tensors_out, self._labels_out, written=True)
        kept = _before_launch(arrays_in, arrays_out, machine)
        run = runner.execute(arrays_in, arrays_out, machine)
        self.review(run, kept, arrays_out, machine)
        if machine.checks == "error":
            _stop_at_finding(run)
        return run

    def drop_runner(self) -> None:
        """Give the runner's place in the pool back; the next setup gets one anew."""
        if self._give_back is not None:
            self._give_back()
        self._runner = self._context = self._give_back = None

    @property
    def runner(self) -> Runner | None:
        """The runner of the last setup."""
        return self._runner

    def may_be_empty(self, index: int) -> bool:
        """Return whether input `index` may be an empty tensor."""
        return False

    def check_param(self) -> None:  # noqa: B027 (an operation may have nothing to check)
        """Check the parameter beyond its reserved bytes. Raises `Refusal`."""

    @abstractmethod
    def check_inputs(self, inputs: Sequence[TensorDesc]) -> None:
        """Check the inputs beyond what all operations check. Raises `Refusal`."""

    def check_outputs(  # noqa: B027 (as above)
        self, inputs: Sequence[TensorDesc], outputs: Sequence[TensorDesc]
    ) -> None:
        """Check the outputs that are given to setup. Raises `Refusal`."""

    @abstractmethod
    def infer_outputs(self, inputs: Sequence[TensorDesc]) -> list[TensorDesc]:
        """Return the descs of the outputs of valid inputs."""

    def review(  # noqa: B027 (as above)
        self, run: Run, inputs: Sequence[Array], outputs: Sequence[Array], machine: Machine
    ) -> None:
        """Add to `run` what only the operation knows: its numbers against its references, its own findings."""

    @property
    def _labels_in(self) -> list[str]:
        return [f"in {i} ({name})" for i, name in enumerate(self.input_names)]

    @property
    def _labels_out(self) -> list[str]:
        return [f"out {i} ({name})" for i, name in enumerate(self.output_names)]

    def _check_create(self) -> None:
        checks.soc_of_910b_family(self.soc)
        self.check_param()

    def _check_setup(self, inputs: tuple[TensorDesc, ...], outputs: tuple[TensorDesc, ...]) -> None:
        checks.tensor_count("input", len(inputs), self.input_names)
        checks.tensor_count("output", len(outputs), self.output_names)
        checks.tensors_valid(inputs, self._labels_in, self.may_be_empty)
        checks.tensors_valid(outputs, self._labels_out, lambda index: False)
        labels = [*self._labels_in, *self._labels_out]
        checks.types_supported([*inputs, *outputs], labels, self.type_columns)
        self.check_inputs(inputs)
        self.check_outputs(inputs, outputs)

    def _runner_of(self, context: Context) -> Runner:
        if self._runner is None or context is not self._context:
            self.drop_runner()
            pool = context.pool(self.runner_type)
            runner = pool.acquire(self.param)
            self._runner, self._context = runner, context
            self._give_back = weakref.finalize(self, pool.release, runner)
            self._give_back.atexit = False
            return runner
        return self._runner


def _launchable(
    tensors: Sequence[Tensor], labels: Sequence[str], *, written: bool = False
) -> list[Array]:
    """Return the arrays. Raises `HostError` for one that the device could not take as it lies in memory."""
    for tensor, label in zip(tensors, labels, strict=True):
        if not tensor.array.flags.c_contiguous:
            raise host_error(
                "not-contiguous", f"{label} is not contiguous (strides {tensor.array.strides}); the device would "
                "see other data: give numpy.ascontiguousarray(...) of it", label,
            )  # fmt: skip
        if written and not tensor.array.flags.writeable:
            raise host_error(
                "read-only", f"{label} is read-only; give an array that can be written", label
            )
    return [tensor.array for tensor in tensors]


def _stop_at_finding(run: Run) -> None:
    """Raise the first finding that counts: the launch has raised its own, these are the operation's."""
    for finding in run.findings:
        if exit_code([finding]):
            raise KernelError(finding.message, finding, run)


def _before_launch(
    inputs: Sequence[Array], outputs: Sequence[Array], machine: Machine
) -> list[Array]:
    """Return the inputs as they are now, copied only where the launch may write over them."""
    if machine.numerics == "off":
        return list(inputs)
    return [
        array.copy() if any(np.may_share_memory(array, output) for output in outputs) else array
        for array in inputs
    ]
