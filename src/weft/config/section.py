"""What all parts of the settings have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the settings: fixed once read, and without fields that nobody reads."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
