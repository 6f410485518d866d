"""Messages between the cores of one AI Core: how libraries of vector cores command their cube core.

On the hardware such a message is a line of GM that the sender writes and the receiver polls. Here the line's content
is a Python object; its time is what the chip file says about the line: written through the data cache, to L2, and
read by the receiver's next poll. A message goes to one core, unlike a cross-core flag. What comes first is served
first, of two that come in one cycle the lower core's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascend_sim.agenda import PROGRAM
from ascend_sim.cost import whole
from ascend_sim.errors import UnsupportedError
from ascend_sim.scalar_call import ScalarCall, spending
from ascend_sim.trace import Cause, Item, Kind
from isa.types import Pipe

if TYPE_CHECKING:
    from ascend_sim.config import Chip
    from ascend_sim.core import Core
    from ascend_sim.program import Program

FIRST_KEY = 1000
"""Numbers of cross-core flags start here in `Item.flag`; those below are flags inside a core."""
MAIL_KEY = 999
"""What `Item.flag` says of a message, and of the wait for one; their `event_id` numbers the messages from here."""
DIRECT = 3
"""`Item.mode` of a set that reaches one core only."""
LINE_WORDS = 16
"""32-bit words of the line that carries a message."""


class Letter:
    """A message, or with `content` None a plain flag for one core. It stands in `Item.call` of its set."""

    __slots__ = ("bytes", "content", "receiver", "text", "work")

    def __init__(self, receiver: int, content: Any, text: str) -> None:
        self.receiver = receiver  # index of the core
        self.content = content
        self.text = text
        self.bytes = 0
        self.work = 0

    def detail(self) -> str:
        """Describe it for traces."""
        return self.text


def writing_cycles(chip: Chip) -> int:
    """Return what a sender's scalar unit spends on a message: the words of its line, through the data cache."""
    return whole(chip.scalar.gm_miss + (LINE_WORDS - 1) * chip.scalar.gm_hit)


def delivery_cycles(chip: Chip) -> int:
    """Return the cycles from the sender's last word to the receiver's view: to L2, and the poll that finds it."""
    return whole(chip.gm.latency_l2_write + chip.scalar.gm_miss)


class Mailbox:
    """The messages of one core: those that have come and those on their way."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._letters: list[tuple[int, int, int, Item]] = []  # visible, sender, number, set
        self.waiting: Item | None = None
        self.count = 0
        """How many messages have been sent here."""
        self.senders: frozenset[int] | None = None
        """Whose messages the next wait takes; None: anybody's."""

    def put(self, visible: int, item: Item) -> None:
        """Take a message that its receiver sees at a cycle."""
        self._letters.append((visible, item.core, item.index, item))
        if self.waiting is not None:
            self._core.agenda.at(
                max(visible, self._core.agenda.now), PROGRAM, self._core.scalar_rank, self._look
            )

    def has_letters(self) -> bool:
        """Return whether a message has come, or is on its way."""
        return bool(self._letters)

    def take(self, item: Item) -> tuple[int, Item] | None:
        """Return the message that a wait gets and when it sees it; None where the wait has to go on.

        Which of several comes first is known only when the clock has reached that cycle.
        """
        senders = self.senders
        known = [letter for letter in self._letters if senders is None or letter[1] in senders]
        if not known:
            self.waiting = item
            return None
        core = self._core
        due = max(min(known)[0], core.time)
        if core.agenda.now < due:
            self.waiting = item
            core.agenda.at(due, PROGRAM, core.scalar_rank, self._look)
            return None
        self.waiting = None
        chosen = min(known)
        self._letters.remove(chosen)
        return chosen[0], chosen[3]

    def _look(self, _: Any) -> None:
        if self.waiting is not None:
            self._core.wake_scalar()
            self._core.pump()


def post(stream: Program, receiver: Core, content: Any, text: str) -> None:
    """Send a message to another core of this AI Core, when the scalar unit has written it."""
    cycles = writing_cycles(stream.session.chip)
    write = ScalarCall("message", spending(cycles), spent=cycles, text=text)
    stream._scalar(write, stream.site())
    item = stream._new(Pipe.S, Kind.SET_FLAG, "message", stream.site())
    receiver.mailbox.count += 1
    step = item.step
    step.mode, step.flag, step.event_id = DIRECT, MAIL_KEY, MAIL_KEY + receiver.mailbox.count
    item.call = Letter(receiver.index, content, text)
    stream._append(item)


def receive(stream: Program, senders: frozenset[int] | None = None) -> Item:
    """Wait for the next message, of some cores only where `senders` names them; return its set."""
    item = stream._new(Pipe.S, Kind.WAIT_FLAG, "message_wait", stream.site())
    item.step.flag, item.step.cause = MAIL_KEY, Cause.CROSS_CORE
    stream.core.mailbox.senders = senders
    stream._items.append(item)
    stream._give_way()
    if item.partner is None:
        raise UnsupportedError(
            "a kernel whose cores send messages (a Matmul object in a mix kernel) cannot be recorded without running it"
        )
    item.step.event_id = item.partner.event_id
    if stream.order is not None:  # only now is it known whose message it is
        stream.order.issue(item)
    return item.partner


def answer(stream: Program, receiver: int, flag_id: int, pipe: Pipe) -> None:
    """Queue a set of a flag that reaches one core only."""
    item = stream._new(pipe, Kind.SET_FLAG, "cross_core_set_flag", stream.site())
    step = item.step
    step.event_id, step.mode, step.flag = flag_id, DIRECT, FIRST_KEY + flag_id
    item.call = Letter(receiver, None, "answer")
    stream._append(item)
