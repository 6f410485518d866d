"""Global memory: the ports through which cores reach it, and the transfers on their way.

The only component that may move another's end time: what a port may take depends on what its neighbours in the same
AI Core move, and on what all ports together ask of L2 and HBM (`servers`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ascend_sim.agenda import RETIRE, SERVE, Agenda
from ascend_sim.cost import whole
from ascend_sim.l2 import L2
from ascend_sim.lines import Key, Lines
from ascend_sim.requests import Bursts, Requests
from ascend_sim.servers import BACK, BYPASS_WRITE, EPSILON, HIT, LOST, MISS, SHARES, WRITE, Servers
from ascend_sim.trace import Transfer
from isa.types import CacheMode, CoreKind, Pipe

if TYPE_CHECKING:
    from ascend_sim.config import Chip

FIRST_PORT: Final = -(1 << 30)
"""Ends of transfers come before all else that is due in their cycle and phase: ranks of ports from here on."""

_BYPASS: Final = CacheMode.CACHE_MODE_DISABLE

STEP: Final = 20
"""Cycles of a miss's latency that make a difference to the rate: ports with nearly the same latency share a class."""


Waiting = tuple[Any, Bursts, int, bool, float]
"""A transfer whose bytes cannot begin to pass yet: what `GlobalMemory._begin` wants."""


class Cluster:
    """The ports of one AI Core: an AIC and its two AIVs, which share one window of outstanding misses."""

    __slots__ = ("missing", "ports")

    def __init__(self) -> None:
        self.ports: list[Port] = []
        self.missing = 0  # ports that are moving missed bytes

    def in_flight(self, now: int) -> int:
        """Return the ports that load what L2 does not hold, the last bytes of which may still be on their way."""
        count = self.missing
        for port in self.ports:
            if port.until > now and not port.write and port.kind != MISS:
                count += 1
        return count


class Port:
    """One direction of one core's path to GM. Its transfers follow one another; `rank` breaks ties.

    `kind` is what it moves at the moment, None when it moves nothing, `cap` the bytes a cycle that it may take. While
    the servers have enough, `left` bytes were to be moved at cycle `since`, and all is through at `due`; else it is a
    member of `group`. Each byte pushes `back` dirty ones out of L2, and costs HBM the time for `lost` others (for
    `losing`, what comes next). `width` is the port's own rate, `limit` that of what it moves now; misses get `reach` of
    what their window allows. One item may be `waiting` for the `current` one's bytes to pass, or for those of a store
    on the same core; `asked` is the cycle for which its pipe has asked last. `begun(item)` is called when an item's
    bytes begin to pass, `done(item)` when they have. `met` are the ports that move the same lines, `place`, itself
    among them. What has passed is in flight up to the cycle `until`.
    """

    __slots__ = (
        "alone", "asked", "back", "begun", "cap", "cluster", "current", "done", "due", "finish", "granule", "group",
        "head", "kind", "left", "limit", "losing", "lost", "met", "missed", "other", "place", "rank", "reach", "since",
        "ticket", "transfer", "twin", "until", "waiting", "width", "write",
    )  # fmt: skip

    def __init__(
        self,
        rank: int,
        width: float,
        *,
        cluster: Cluster,
        granule: int,
        head: float | None = None,
    ) -> None:
        self.rank = rank
        self.width = self.limit = float(width)
        self.granule = granule
        self.back = self.lost = self.losing = 0.0
        self.reach = 1.0
        self.missed = 0  # transfers of its with misses in flight
        self.until = 0
        self.asked = -1
        self.write = head is not None
        self.head = whole(head or 0)  # of a store: from its start to its first byte
        self.cluster = cluster
        self.alone = self.met = [self]
        self.twin: Port | None = (
            None  # of a vector core's stores: those of the AI Core's other vector core
        )
        self.place: Key = (0, 0, 0, False)
        self.other: Port | None = None  # the same core's other direction, when they share a bus
        self.begun: Any = None
        self.done: Any = None
        self.waiting: Waiting | None = None
        self.current: Any = None
        self.transfer: Transfer | None = None  # that of the current item
        self.kind: int | None = None
        self.cap = 0.0
        self.left = 0.0
        self.since = 0
        self.due = -1
        self.group: Any = None
        self.finish = 0.0
        self.ticket = 0

    @property
    def rate(self) -> float:
        """Bytes a cycle that it moves at the moment, where it moves any."""
        rate: float = self.cap if self.group is None else self.group.rate
        return rate


