"""Several models that answer together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated, Any, Literal

import msgspec

from forecastle.errors import BadOutput
from forecastle.serving.selection.policy import Combined, Options, Policy, Selection, value


class EnsembleOptions(Options, frozen=True):
    """``combine`` by majority or mean; a number agrees with the mean that differs by at most ``tolerance`` of it."""

    combine: Literal["majority", "mean"] = "majority"
    tolerance: Annotated[float, msgspec.Meta(ge=0)] = 0.1


class Ensemble(Policy):
    """Asks all models. What has not come by the deadline does not count, but as one that does not agree."""

    name = "ensemble"

    def __init__(self, options: Mapping[str, object], random: Random) -> None:
        super().__init__({}, random)
        read = self.read(EnsembleOptions, options)
        self.mean = read.combine == "mean"
        self.tolerance = read.tolerance

    def select(self, models: Sequence[str]) -> Selection:
        """Choose all."""
        return Selection(tuple(models))

    def combine(self, selection: Selection, outputs: Mapping[str, bytes]) -> Combined:
        """Return what most say, the first of them on a tie; or the mean of what all say."""
        if self.mean:
            return mean(selection, outputs, self.tolerance)
        return vote(selection, outputs, {})


def vote(selection: Selection, outputs: Mapping[str, bytes], weights: Mapping[str, float]) -> Combined:
    """Return the answer with the most weight behind it (1 for a model that has none given), in its first one's words.

    Answers are the same whose values are: ``1`` and ``1.0``, ``[3]`` and ``3``.
    """
    groups: list[tuple[Any, list[str]]] = []
    for model in selection.ask:
        if model in outputs:
            said = value(outputs[model])
            for other, models in groups:
                if same(said, other):
                    models.append(model)
                    break
            else:
                groups.append((said, [model]))
    _, models = max(groups, key=lambda group: sum(weights.get(model, 1.0) for model in group[1]))
    return Combined(outputs[models[0]], len(models) / len(selection.ask))


def mean(selection: Selection, outputs: Mapping[str, bytes], tolerance: float) -> Combined:
    """Return the mean of numbers, or of lists of them, one by one.

    Raises:
        BadOutput: a model answers no numbers, or not as many as another.
    """
    no = "there is no mean of what the models answer"
    rows: list[list[float]] = []
    for model in selection.ask:
        if model in outputs:
            said = value(outputs[model])
            row = said if isinstance(said, list) else [said]
            if not all(map(number, row)):
                raise BadOutput(f"{no}: {model!r} answers neither a number nor a list of numbers")
            if rows and len(row) != len(rows[0]):
                raise BadOutput(f"{no}: {model!r} answers {len(row)} numbers, another model {len(rows[0])}")
            rows.append(row)
    means = [sum(column) / len(column) for column in zip(*rows, strict=True)]
    agree = sum(
        all(abs(each - middle) <= tolerance * abs(middle) for each, middle in zip(row, means, strict=True))
        for row in rows
    )
    single = len(means) == 1
    return Combined(msgspec.json.encode(means[0] if single else means), agree / len(selection.ask))


def number(item: object) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(item, int | float) and not isinstance(item, bool)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)
