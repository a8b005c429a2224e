"""Models that get shares of the queries: a canary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated

import msgspec

from forecastle.errors import BadInput
from forecastle.serving.selection.policy import Options, Policy, Selection

Weight = Annotated[float, msgspec.Meta(ge=0)]


class WeightedOptions(Options, frozen=True):
    """``weights`` by model; a model that has none gets no query, so that one may be linked before it gets its share."""

    weights: dict[str, Weight]


class Weighted(Policy):
    """Asks one model, drawn by its weight."""

    name = "weighted"

    def __init__(self, options: Mapping[str, object], random: Random) -> None:
        super().__init__({}, random)
        self.weights = self.read(WeightedOptions, options).weights
        if not sum(self.weights.values()):
            raise BadInput("the option weights of the policy 'weighted' needs a model whose weight is more than 0")

    def select(self, models: Sequence[str]) -> Selection:
        """Draw one; the first, where none of those linked has a weight."""
        weights = [self.weights.get(model, 0.0) for model in models]
        return Selection(tuple(self.random.choices(models, weights)) if any(weights) else (models[0],))
