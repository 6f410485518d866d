"""The command line `ascend-sim`. Everything it does can be done from Python as well."""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit with its code."""
    from ascend_sim.cli.app import app

    app(prog_name="ascend-sim")