class GlobalMemory:
    """The memory system of one chip during one launch."""

    def __init__(self, chip: Chip, agenda: Agenda) -> None:
        self.chip = chip
        self.agenda = agenda
        self.l2 = L2(chip)
        self.servers = Servers(chip)
        self.requests = Requests(chip)
        self.lines = Lines(chip)
        gm = chip.gm
        self.latency_hit: int = whole(gm.latency_l2_read)
        self.latency_miss: int = whole(gm.latency_hbm)
        self.sum_limit: float = gm.read_write_sum_aiv
        self.core_window: float = gm.window_core / gm.latency_hbm
        self.aiv_window: float = gm.window_aiv / gm.latency_hbm
        self.store_window: float = gm.store_window / max(gm.latency_l2_write, 1)
        self.crowd: float = gm.crowd
        self.latency_write: int = whole(gm.latency_l2_write)
        self.owed = 0.0  # dirty bytes pushed out that no transfer has been charged for, less than an eighth each
        self.clusters: dict[int, Cluster] = {}
        # Transfers whose missed bytes have passed, by when they are there; how many ports have misses in flight; when
        # the lines are there.
        self._missing: list[tuple[int, Port, Key]] = []
        self._fetched: dict[Key, int] = {}
        self._waiting = 0
        self._crowded: list[int] = []  # a miss's latency by the number of other such ports
        self.shared = False  # the servers have too little, so ports move in classes
        self._on_through = self._through  # bound once
        self._on_share = self._share
        self._on_complete = self._complete
        self._on_landed = self._landed
        self._on_limit_groups = self._limit_groups
        self._scheduled = -1
        self._settling = -1
        self._regrouping = -1

    def ports(self, rank: int, cluster: int, kind: CoreKind) -> dict[Pipe, Port]:
        """Return the ports of one core by the pipe that uses them."""
        group = self.clusters.setdefault(cluster, Cluster())
        gm, fixpipe = self.chip.gm, self.chip.fixpipe
        vector = kind is CoreKind.AIV
        first = FIRST_PORT + rank * 3
        width, granule = (
            (gm.read_port_aiv, gm.sector) if vector else (gm.read_port_aic, gm.granule_aic)
        )
        read = Port(first, width, cluster=group, granule=granule)
        width = gm.write_port_aiv if vector else gm.write_port_aic
        write = Port(first + 1, width, cluster=group, granule=gm.sector, head=gm.write_head)
        ports = {Pipe.MTE2: read, Pipe.MTE3: write}
        if vector:
            read.other, write.other = write, read
            for one in group.ports:
                if one.write and one.other is not None:
                    one.twin, write.twin = write, one
        else:
            ports[Pipe.FIX] = Port(
                first + 2, fixpipe.gm_port, cluster=group, granule=gm.sector, head=fixpipe.gm_head
            )
        group.ports += ports.values()
        return ports

    # ---- transfers --------------------------------------------------------------------------

    def request(
        self,
        port: Port,
        item: Any,
        bursts: Bursts,
        base: int,
        *,
        bypass: bool = False,
        limit: float = 0.0,
        yielding: bool = False,
    ) -> None:
        """Take a transfer that an MTE pipe starts now: some bursts from byte `base`, past L2 with `bypass`.

        Its pipe starts no other one before this one's bytes begin to pass. `limit`: its own rate where that is below
        the port's. A `yielding` load lets a store of its own core go first while the servers have too little.
        `item.spent` tells of it from its first byte on.
        """
        if port.current is None and not (yielding and self.shared and self._storing(port)):
            self._begin(port, item, bursts, base, bypass, limit or port.width)
        else:
            port.waiting = (item, bursts, base, bypass, limit or port.width)

    def _storing(self, port: Port) -> bool:
        """Whether the core of a read port stores now, or begins to in this cycle."""
        other = port.other
        return other is not None and (other.kind is not None or other.asked == self.agenda.now)

    def _begin(
        self, port: Port, item: Any, bursts: Bursts, base: int, bypass: bool, limit: float
    ) -> None:
        """Let an item's bytes follow those before it; what L2 holds counts from here on."""
        moved, ragged, full = self.requests.cut(bursts, base, port.granule)
        hit, miss, back = 0, moved, 0
        if not bypass:
            hit, miss, back = self.l2.touch(bursts, base, port.granule, write=port.write)
            if hit + miss != moved:
                # A line that a ragged burst takes a part of is of no use to the burst that takes the rest.
                miss = min(moved, moved * miss // ragged if ragged else miss)
                hit = moved - miss
        low = base + bursts.offset
        if self.lines.come(port, bursts.buffer, low, low + bursts.extent, bypass):
            self._regroup()
        if port.write:
            kind = BYPASS_WRITE if bypass else WRITE
            transfer = Transfer(moved, kind, port.head, moved / limit)
            if back:  # its last byte, too, waits until a dirty one has left
                transfer.miss_latency = transfer.complete = self._latency_miss(port)
            else:
                transfer.complete = self.latency_write
            twin = port.twin
            window = self.store_window
            if twin is not None and (twin.kind is not None or twin.until > self.agenda.now):
                window /= 2  # a vector core has half of the window while its neighbour stores
            if window < limit:
                limit = window
        elif miss:
            transfer = self._missed(port, hit, miss, full, limit)
        else:
            transfer = Transfer(hit, HIT, self.latency_hit, hit / limit)
            if self._fetched:  # another core's miss of these lines may still be under way
                there = self._fetched.get(port.place)
                later = (0 if there is None else there) - self.agenda.now - self.latency_hit
                if later > 0:
                    transfer.latency += later
                    transfer.miss_latency = later
        port.current = item
        item.spent = port.transfer = transfer
        transfer.began = self.agenda.now
        share = self._pushed_out(back, transfer.size) if back or self.owed else 0.0
        if bypass or port.lost:
            lost = self.requests.lost(bursts, moved) if bypass else 0.0
            port.losing = round(lost * SHARES) / SHARES
            if port.losing != port.lost:
                port.limit = 0.0  # so that it turns
        self._move(port, transfer.kind, transfer.size, share, limit)
        port.begun(item)

    def _missed(self, port: Port, hit: int, miss: int, full: float, limit: float) -> Transfer:
        """Return the transfer of a load of which HBM has a part; its requests fill `full` of their window's entries."""
        latency = self._latency_miss(port)
        self._fetched[port.place] = self.agenda.now + latency
        transfer = Transfer(miss, MISS, latency, (hit + miss) / limit)
        transfer.rest = hit
        transfer.miss_latency = latency - self.latency_hit
        window = self.aiv_window if port.other is not None else self.core_window
        transfer.alone = hit / limit + miss / min(limit, window * full)
        # An entry of the window is taken for as long as its request takes, in steps so that neighbours are alike.
        longer = (latency - self.latency_miss) // STEP * STEP
        reach = full * self.latency_miss / (self.latency_miss + longer)
        if reach != port.reach:
            port.reach = reach
            port.limit = 0.0  # so that it turns
        return transfer

    def _latency_miss(self, port: Port) -> int:
        """Return the latency of what HBM sees to from now on: each other port with such requests in flight adds."""
        now = self.agenda.now
        missing = self._missing
        while missing and missing[0][0] <= now:
            _, old, place = missing.pop(0)
            self._fetched.pop(place, None)
            old.missed -= 1
            self._waiting -= not old.missed
        self._waiting += not port.missed
        port.missed += 1
        crowded = self._crowded
        while len(crowded) < self._waiting:
            crowded.append(self.latency_miss + whole(self.crowd * len(crowded)))
        return crowded[self._waiting - 1]

    def _pushed_out(self, back: int, size: int) -> float:
        """Return the dirty bytes that leave L2 for each of `size` bytes; what is left over is for the next transfer."""
        owed = self.owed + back
        share: float = round(owed * SHARES / size) / SHARES
        self.owed = owed - share * size
        return share

    def _through(self, port: Port) -> None:
        """End what a port moves at its own rate, if that is still due now."""
        if port.due == self.agenda.now:
            port.due = -1
            self._next(port)

    def _next(self, port: Port) -> None:
        """Let a port go on that has moved what it had to."""
        item = port.current
        transfer = port.transfer
        assert transfer is not None
        if transfer.rest:
            size, transfer.rest = transfer.rest, 0
            self._move(port, HIT, size, 0.0, port.limit)
            return
        now = transfer.passed = self.agenda.now
        if port.write:
            port.until = now + transfer.complete
            if transfer.miss_latency:
                transfer.complete += now - transfer.began
                self._missing.append((port.until, port, port.place))
        elif transfer.kind == MISS:
            port.until = now + transfer.latency
            self._missing.append((port.until, port, port.place))
        if self.lines.go(port):
            self._regroup()
        following, port.waiting = port.waiting, None
        if following is not None:
            follower, bursts, base, bypass, limit = following
            self._begin(port, follower, bursts, base, bypass, limit)
        else:
            port.current = port.transfer = None
            self._turn(port, None, 0, 0.0)
        other = port.other
        if other is not None and other.waiting is not None and other.current is None:
            follower, bursts, base, bypass, limit = other.waiting
            other.waiting = None
            follower.partner = item  # a load that let this store go first
            self._begin(other, follower, bursts, base, bypass, limit)
        port.done(item)

    def _move(self, port: Port, kind: int, size: int, back: float, limit: float) -> None:
        """Let a port move `size` bytes of a kind from now on, each pushing `back` dirty ones out of L2."""
        if port.kind != kind or port.back != back or port.limit != limit:
            port.limit = limit
            self._turn(port, kind, size, back)
        elif port.group is None:
            port.left = float(size)
            port.since = self.agenda.now
            self._due(port)
        else:
            self.servers.advance(self.agenda.now)
            self.servers.go_on(port, size)
            self._settle()

    def _due(self, port: Port) -> None:
        """See to it that a port's bytes end when they are through at its own rate."""
        after = (port.left - EPSILON) / port.cap
        due = port.since + (math.ceil(after) if after > 1 else 1)
        if due != port.due:
            port.due = due
            self.agenda.at(due, RETIRE, port.rank, self._on_through, port)

    # ---- limits -----------------------------------------------------------------------------

    def _turn(self, port: Port, kind: int | None, size: int, back: float) -> None:
        """Let a port move bytes of another kind than before, or none: its limit and its neighbours' change."""
        before, port.kind = port.kind, kind
        if self.shared:
            self.servers.advance(self.agenda.now)
        if before is not None:
            self._stop(port, before)
        port.back, port.lost = back, port.losing
        cluster, other = port.cluster, port.other
        if (kind == MISS) != (before == MISS):
            cluster.missing += 1 if kind == MISS else -1
            for neighbour in cluster.ports:
                if neighbour is port:
                    continue
                if neighbour.kind == MISS or neighbour is other:
                    self._limit_anew(neighbour)
                if kind == MISS:
                    self._landing(neighbour)
            if before == MISS and cluster.missing:
                self._landing(port)
        elif other is not None and other.kind is not None:
            self._limit_anew(other)
        if kind is not None:
            self._start(port, kind, size, self._limit(port))

    def _landing(self, port: Port) -> None:
        """See to it that others have more of the AI Core's window when a port's last missed bytes are there."""
        if port.until > self.agenda.now and not port.write and port.kind != MISS:
            self.agenda.at(port.until, RETIRE, port.rank, self._on_landed, port)

    def _landed(self, port: Port) -> None:
        if port.until == self.agenda.now and port.kind != MISS:
            if self.shared:
                self.servers.advance(self.agenda.now)
            for neighbour in port.cluster.ports:
                if neighbour.kind == MISS:
                    self._limit_anew(neighbour)

    def _limit_anew(self, port: Port) -> None:
        """Give a port the limit that it has now, if it moves anything."""
        kind = port.kind
        if kind is not None:
            limit = self._limit(port)
            if port.due == self.agenda.now:  # its turn to end comes in this very cycle
                self._ask(port, kind, limit - port.cap)
                port.cap = limit
            elif limit != port.cap:
                self._start(port, kind, self._stop(port, kind), limit)

    def _start(self, port: Port, kind: int, size: float, limit: float) -> None:
        port.cap = limit
        servers = self.servers
        self._ask(port, kind, limit)
        if self.shared:
            servers.join(port, size)
            self._settle()
        else:
            port.left, port.since = size, self.agenda.now
            self._due(port)
            if servers.asked() > servers.least and servers.too_few:
                self._settle()

    def _stop(self, port: Port, kind: int) -> float:
        """Take away what a port moves; return the bytes left."""
        self._ask(port, kind, -port.cap)
        if port.group is not None:
            return self.servers.leave(port)
        return port.left - port.cap * (self.agenda.now - port.since)

    def _ask(self, port: Port, kind: int, rate: float) -> None:
        """Ask the servers for more, or for less."""
        demand = self.servers.demand
        demand[kind] = demand[kind] + rate
        if port.back:
            demand[BACK] = demand[BACK] + rate * port.back
        if port.lost:
            demand[LOST] = demand[LOST] + rate * port.lost

    def _limit(self, port: Port) -> float:
        """Return what the port's own path allows at this moment, in bytes a cycle."""
        limit: float = port.limit
        other = port.other
        if port.kind == MISS:
            window = self.core_window / port.cluster.in_flight(self.agenda.now)
            if other is not None and self.aiv_window < window:
                window = self.aiv_window
            window *= port.reach
            if window < limit:
                limit = window
        if other is not None and other.kind is not None:
            theirs = self.aiv_window if other.kind == MISS else other.limit
            if limit + theirs > self.sum_limit:
                rest = self.sum_limit - theirs
                if rest < self.sum_limit / 2:
                    rest = self.sum_limit / 2
                if rest < limit:
                    limit = rest
        if len(port.met) > 1:
            shared = self.lines.limit(port)
            if shared < limit:
                limit = shared
        return limit

    def _regroup(self) -> None:
        """See to it that ports which move the same lines get their limits at the end of this cycle's changes."""
        now = self.agenda.now
        if self._regrouping != now:
            self._regrouping = now
            self.agenda.at(now, SERVE, -1, self._on_limit_groups)

    def _limit_groups(self, _: Any) -> None:
        self._regrouping = -1
        if self.shared:
            self.servers.advance(self.agenda.now)
        for port in self.lines.changed():
            self._limit_anew(port)

    # ---- sharing ----------------------------------------------------------------------------

    def _settle(self) -> None:
        """Share the servers anew at the end of this cycle's changes."""
        now = self.agenda.now
        if self._settling != now:
            self._settling = now
            self.agenda.at(now, SERVE, 0, self._on_share)

    def _share(self, _: Any) -> None:
        now = self.agenda.now
        self._settling = -1
        servers = self.servers
        servers.advance(now)
        if not self.shared:
            if not servers.too_few:
                return
            self.shared = True
            for port in self._moving():
                left = port.left - port.cap * (now - port.since)
                port.due = -1
                servers.join(port, left)
        servers.share()
        if servers.too_few:
            self._schedule()
            return
        self.shared = False
        for port in self._moving():
            port.left, port.since = servers.leave(port), now
            self._due(port)

    def _moving(self) -> list[Port]:
        return [
            port
            for cluster in self.clusters.values()
            for port in cluster.ports
            if port.kind is not None
        ]

    def _schedule(self) -> None:
        """See to it that `_complete` runs when the first of the sharing ports is through."""
        now = self.agenda.now
        after = self.servers.soonest()
        if after is math.inf:
            return
        due = now + (math.ceil(after) if after > 1 else 1)
        if self._scheduled <= now or due < self._scheduled:
            self._scheduled = due
            self.agenda.at(due, RETIRE, FIRST_PORT - 1, self._on_complete)

    def _complete(self, _: Any) -> None:
        """End what is through at this cycle, in order of the ports."""
        if self.shared:
            self.servers.advance(self.agenda.now)
            for port in self.servers.through():
                self._next(port)
            self._settle()
