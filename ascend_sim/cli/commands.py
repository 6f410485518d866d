"""How command lines are read: the program as a whole, and commands on an operator or a file."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from ascend_sim.chip_file import nearest

# Typer does not hand out the parent of all usage errors by name, and where it lives differs by version.
_UsageError = cast("type[Exception]", typer.BadParameter.__mro__[1])
GIVEN = "ascend_sim.operator_options"
"""Where a command keeps the operators' options that it was given."""


class Commands(TyperGroup):
    """The program: usage errors exit 1, because 2 means findings here."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; in standalone mode exit with its code."""
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except _UsageError as error:
            code = _usage(error) if args or sys.argv[1:] else _help(error)
        except typer.Abort:
            code = 1
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; suggest the nearest name for one that there is not."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            ctx.fail(f"no command {name!r}{nearest(name, known)} (there are: {', '.join(known)})")
        return super().resolve_command(ctx, args)


def _help(error: Exception) -> int:
    """Print the help for a command line without a word: a usage error as well, but no message is needed."""
    print(str(error), file=sys.stderr)
    return 1


def _usage(error: Exception) -> int:
    message = getattr(error, "format_message", error.__str__)()
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "ascend-sim"
    if message:
        print(f"{command}: {message}", file=sys.stderr)
    print(f"Try '{command} --help'.", file=sys.stderr)
    return 1


class TargetCommand(TyperCommand):
    """A command on an operator or a file: it also takes the options that operators have."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the operators' options out of `args`; refuse what nobody knows, with the nearest name."""
        own = {name for param in self.get_params(ctx) for name in param.opts}
        rest: list[str] = []
        given: dict[str, str] = {}
        position = 0
        while position < len(args):
            word = args[position]
            position += 1
            name, equals, value = word.partition("=")
            if word == "--":
                rest += args[position - 1 :]
                break
            if not word.startswith("--") or name in own:
                rest.append(word)
                # The value of an own option is not looked at: it may begin with a dash.
                takes_value = name in own and not equals and not _is_flag(self, ctx, name)
                if takes_value and position < len(args):
                    rest.append(args[position])
                    position += 1
                continue
            if name not in _operator_options():
                ctx.fail(f"no such option: {name}{_near(name, own | set(_operator_options()))}")
            if not equals:
                if position == len(args):
                    ctx.fail(f"option {name} needs a value")
                value = args[position]
                position += 1
            given[name] = value
        ctx.meta[GIVEN] = given
        return super().parse_args(ctx, rest)


def _near(name: str, known: set[str]) -> str:
    """Name the option that looks most like `name`, or those that do so equally."""
    likeness = {one: difflib.SequenceMatcher(None, one, name).ratio() for one in sorted(known)}
    best = max(likeness.values())
    matches = [one for one, ratio in likeness.items() if ratio == best >= 0.65]
    return f"; did you mean {' or '.join(matches)}?" if matches else ""


def _is_flag(command: TyperCommand, ctx: Any, name: str) -> bool:
    return any(
        name in param.opts and (getattr(param, "is_flag", False) or name == "--help")
        for param in command.get_params(ctx)
    )


def _operator_options() -> dict[str, str]:
    from ascend_sim.cli.operators import operator_options

    return operator_options()
