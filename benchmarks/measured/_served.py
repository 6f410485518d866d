"""Matrix products that vector cores ask their cube core for, by a line of GM that it polls.

A request is 16 words: the vector core's scalar unit writes them and sends the line to GM; the cube core's reads the
line anew until its first word is there, and the rest of it. A flag behind the store is the answer. An empty request
ends the cube core's program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ascend_sim import asc

from ._kit import C2V, PAIR, window
from ._matmul import multiply
from ._tiles import Plan, Tile

WORDS = 16
RUN, QUIT = 1, 2


@dataclass(frozen=True)
class Request:
    """Base blocks, and which of a block's vector cores must ask before they are computed."""

    clients: tuple[int, ...]
    tiles: Sequence[Sequence[Tile]]


def serve(
    a: Any, b: Any, c: Any, lines: Any, plan: Plan, requests: Sequence[Request], vectors: int
) -> None:
    """Run the cube core: poll for each request, compute it, answer; then poll for the vector cores' ends."""
    mailboxes = [
        window(lines, (asc.get_block_idx() * vectors + number) * WORDS) for number in range(vectors)
    ]
    for request in requests:
        for client in request.clients:
            receive(mailboxes[client], RUN)
        multiply(a, b, c, plan, request.tiles)
        asc.cross_core_set_flag(C2V, PAIR, asc.PipeID.PIPE_FIX)
    for mailbox in mailboxes:
        receive(mailbox, QUIT)


def ask(lines: Any, requests: Sequence[Request], vectors: int) -> None:
    """Run a vector core: ask where it must, wait for all answers, end."""
    client = asc.get_block_idx() % vectors
    mailbox = window(lines, asc.get_block_idx() * WORDS)
    for request in requests:
        if client in request.clients:
            send(mailbox, RUN)
        asc.cross_core_wait_flag(C2V, PAIR)
    send(mailbox, QUIT)


def send(mailbox: Any, word: int) -> None:
    """Write a request, its first word last, and send the line out of the data cache."""
    for place in range(1, WORDS):
        mailbox.set_value(place, place)
    mailbox.set_value(0, word)
    clean(mailbox)


def receive(mailbox: Any, word: int) -> None:
    """Poll until a request is there, and read it."""
    clean(mailbox)
    while int(mailbox.get_value(0)) != word:
        clean(mailbox)
    for place in range(1, WORDS):
        mailbox.get_value(place)


def clean(mailbox: Any) -> None:
    asc.data_cache_clean_and_invalid(
        asc.CacheLine.SINGLE_CACHE_LINE, asc.DcciDst.CACHELINE_OUT, mailbox
    )
