"""An image in L1 unfolded to a matrix: one row for each place of a filter, one column for each tap and channel.

Rows go along the image's rows; columns first along the 32 bytes of channels of a group, then the filter's columns, its
rows, and the groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isa.cube_forms import Array, whole
from isa.cube_params import LoadData3DParamsV2
from isa.faults import fault

PAD_MAX = 255
FILTER_MAX = 511
STRIDE_MAX = 63


@dataclass(frozen=True, slots=True)
class Image:
    """Sizes in pixels; `pads` left, right, top, bottom; filter, stride and dilation down and across."""

    size: tuple[int, int]
    pads: tuple[int, int, int, int]
    filter: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]

    @property
    def plain(self) -> bool:
        """Whether the unfolded matrix is the image itself, a row a pixel."""
        return not any(self.pads) and self.filter == (1, 1) and self.stride == (1, 1)

    @property
    def places(self) -> tuple[int, int]:
        """Places of the filter down and across; not above 0 where it is larger than the padded image."""
        left, right, top, bottom = self.pads
        padded = self.size[0] + top + bottom, self.size[1] + left + right
        return tuple(
            (padded[i] - self.dilation[i] * (self.filter[i] - 1) - 1) // self.stride[i] + 1
            for i in (0, 1)
        )  # type: ignore[return-value]

    @property
    def taps(self) -> int:
        """Taps of the filter: groups of columns for each group of channels."""
        return self.filter[0] * self.filter[1]

    def rows_read(self, first: int, count: int) -> tuple[int, int]:
        """Return first and last + 1 of the image's rows that some rows of the matrix come from; at least one."""
        across, height = self.places[1], self.size[0]
        top = first // across * self.stride[0] - self.pads[2]
        last = (first + count - 1) // across * self.stride[0] - self.pads[2]
        bottom = last + self.dilation[0] * (self.filter[0] - 1) + 1
        low = min(max(0, top), height - 1)
        return low, max(low + 1, min(bottom, height))

    def unfold(
        self, rows: tuple[int, int], groups: tuple[int, int], pad_value: float
    ) -> Callable[[Array], Array]:
        """Return what makes the matrix of what was read: (groups, image rows, width, c0) to (columns, rows, c0).

        `rows` and `groups` are first and count of the matrix' rows and of its groups of c0 columns.
        """
        low, high = self.rows_read(*rows)
        place = np.arange(rows[0], rows[0] + rows[1])
        down, across = np.divmod(place, self.places[1])
        tap = np.arange(groups[0], groups[0] + groups[1])
        channel, within = np.divmod(tap, self.taps)
        tap_down, tap_across = np.divmod(within, self.filter[1])
        y = down * self.stride[0] - self.pads[2] + (tap_down * self.dilation[0])[:, None]
        x = across * self.stride[1] - self.pads[0] + (tap_across * self.dilation[1])[:, None]
        inside = (y >= low) & (y < high) & (x >= 0) & (x < self.size[1])
        y, x = np.where(inside, y - low, 0), np.where(inside, x, 0)
        channel = channel - groups[0] // self.taps

        def unfolded(image: Array) -> Array:
            matrix = image[channel[:, None], y, x]
            matrix[~inside] = np.asarray(pad_value).astype(image.dtype)
            return matrix

        return unfolded


def image_of(name: str, params: LoadData3DParamsV2) -> Image:
    """Return the image that a 3D load is about; reports fields that cannot be."""
    pads = params.pad_list
    if not isinstance(pads, (tuple, list)) or len(pads) != 4:
        fault(
            "ILLEGAL_PARAM",
            "pad-list",
            f"{name}: pad_list holds 4 numbers (left, right, top, bottom), got {pads!r}",
        )
    for field in ("filter_size_w", "filter_size_h"):
        if getattr(params, field):
            fault(
                "ILLEGAL_PARAM",
                "unsupported-form",
                f"{name}: {field} (256 more for the filter) is not simulated; filters go up to {FILTER_MAX} here",
            )
    left, right, top, bottom = (
        whole(name, f"pad_list[{i}]", pad, 0, PAD_MAX, " pixels") for i, pad in enumerate(pads)
    )
    height, width = (
        whole(name, "l1_h", params.l1_h, 0, 32767),
        whole(name, "l1_w", params.l1_w, 0, 32767),
    )

    def both(field: str, most: int) -> tuple[int, int]:
        first, second = (
            whole(name, f"{field}_{axis}", getattr(params, f"{field}_{axis}"), 1, most)
            for axis in "hw"
        )
        return first, second

    image = Image(
        (height, width), (left, right, top, bottom), both("filter", FILTER_MAX), both("stride", STRIDE_MAX),
        both("dilation_filter", 255),
    )  # fmt: skip
    if height and width and min(image.places) < 1:
        fault(
            "ILLEGAL_PARAM",
            "filter-size",
            f"{name}: a filter of {image.filter[0]} x {image.filter[1]} (dilation {image.dilation[0]} x "
            f"{image.dilation[1]}) does not fit the {height} x {width} pixels of l1_h x l1_w with pad_list "
            f"{tuple(pads)}",
        )
    return image
