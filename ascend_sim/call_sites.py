"""The places in a kernel from which its items come, by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_sim import messages
from ascend_sim.compiled import FILES
from ascend_sim.spots import Spot
from ascend_sim.trace import Site

if TYPE_CHECKING:
    from pathlib import Path
    from types import CodeType, FrameType, TracebackType


class CallSites:
    """Call sites of a launch. Frames of `library` are the simulator's own and passed over."""

    def __init__(self, sites: list[Site], library: tuple[Path, ...]) -> None:
        self.sites = sites
        self.sites.append(Site(()))
        self.spots = Spot()  # below it the outermost functions of kernels
        self.library_code: dict[int, CodeType] = {}
        self._codes: list[CodeType] = []  # kept, so that no id is used again
        self._site_index: dict[Site, int] = {self.sites[0]: 0}
        self._library = (*(str(path) for path in library), FILES)

    def new_site(self, frame: FrameType | None, root: CodeType) -> int:
        """Give a call site its index; -1 after learning of frames that belong to the simulator itself."""
        frames = []
        learned = False
        while frame is not None and frame.f_code is not root:
            code = frame.f_code
            if code.co_filename.startswith(self._library):
                learned = learned or id(code) not in self.library_code
                self.library_code[id(code)] = code
            else:
                frames.append((code.co_filename, frame.f_lineno, code.co_name))
                self._codes.append(code)
            frame = frame.f_back
        if learned:
            return -1
        site = Site(tuple(frames))
        index = self._site_index.get(site)
        if index is None:
            index = self._site_index[site] = len(self.sites)
            self.sites.append(site)
        return index

    def is_library(self, file: str) -> bool:
        """Return whether a file belongs to the simulator, not to the kernel."""
        return file.startswith(self._library)

    def kernel_frames(self, trace: TracebackType) -> list[TracebackType]:
        """Return the entries of a traceback that are the kernel's own, outermost first."""
        frames = []
        entry: TracebackType | None = trace
        while entry is not None:
            if not entry.tb_frame.f_code.co_filename.startswith(self._library):
                frames.append(entry)
            entry = entry.tb_next
        return frames

    def site_of(self, frames: list[TracebackType]) -> int:
        """Return the call site that the kernel's entries of a traceback lead to."""
        site = Site(
            tuple(
                (entry.tb_frame.f_code.co_filename, entry.tb_lineno, entry.tb_frame.f_code.co_name)
                for entry in reversed(frames)
            )
        )
        index = self._site_index.get(site)
        if index is None:
            index = self._site_index[site] = len(self.sites)
            self.sites.append(site)
        return index

    def where_text(self, site: int) -> str:
        """Return "kernel.py:41 in compute" for messages."""
        return messages.place(self.sites[site])

    def where(self, site: int) -> str:
        """Return the place as a line of its own."""
        return f"\n  at {self.where_text(site)}"
