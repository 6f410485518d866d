"""What a kernel's source has of synchronisation: calls, queues, and the places where another one could stand."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ascend_sim.doctor.source import Edit, Key, Source, bodies, key_of
from isa.types import HardEvent, Pipe

Remedy = tuple[Edit, ...]
"""Edits that belong together."""
PARTNER = {"set_flag": "wait_flag", "wait_flag": "set_flag"}
LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)
"""Statements behind which nothing of the same body runs."""
QUEUE_CALLS = ("alloc_tensor", "enque", "deque", "free_tensor")
SYNC = (
    *PARTNER, "pipe_barrier", "cross_core_set_flag", "cross_core_wait_flag", "sync_all", "data_sync_barrier",
    "data_cache_clean_and_invalid", *QUEUE_CALLS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallPart:
    """A statement that is one call: what it calls, on what ("asc", a queue), with which arguments, for which name."""

    key: Key
    name: str
    of: str
    arguments: str
    target: str = ""

    @property
    def words(self) -> list[str]:
        """The arguments, without names."""
        call = ast.parse(f"f({self.arguments})", mode="eval").body
        assert isinstance(call, ast.Call)
        return [ast.unparse(one) for one in (*call.args, *(word.value for word in call.keywords))]

    @property
    def event(self) -> str:
        """The event of a set or a wait, as it is spelled; "" for other calls."""
        return self.arguments.rpartition(", ")[0] if self.name in PARTNER else ""

    def text(self, name: str) -> str:
        """Return the statement with another call's name."""
        return f"{self.of}.{name}({self.arguments})" if self.of else f"{name}({self.arguments})"


def call_part(statement: ast.stmt) -> CallPart | None:
    """Return what a statement calls; None for anything but one call, or a name that gets its value."""
    if isinstance(statement, ast.Expr):
        call, target = statement.value, ""
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        call, target = statement.value, ast.unparse(statement.targets[0])
    else:
        return None
    if not isinstance(call, ast.Call):
        return None
    given = [ast.unparse(one) for one in call.args]
    given += [
        f"{one.arg}={ast.unparse(one.value)}" if one.arg else f"**{ast.unparse(one.value)}"
        for one in call.keywords
    ]
    key = key_of(statement)
    if isinstance(call.func, ast.Attribute):
        return CallPart(key, call.func.attr, ast.unparse(call.func.value), ", ".join(given), target)
    if isinstance(call.func, ast.Name):
        return CallPart(key, call.func.id, "", ", ".join(given), target)
    return None


@dataclass(slots=True)
class FilePart:
    """One file: its calls, and how it spells the library's names."""

    source: Source
    calls: list[CallPart] = field(default_factory=list)
    prefix: str = "asc."
    events: str = ""
    pipes: str = ""
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        source = self.source
        found = [call_part(one) for _, one in sorted(source.statements.items())]
        self.calls = [one for one in found if one is not None]
        for one in self.calls:
            if one.name in ("data_copy", "set_flag", "pipe_barrier", "add", "mmad"):
                self.prefix = f"{one.of}." if one.of else ""
                break
        events, pipes = set(HardEvent.__members__), {f"PIPE_{pipe.name}" for pipe in Pipe}
        self.events, self.pipes = f"{self.prefix}HardEvent", f"{self.prefix}PipeID"
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Name):
                self.names.add(node.id)
            elif isinstance(node, ast.Attribute) and node.attr in events:
                self.events = ast.unparse(node.value)
            elif isinstance(node, ast.Attribute) and node.attr in pipes:
                self.pipes = ast.unparse(node.value)

    def near(self, key: Key) -> list[CallPart]:
        """Return the calls of the function around a statement."""
        function = self.source.function_of(key)
        return [one for one in self.calls if self.source.function_of(one.key) is function]

    def set_of(self, event: str, event_id: str) -> str:
        """Return the text of a set."""
        return f"{self.prefix}set_flag({self.events}.{event}, {event_id})"

    def wait_of(self, event: str, event_id: str) -> str:
        """Return the text of a wait."""
        return f"{self.prefix}wait_flag({self.events}.{event}, {event_id})"

    def barrier_of(self, pipe: str) -> str:
        """Return the text of a barrier."""
        return f"{self.prefix}pipe_barrier({self.pipes}.PIPE_{pipe})"

    def free_id(self, event: str) -> str:
        """Return an id of an event that the file does not name with it."""
        used = {
            word
            for one in self.calls
            if one.name in PARTNER and f".{event}" in one.arguments
            for word in one.arguments.split(", ")[1:]
        }
        return next((str(number) for number in range(8) if str(number) not in used), "0")

    def gaps(self, key: Key, *, most: int) -> list[tuple[int, Edit]]:
        """Return the nearest places for a new statement in the function around one, with how far away they are.

        Besides the `most` nearest: the first and last place of each loop or function around the statement, and those on
        both sides of such a loop. Distances before the statement are negative; the text is to be filled in.
        """
        source, file = self.source, self.source.file
        function = source.function_of(key)
        root: ast.AST = function if function is not None else source.tree
        order: list[Edit] = []
        here = 0

        def walk(owner: ast.AST) -> None:
            nonlocal here
            for body in bodies(owner):
                for statement in body:
                    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                        continue
                    if key_of(statement) == key:
                        here = len(order)
                    order.append(Edit(file, key_of(statement), "before"))
                    walk(statement)
                if not isinstance(body[-1], LEAVING):
                    order.append(Edit(file, key_of(body[-1]), "after"))

        walk(root)
        gaps = [
            (place - here - (1 if place <= here else 0), edit) for place, edit in enumerate(order)
        ]
        gaps.sort(key=lambda gap: abs(gap[0]))
        special = self._ends(key, root)
        return gaps[:most] + [
            (most * distance // abs(distance), edit)
            for distance, edit in gaps[most:]
            if edit in special
        ]

    def _ends(self, key: Key, root: ast.AST) -> set[Edit]:
        """Return the first and last places of what is around a statement, and those beside it."""
        found: set[Edit] = set()
        file = self.source.file
        owner: ast.AST = self.source.statements[key]
        while owner is not root:
            assert isinstance(owner, ast.stmt)
            place = key_of(owner)
            body = self.source.body_of(place)
            following = body.index(owner) + 1
            found.add(Edit(file, place, "before"))
            if following < len(body):
                found.add(Edit(file, key_of(body[following]), "before"))
            found.add(Edit(file, key_of(body[0]), "before"))
            found.add(Edit(file, key_of(body[-1]), "after"))
            owner = self.source.owner_of(place)
        return found
