"""Synchronisation of vector cores through GM: soft sync_all, ib_set and ib_wait, notify_next_block, wait_pre_block.

Each call stops until all pipes are empty, stores or reads its word of 32 bytes with plain copies, and stops again, as
the vendor's library does.
"""

from __future__ import annotations

from typing import Any

from ascend_sim.lang.queues import program
from ascend_sim.lang.system import get_block_idx, get_block_num
from ascend_sim.placement import task_ratio
from ascend_sim.soft_flags import SoftSet
from isa.arguments import check_integer
from isa.faults import fault
from isa.move import data_copy
from isa.scalar import set_value
from isa.tensor import GlobalTensor, LocalTensor
from isa.types import BLOCK_BYTES, CoreKind, Pipe, Space, int32

_WORDS = BLOCK_BYTES // int32.size


def _check(name: str, gm: Any, ub: Any, gm_blocks: int, ub_blocks: int) -> None:
    """Fault unless both workspaces are there, of 32-bit integers, and large enough (in blocks of 32 bytes)."""
    for what, tensor, kind, blocks in (
        ("gm_workspace", gm, GlobalTensor, gm_blocks),
        ("ub_workspace", ub, LocalTensor, ub_blocks),
    ):
        bound = isinstance(tensor, kind) and (
            getattr(tensor, "buffer", None) is not None
            if kind is GlobalTensor
            else tensor.space is Space.UB
        )
        if not bound or tensor.dtype is not int32:
            fault(
                "ILLEGAL_PARAM",
                "sync-workspace",
                f"{name}: {what} must be a {'bound ' if kind is GlobalTensor else ''}{kind.__name__} of int32"
                f"{'' if kind is GlobalTensor else ' in UB'}, got {tensor!r}",
            )
        if tensor.length < blocks * BLOCK_BYTES:
            fault(
                "BOUNDS",
                "sync-workspace-size",
                f"{name}: {what} {tensor.name} has {tensor.length} bytes; {blocks} words of {BLOCK_BYTES} bytes are "
                f"needed here, {blocks * BLOCK_BYTES} bytes",
                tensor.name,
            )


def _all() -> None:
    program().pipe_barrier(None)


def _read(gm: GlobalTensor, ub: LocalTensor, words: int) -> None:
    data_copy(ub, gm, words)
    _all()


def _store(gm: GlobalTensor, ub: LocalTensor, value: int) -> None:
    set_value(ub, 0, value)
    _all()
    data_copy(gm, ub, _WORDS)


def _expect(name: str, ub: LocalTensor, value: int, gm: GlobalTensor, ahead: int = 0) -> None:
    """Report a word that is not what earlier calls have left in it: the workspace was not zero at first.

    `ahead`: how many further calls its owner may have made by now.
    """
    stream = program()
    site = stream.site()

    def look(values: Any) -> None:
        if int(values[0]) < value or int(values[0]) > value + ahead:
            stream.session.report(
                "STATE",
                "sync-word-not-zero",
                f"{name} finds {int(values[0])} in {gm.name} byte {gm.offset} where {value} should be: the workspace "
                f"was not zero when the kernel began, or something else writes into it. On the hardware the cores "
                f"pass too early or wait for ever. Zero it before the launch",
                site,
                stream.core.name,
                "S",
                gm.name,
                (gm.offset, gm.offset + int32.size),
                struck=True,
            )

    stream.look(ub, look)


def soft_sync_all(gm: Any, ub: Any, used_cores: int) -> None:
    """Wait until vector cores 0 to `used_cores` - 1 have come here (0: all of them), through GM."""
    stream = program()
    name = "sync_all"
    total = get_block_num() * task_ratio(stream.session.kernel_type)
    used = check_integer(name, "used_cores", used_cores, 0, total) or total
    if stream.core_kind is CoreKind.AIC:
        return
    _check(name, gm, ub, used, used)
    index = get_block_idx()
    own = gm[_WORDS * index :]
    group = ("sync_all", gm.buffer.index, gm.offset)
    turn = stream.session.soft.used.get((*group, index), 0)
    stream.session.soft.used[(*group, index)] = turn + 1
    _all()
    _read(own, ub, _WORDS)
    _expect(name, ub, turn, own)
    _store(own, ub, turn + 1)
    stream.soft_set(name, Pipe.MTE3, SoftSet(group, index, used, f"block {index}"))
    stream.soft_wait(name, (group, index), "sync_all through GM")
    stream.polling = True  # another core may be in its next round, and store its word, by now
    data_copy(ub, gm, _WORDS * used)
    stream.polling = False
    _all()


