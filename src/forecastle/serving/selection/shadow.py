"""Models that are tried on real queries before they may answer any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated

import msgspec

from forecastle.serving.selection.policy import Options, Policy, Selection


class ShadowOptions(Options, frozen=True):
    """``share`` of the queries that the other models are asked besides."""

    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0


class Shadow(Policy):
    """The first model answers; the others are asked the same, and what they say is counted and dropped."""

    name = "shadow"

    def __init__(self, options: Mapping[str, object], random: Random) -> None:
        super().__init__({}, random)
        self.share = self.read(ShadowOptions, options).share

    def select(self, models: Sequence[str]) -> Selection:
        """Choose the first, and the rest besides."""
        return Selection((models[0],), tuple(models[1:]) if self.random.random() < self.share else ())
