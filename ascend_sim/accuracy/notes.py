"""What is known about the families beyond their figures: kinds of kernels, why some are off, what is not modelled."""

from __future__ import annotations

from functools import cache

import yaml
from pydantic import BaseModel, ConfigDict

from ascend_sim.accuracy.families import folder


class Note(BaseModel):
    """Why a family's figures are off: whether kernel, model or setup is to blame, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cause: str
    why: str


class Notes(BaseModel):
    """The file `notes.yaml` beside the kernels."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kinds: dict[str, list[str]]
    notes: dict[str, Note]
    not_modelled: list[str]

    def kind(self, family: str) -> str:
        """Return what kind of kernel a family is; "other" for one that the file does not know."""
        return next((kind for kind, own in self.kinds.items() if family in own), "other")


@cache
def load_notes() -> Notes:
    """Read the notes that come along."""
    text = (folder() / "notes.yaml").read_text(encoding="utf-8")
    return Notes.model_validate(yaml.safe_load(text))
