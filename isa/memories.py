"""The memories of a core, and what accesses see of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isa.types import Space

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isa.access import Access

_MANY = 8192
"""Views that are kept: far more than a kernel's loops have."""


class Memories(dict[Space, "NDArray[np.uint8]"]):
    """The bytes of on-chip memories. Instructions that come again find their views made."""

    def __init__(self, *content: Any) -> None:
        super().__init__(*content)
        self._views: dict[Access, NDArray[Any]] = {}

    def view(self, access: Access) -> NDArray[Any]:
        """Return the elements of an access, on chip or in GM, as a numpy view on their bytes."""
        if access.buffer is not None:
            return access.view(access.buffer.data)
        view = self._views.get(access)
        if view is None:
            if len(self._views) >= _MANY:
                self._views.clear()
            view = self._views[access] = access.view(self[access.space])
        return view
