"""Global memory: allocations, L2 and HBM, and how transfers of many cores share their bandwidth.

The only component that may move another's end time. Transfers that go on at once share the servers they use
(L2 reads, L2 in all, HBM) equally, up to what their own port or window allows. Transfers with the same limits
form a class and run at one rate, so a change costs time by the number of classes, not of transfers.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from ascend_sim.agenda import RETIRE, SERVE, Agenda
from ascend_sim.cost import whole
from isa.types import CacheMode, CoreKind, Pipe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from ascend_sim.config import Chip
    from isa.access import Access
    from isa.tensor import GmBuffer

_EPSILON = 1e-6


class L2:
    """Which sectors of GM the L2 holds.

    A stated approximation of LRU that costs the same for gigabytes: a sector stays until as many sectors as the
    cache holds have been filled since its last use. (True LRU also ages a sector when others are hit.)
    Dirty sectors are written back when they leave.
    """

    def __init__(self, chip: Chip) -> None:
        self.sector = chip.gm.sector
        self.capacity = chip.l2.bytes // self.sector
        self.fills = self.capacity + 1  # a stamp of 0 is older than the whole cache
        self.hit_bytes = 0
        self.miss_bytes = 0
        self.write_back_bytes = 0
        self._dirty: list[
            tuple[int, int, Any, GmBuffer]
        ] = []  # a heap: when they may leave, serial number, sectors
        self._order = 0

    def _stamps(self, buffer: GmBuffer) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if buffer.scratch is None:
            count = -(-buffer.nbytes // self.sector) + 1
            buffer.scratch = (np.zeros(count, np.int64), np.zeros(count, bool))
        return buffer.scratch  # type: ignore[no-any-return]

    def preload(self, buffers: Iterable[GmBuffer]) -> None:
        """Start with the allocations in the cache, in their order, as far as they fit."""
        left = self.capacity
        for buffer in buffers:
            held = min(-(-buffer.nbytes // self.sector), left)
            self._stamps(buffer)[0][:held] = self.fills
            left -= held

    def _sectors(self, access: Access) -> Any:
        """Return an index of the sectors that an access touches: a 2-D window where that is exact."""
        sector = self.sector
        size = access.dtype.size
        if len(access.shape) == 1 and access.contiguous:
            return slice(access.low // sector, -(-access.high // sector))
        if len(access.shape) == 2 and access.strides[1] == size and access.lanes is None:
            length, pitch = access.shape[1] * size, access.strides[0]
            if access.base % sector == 0 and length % sector == 0 and pitch % sector == 0:
                return (access.base // sector, access.shape[0], pitch // sector, length // sector)
        ranges = access.ranges()
        first, last = ranges[:, 0] // sector, (ranges[:, 1] - 1) // sector
        grid = first[:, None] + np.arange(int((last - first).max()) + 1)
        return np.unique(np.minimum(grid, last[:, None]))

    def touch(self, access: Access, *, write: bool) -> tuple[int, int, int]:
        """Read or write the sectors of an access; return (hit bytes, missed bytes, bytes written back)."""
        buffer: GmBuffer = access.buffer  # type: ignore[assignment]
        stamps, dirty = buffer.scratch or self._stamps(buffer)
        index = self._sectors(access)
        if type(index) is tuple:
            start, rows, pitch, width = index
            window = np.ndarray((rows, width), np.int64, stamps, start * 8, (pitch * 8, 8))
        else:
            window = stamps[index]
        total = window.size
        fresh = self.fills - self.capacity
        hits = (
            (window > fresh).tobytes().count(1)
        )  # cheaper than count_nonzero on the usual few sectors
        misses = total - hits
        self.fills += misses
        if type(index) is tuple:
            window[...] = self.fills
        else:
            stamps[index] = self.fills
        written_back = self._write_back() if self._dirty else 0
        if write:
            self._mark_dirty(buffer, dirty, index)
        sector = self.sector
        self.hit_bytes += hits * sector
        self.miss_bytes += misses * sector
        return hits * sector, misses * sector, written_back

    def touch_line(self, buffer: GmBuffer, offset: int) -> bool:
        """Read the sector at an offset for the scalar unit; return whether L2 held it."""
        stamps, _ = self._stamps(buffer)
        sector = offset // self.sector
        held = bool(stamps[sector] > self.fills - self.capacity)
        self.fills += not held
        stamps[sector] = self.fills
        return held

    def _mark_dirty(self, buffer: GmBuffer, dirty: NDArray[np.bool_], index: Any) -> None:
        if type(index) is tuple:
            start, rows, pitch, width = index
            np.ndarray((rows, width), bool, dirty, start, (pitch, 1))[...] = True
        else:
            dirty[index] = True
        self._order += 1
        heapq.heappush(self._dirty, (self.fills, self._order, index, buffer))

    @staticmethod
    def _numbers(index: Any) -> NDArray[np.int64]:
        """Return the sectors of an index as a list."""
        if type(index) is tuple:
            start, rows, pitch, width = index
            grid = start + np.arange(rows, dtype=np.int64)[:, None] * pitch
            sectors: NDArray[np.int64] = (grid + np.arange(width)).ravel()
            return sectors
        numbers: NDArray[np.int64] = (
            np.arange(index.start, index.stop) if isinstance(index, slice) else index
        )
        return numbers

    def _write_back(self) -> int:
        """Write back the dirty sectors that have left the cache by now; return their bytes.

        A sector used again since it was written stays, and is looked at again when its new time has come.
        """
        fresh = self.fills - self.capacity
        count = 0
        while self._dirty and self._dirty[0][0] <= fresh:
            _, _, index, buffer = heapq.heappop(self._dirty)
            numbers = self._numbers(index)
            stamps, dirty = buffer.scratch
            numbers = numbers[dirty[numbers]]
            gone = stamps[numbers] <= fresh
            dirty[numbers[gone]] = False
            count += int(np.count_nonzero(gone))
            stay = numbers[~gone]
            if len(stay):
                self._order += 1
                heapq.heappush(self._dirty, (int(stamps[stay].min()), self._order, stay, buffer))
        bytes_back = count * self.sector
        self.write_back_bytes += bytes_back
        return bytes_back


class Transfer:
    """One MTE instruction's bytes on their way: segments of (bytes, kind), served one after the other.

    Bytes use the servers from `began` on; what they fetch is there `latency` later, of which `miss_latency`
    is due to misses. `ideal`: cycles to move the bytes at the port's own rate; `alone`: the same with nobody else
    about, where misses are limited by the window.
    """

    __slots__ = (
        "alone", "began", "ideal", "item", "latency", "miss_latency", "owner", "port", "segments",
    )  # fmt: skip

    latency: int
    miss_latency: int
    ideal: float
    alone: float
    began: int

    def __init__(self, owner: Any, item: Any, port: Port, segments: list[tuple[int, int]]) -> None:
        self.owner = owner
        self.item = item
        self.port = port
        self.segments = segments


HIT, MISS, WRITE, BYPASS_WRITE = 0, 1, 2, 3


class _Class:
    """Transfers that run at one rate. `progress` is what each of them has moved since the class was last empty."""

    __slots__ = ("cap", "heap", "kind", "members", "progress", "rate")

    def __init__(self, kind: int, cap: float) -> None:
        self.kind = kind
        self.cap = cap
        self.members = 0
        self.progress = 0.0
        self.rate = cap
        self.heap: list[tuple[float, int, int, Port]] = []


class Cluster:
    """The ports of one AI Core: an AIC and its two AIVs, which share one window of outstanding misses."""

    __slots__ = ("missing", "ports")

    def __init__(self) -> None:
        self.ports: list[Port] = []
        self.missing = 0  # ports that are moving missed bytes


class Port:
    """One direction of one core's path to GM. Its transfers follow one another; `rank` breaks ties.

    `kind` is what it moves at the moment, None when it moves nothing.
    """

    __slots__ = (
        "cluster", "current", "finish", "group", "head", "kind", "limit", "other", "queue", "rank", "ticket",
        "write",
    )  # fmt: skip

    def __init__(
        self, rank: int, limit: float, *, cluster: Cluster, head: float | None = None
    ) -> None:
        self.rank = rank
        self.limit = float(limit)
        self.write = head is not None
        self.head = whole(head or 0)  # of a store: from its start to its first byte
        self.cluster = cluster
        self.other: Port | None = None  # the same core's other direction, when they share a bus
        self.queue: deque[Transfer] = deque()
        self.current: Transfer | None = None
        self.kind: int | None = None
        self.group: _Class | None = None
        self.finish = 0.0
        self.ticket = 0


class GlobalMemory:
    """The memory system of one chip during one launch."""

    def __init__(self, chip: Chip, agenda: Agenda) -> None:
        self.chip = chip
        self.agenda = agenda
        self.l2 = L2(chip)
        gm = chip.gm
        self.latency_hit = whole(gm.latency_l2_read)
        self.latency_miss = whole(gm.latency_hbm)
        self.sum_limit = gm.read_write_sum_aiv
        self.core_window = gm.window_core / gm.latency_hbm
        self.aiv_window = gm.window_aiv / gm.latency_hbm
        self.hbm = chip.bytes_per_cycle(chip.hbm.gbps)
        self.l2_read = chip.bytes_per_cycle(chip.l2.read_gbps)
        self.l2_all = chip.bytes_per_cycle(chip.l2.mixed_gbps)
        self.classes: dict[tuple[int, float], _Class] = {}
        self.groups: list[_Class] = []  # those with members
        self.demand = [0.0] * 4  # by kind, bytes a cycle
        self.contended = False
        self.last = 0
        self.scheduled = -1
        self.serving = -1
        self.clusters: dict[int, Cluster] = {}

    def ports(self, rank: int, cluster: int, kind: CoreKind) -> dict[Pipe, Port]:
        """Return the ports of one core by the pipe that uses them."""
        group = self.clusters.setdefault(cluster, Cluster())
        gm, fixpipe = self.chip.gm, self.chip.fixpipe
        vector = kind is CoreKind.AIV
        first = rank * 3
        read = Port(first, gm.read_port_aiv if vector else gm.read_port_aic, cluster=group)
        limit = gm.write_port_aiv if vector else gm.write_port_aic
        write = Port(first + 1, limit, cluster=group, head=gm.write_head)
        ports = {Pipe.MTE2: read, Pipe.MTE3: write}
        if vector:
            read.other, write.other = write, read
        else:
            limit = fixpipe.gm_port
            ports[Pipe.FIX] = Port(first + 2, limit, cluster=group, head=fixpipe.gm_head)
        group.ports += ports.values()
        return ports

    def request(self, owner: Any, port: Port, item: Any, access: Access) -> None:
        """Take a transfer that an MTE pipe starts now; `owner.done(transfer, end)` is called when it is through."""
        bypass = item.call.cache_mode is CacheMode.CACHE_MODE_DISABLE
        if bypass:
            hit, miss, back = 0, _sector_bytes(access, self.l2.sector), 0
        else:
            hit, miss, back = self.l2.touch(access, write=port.write)
        moved = hit + miss
        if port.write:
            kind = BYPASS_WRITE if bypass else WRITE
            transfer = Transfer(
                owner,
                item,
                port,
                [(moved, kind), (back, BYPASS_WRITE)] if back else [(moved, kind)],
            )
            transfer.latency = port.head
            transfer.miss_latency = 0
            transfer.ideal = transfer.alone = moved / port.limit
        elif miss or back:
            transfer = Transfer(
                owner,
                item,
                port,
                [(miss + back, MISS), (hit, HIT)] if hit else [(miss + back, MISS)],
            )
            transfer.latency = self.latency_miss
            transfer.miss_latency = self.latency_miss - self.latency_hit
            transfer.ideal = moved / port.limit
            window = self.aiv_window if port.other is not None else self.core_window
            transfer.alone = hit / port.limit + miss / min(port.limit, window)
        else:
            transfer = Transfer(owner, item, port, [(hit, HIT)])
            transfer.latency = self.latency_hit
            transfer.miss_latency = 0
            transfer.ideal = transfer.alone = moved / port.limit
        if port.current is None:
            self._begin(port, transfer)
        else:
            port.queue.append(transfer)

    def _begin(self, port: Port, transfer: Transfer) -> None:
        port.current = transfer
        transfer.began = self.agenda.now
        size, kind = transfer.segments.pop(0)
        self._move(port, kind, size)

    def _move(self, port: Port, kind: int | None, size: float) -> None:
        """Let a port move `size` bytes of a kind from now on, or nothing (None)."""
        before = port.kind
        if before != kind:
            port.kind = kind
            port.cluster.missing += (kind == MISS) - (before == MISS)
        if kind is not None:
            if self.last != self.agenda.now:
                self._advance()
            self._assign(port, size)
        if before != kind:
            self._regroup(port)

    def _limit(self, port: Port) -> float:
        """Return what the port's own path allows at this moment, in bytes a cycle."""
        limit = port.limit
        other = port.other
        if port.kind == MISS:
            window = self.core_window / port.cluster.missing
            if window < limit:
                limit = window
            if other is not None and self.aiv_window < limit:
                limit = self.aiv_window
        if other is not None and other.kind is not None:
            theirs = self.aiv_window if other.kind == MISS else other.limit
            if limit + theirs > self.sum_limit:
                limit = min(limit, max(self.sum_limit / 2, self.sum_limit - theirs))
        return limit

    def _assign(self, port: Port, remaining: float) -> None:
        limit = self._limit(port)
        kind: int = port.kind  # type: ignore[assignment]
        group = self.classes.get((kind, limit))
        if group is None:
            group = self.classes[kind, limit] = _Class(kind, limit)
        if group.members == 0:
            self.groups.append(group)
            group.progress = 0.0
            group.rate = limit
            group.heap.clear()
        group.members += 1
        self.demand[kind] += limit
        port.group = group
        port.finish = group.progress + remaining
        port.ticket += 1
        heapq.heappush(group.heap, (port.finish, port.rank, port.ticket, port))
        if self.contended or self._over():
            self._settle()
        else:  # everybody moves at its own limit: only this port's end is new
            self._due((remaining - _EPSILON) / limit)

    def _leave(self, group: _Class) -> None:
        group.members -= 1
        self.demand[group.kind] -= group.cap
        if group.members == 0:
            self.groups.remove(group)

    def _over(self) -> bool:
        """Return whether the servers are asked for more than they have."""
        hit, miss, write, direct = self.demand
        return (
            hit + miss > self.l2_read
            or hit + miss + write > self.l2_all
            or miss + direct > self.hbm
        )

    def _due(self, after: float) -> None:
        """See to it that `_complete` runs when something may be through, `after` cycles from now."""
        now = self.agenda.now
        due = now + (math.ceil(after) if after > 1 else 1)
        if self.scheduled <= now or due < self.scheduled:
            self.scheduled = due
            self.agenda.at(due, RETIRE, -1, self._complete)

    def _regroup(self, changed: Port) -> None:
        """Move the neighbours of a port that began or ended to the class that their new limit asks for."""
        for port in changed.cluster.ports:
            group = port.group
            if port is changed or group is None:  # idle, or about to be assigned anyway
                continue
            if self._limit(port) != group.cap:
                self._leave(group)
                self._assign(port, port.finish - group.progress)

    def _advance(self) -> None:
        """Account for what has moved since the last change."""
        now = self.agenda.now
        elapsed = now - self.last
        if elapsed:
            for group in self.groups:
                group.progress += group.rate * elapsed
            self.last = now

    def _settle(self) -> None:
        """Share the servers anew at the end of this cycle's changes."""
        if self.serving != self.agenda.now:
            self.serving = self.agenda.now
            self.agenda.at(self.agenda.now, SERVE, 1 << 30, self._share)

    def _share(self, _: Any) -> None:
        self.serving = -1
        self._advance()
        self.demand = [0.0] * 4  # anew, so that no rounding error piles up
        for group in self.groups:
            self.demand[group.kind] += group.cap * group.members
            group.rate = group.cap
        hit, miss, write, direct = self.demand
        self.contended = self._over()
        if hit + miss > self.l2_read:
            self._cap((HIT, MISS), self.l2_read)
        if hit + miss + write > self.l2_all:
            self._cap((HIT, MISS, WRITE), self.l2_all)
        if miss + direct > self.hbm:
            self._cap((MISS, BYPASS_WRITE), self.hbm)
        self._schedule()

    def _cap(self, kinds: tuple[int, ...], capacity: float) -> None:
        users = [group for group in self.groups if group.kind in kinds]
        level = _water_level(users, capacity)
        for group in users:
            group.rate = min(group.rate, level)

    def _schedule(self) -> None:
        soonest = math.inf
        for group in self.groups:
            heap = group.heap
            while heap[0][2] != heap[0][3].ticket:
                heapq.heappop(heap)
            left = (heap[0][0] - group.progress - _EPSILON) / group.rate
            if left < soonest:
                soonest = left
        if soonest is not math.inf:
            self._due(soonest)

    def _complete(self, _: Any) -> None:
        """End the segments that are through at this cycle, in order of their ports."""
        self._advance()
        now = self.agenda.now
        done: list[tuple[int, Port]] = []
        for group in self.groups.copy():
            heap = group.heap
            through = group.progress + (
                _EPSILON if group.progress < 1 else _EPSILON * group.progress
            )
            while heap and (heap[0][0] <= through or heap[0][2] != heap[0][3].ticket):
                _, _, ticket, port = heapq.heappop(heap)
                if ticket == port.ticket:
                    self._leave(group)
                    port.ticket += 1
                    port.group = None
                    done.append((port.rank, port))
        if len(done) > 1:
            done.sort()  # ranks are unique
        for _, port in done:
            transfer = port.current
            assert transfer is not None
            if transfer.segments:
                size, kind = transfer.segments.pop(0)
                self._move(port, kind, size)
            else:
                if port.queue:
                    self._begin(port, port.queue.popleft())
                else:
                    port.current = None
                    self._move(port, None, 0)
                transfer.owner.done(transfer, now)
        if self.contended:
            self._settle()
        else:
            self._schedule()


def _water_level(groups: list[_Class], capacity: float) -> float:
    """Return the equal share at which the groups' demands, each up to its cap, fill a server."""
    if not groups:
        return math.inf
    left, count = capacity, sum(group.members for group in groups)
    for group in sorted(groups, key=lambda group: group.rate):
        if group.rate * count <= left:
            left -= group.rate * group.members
            count -= group.members
        else:
            return left / count
    return math.inf


def _sector_bytes(access: Access, sector: int) -> int:
    """Return the bytes of all sectors that an access asks for, each run of bytes by itself."""
    ranges = access.ranges()
    return int(((ranges[:, 1] - 1) // sector - ranges[:, 0] // sector + 1).sum()) * sector