def _slot(name: str, gm: Any, ub: Any, block_idx: Any, event_id: Any, aiv_only: bool) -> Any:
    """Return the word of a block's event, its name for messages, and its key."""
    cores = get_block_num() * (1 if aiv_only else 2)
    block = check_integer(name, "block_idx", block_idx, 0, cores - 1)
    event = check_integer(name, "event_id", event_id, 0, None)
    place = cores * event + block
    _check(name, gm, ub, place + 1, 1)
    word = gm[_WORDS * place :]
    return word, f"event {event} of block {block}", ("ib", word.buffer.index, word.offset)


def ib_set(
    gm_workspace: GlobalTensor,
    ub_workspace: LocalTensor,
    block_idx: int,
    event_id: int,
    is_aiv_only: bool = True,
) -> None:
    """Say in GM that a block's event has come, once `ib_wait` has taken the last one; vector cores only."""
    stream = program()
    if stream.core_kind is CoreKind.AIC:
        return
    word, text, key = _slot("ib_set", gm_workspace, ub_workspace, block_idx, event_id, is_aiv_only)
    _all()
    used = stream.session.soft.used
    if used.get(key, 0):
        stream.soft_wait("ib_set", ((*key, "free"), 0), f"{text} to be taken by ib_wait")
    used[key] = used.get(key, 0) + 1
    _read(word, ub_workspace, _WORDS)
    _expect("ib_set", ub_workspace, 0, word)
    _store(word, ub_workspace, 1)
    stream.soft_set("ib_set", Pipe.MTE3, SoftSet((*key, "full"), 0, 1, text))
    _all()


def ib_wait(
    gm_workspace: GlobalTensor,
    ub_workspace: LocalTensor,
    block_idx: int,
    event_id: int,
    is_aiv_only: bool = True,
) -> None:
    """Wait until `ib_set` has said in GM that a block's event has come, and take it; vector cores only."""
    stream = program()
    if stream.core_kind is CoreKind.AIC:
        return
    word, text, key = _slot("ib_wait", gm_workspace, ub_workspace, block_idx, event_id, is_aiv_only)
    _all()
    stream.soft_wait("ib_wait", ((*key, "full"), 0), f"ib_set of {text}")
    _read(word, ub_workspace, _WORDS)
    _expect("ib_wait", ub_workspace, 1, word)
    _store(word, ub_workspace, 0)
    stream.soft_set("ib_wait", Pipe.MTE3, SoftSet((*key, "free"), 0, 1, text))
    _all()


def _next_key(gm: GlobalTensor, block: int) -> tuple[Any, ...]:
    assert gm.buffer is not None
    return ("next", gm.buffer.index, gm.offset, block)


def notify_next_block(gm_workspace: GlobalTensor, ub_workspace: LocalTensor) -> None:
    """Let the next block's `wait_pre_block` pass; the last block's lets block 0 pass again. Vector cores only."""
    stream = program()
    if stream.core_kind is CoreKind.AIC:
        return
    name = "notify_next_block"
    total = get_block_num() * task_ratio(stream.session.kernel_type)
    _check(name, gm_workspace, ub_workspace, total, total + 1)
    index = get_block_idx()
    own = gm_workspace[_WORDS * index :]
    key = _next_key(gm_workspace, index)
    turn = stream.session.soft.used.get(key, 0)
    stream.session.soft.used[key] = turn + 1
    _all()
    _read(own, ub_workspace, _WORDS)
    _expect(name, ub_workspace, turn, own)
    _store(own, ub_workspace, turn + 1)
    follower = _next_key(gm_workspace, (index + 1) % total)
    stream.soft_set(name, Pipe.MTE3, SoftSet(follower, 0, 1, f"block {index}"))
    _all()


def wait_pre_block(gm_workspace: GlobalTensor, ub_workspace: LocalTensor) -> None:
    """Wait for the block before to call `notify_next_block`; block 0 passes the first time. Vector cores only."""
    stream = program()
    if stream.core_kind is CoreKind.AIC:
        return
    name = "wait_pre_block"
    total = get_block_num() * task_ratio(stream.session.kernel_type)
    _check(name, gm_workspace, ub_workspace, total, total + 1)
    index = get_block_idx()
    before = (index - 1) % total
    key = (*_next_key(gm_workspace, index), "waits")
    turn = stream.session.soft.used.get(key, 0)
    stream.session.soft.used[key] = turn + 1
    _all()
    if index or turn:
        what = f"notify_next_block of block {before}"
        stream.soft_wait(name, (_next_key(gm_workspace, index), 0), what)
        _read(gm_workspace[_WORDS * before :], ub_workspace, _WORDS)
        _expect(name, ub_workspace, turn + (index > 0), gm_workspace[_WORDS * before :])
