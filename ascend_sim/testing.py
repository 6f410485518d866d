"""Kernels under pytest: a test fails on what a kernel does wrong, whether or not its numbers came out right.

    # conftest.py
    pytest_plugins = ["ascend_sim.testing"]

    # test_add.py
    def test_add(npu):
        z = np.zeros_like(x)
        run = npu.launch(add, x, y, z, n, cores=8)      # or add[8](x, y, z, n)
        npu.check(z, x + y)
        assert run.cycles < 20_000

Every launch of a test that takes the fixture counts, also those inside the program under test. `pytest --npu-chip NAME`
chooses the chip, `--npu-adversary N` performs each launch under N hostile timings too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from ascend_sim import compare
from ascend_sim import launch as perform
from ascend_sim.adversary import Adversary
from ascend_sim.chip_file import nearest
from ascend_sim.codes import finding_codes
from ascend_sim.config import load_chip
from ascend_sim.doctor.search import Doctor
from ascend_sim.errors import Finding
from ascend_sim.launch import defaults, on_run
from ascend_sim.messages import short
from ascend_sim.run import Run
from ascend_sim.stage import rehearsing

_REMARKS = ("INFO", "PERF")


class Npu:
    """What a test has of the simulator: launches, expectations, comparisons. `runs` are the test's launches so far."""

    def __init__(self, chip: str | None = None) -> None:
        self.chip = chip
        self.runs: list[Run] = []
        self._expected: list[tuple[str, int | None]] = []

    def launch(self, kernel: Callable[..., Any], *args: Any, **options: Any) -> Run:
        """Launch a kernel as `ascend_sim.launch` does, on the chip of the command line unless one is given."""
        return perform(kernel, *args, **options)

    def expect(self, code: str, *, line: int | None = None) -> None:
        """Say that a finding has to come, by its code, on a line if that is given; the test fails without it.

        Raises ValueError for a code that there is not.
        """
        known = {name for _, name in finding_codes()}
        if code not in known:
            raise ValueError(f"there is no finding {code!r}{nearest(code, known)}")
        self._expected.append((code, line))

    def check(self, result: Any, reference: Any, **options: Any) -> None:
        """Compare a result with a reference as `ascend_sim.compare` does, and fail with what it says."""
        report = compare(result, reference, **options)
        if not report.ok:
            pytest.fail(str(report), pytrace=False)

    @property
    def findings(self) -> list[Finding]:
        """What was found in all launches so far, remarks left out."""
        found = [finding for run in self.runs for finding in run.findings]
        return [finding for finding in found if finding.kind not in _REMARKS]

    def verdict(self) -> str:
        """Return what is wrong: findings that nobody expected, expected ones that did not come; "" for nothing."""
        lines = [
            _text(finding)
            for finding in self.findings
            if not any(_meets(finding, *one) for one in self._expected)
        ]
        for code, line in self._expected:
            if not any(_meets(finding, code, line) for finding in self.findings):
                where = "" if line is None else f" at line {line}"
                lines.append(f"expected {code}{where}, and it was not found")
        return "\n".join(lines)


def _meets(finding: Finding, code: str, line: int | None) -> bool:
    return finding.code == code and line in (None, finding.line)


def _text(finding: Finding) -> str:
    place = f" at {short(finding.file)}:{finding.line}" if finding.file else ""
    cure = f"\n  a run is clean with this edit: {finding.edit}" if finding.edit else ""
    return f"{finding.kind} {finding.code}{place}: {finding.message}{cure}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("ascend-sim")
    group.addoption("--npu-chip", metavar="NAME", help="chip that kernels are launched on")
    group.addoption(
        "--npu-adversary",
        metavar="N",
        type=int,
        default=0,
        help="perform each launch under N hostile timings too",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a chip that there is not before any test runs."""
    chip = config.getoption("--npu-chip")
    if chip is not None:
        load_chip(chip)


@pytest.fixture
def npu(request: pytest.FixtureRequest) -> Iterator[Npu]:
    """The simulator for a test that fails on findings."""
    chip = request.config.getoption("--npu-chip")
    rounds = request.config.getoption("--npu-adversary")
    made = Npu(chip)
    with ExitStack() as stack:
        stack.enter_context(_told(made.runs.append))
        stack.enter_context(rehearsing(Doctor().rehearse))
        if rounds:
            stack.enter_context(rehearsing(Adversary(rounds).rehearse))
        if chip is not None:
            stack.enter_context(_default_chip(chip))
        yield made


@contextmanager
def _told(listener: Callable[[Run], None]) -> Iterator[None]:
    on_run.append(listener)
    try:
        yield
    finally:
        on_run.remove(listener)


@contextmanager
def _default_chip(chip: str) -> Iterator[None]:
    before = dict(defaults.options)
    defaults.options["chip"] = chip
    try:
        yield
    finally:
        defaults.options.clear()
        defaults.options.update(before)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """After a test that took the fixture: fail it for what its kernels did."""
    result = yield
    made = pyfuncitem.funcargs.get("npu")
    if isinstance(made, Npu):
        wrong = made.verdict()
        if wrong:
            pytest.fail(wrong, pytrace=False)
    return result
