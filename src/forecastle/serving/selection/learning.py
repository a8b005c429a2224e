"""Policies that learn from feedback which model is right, and notice when that changes.

Exp3 and Exp4: Auer, Cesa-Bianchi, Freund and Schapire, "The nonstochastic multiarmed bandit problem" (2002); that a
share of all weight is given to every model alike is their Exp3.S, and Herbster and Warmuth, "Tracking the best expert"
(1998): without it a model that was wrong for long would need as long to come back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Annotated, Any

import msgspec

from forecastle.serving.selection.ensemble import number, same, vote
from forecastle.serving.selection.policy import Combined, Options, Policy, Selection, value

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Rate = Annotated[float, msgspec.Meta(gt=0)]
Scale = Annotated[float, msgspec.Meta(ge=0)]

_state = msgspec.json.Decoder(dict[str, Annotated[float, msgspec.Meta(ge=0)]])


class EpsilonGreedyOptions(Options, frozen=True):
    """``epsilon`` of the queries go to any model; a loss has ``memory`` feedbacks' weight in a model's average.

    With a ``scale``, the loss of a number is its distance from the label as a share of that, at most 1; otherwise 0
    for what equals the label and 1 for what does not.
    """

    epsilon: Share = 0.1
    memory: Annotated[float, msgspec.Meta(ge=1)] = 30.0
    scale: Scale = 0.0


class Exp3Options(Options, frozen=True):
    """``rate`` of learning, ``explore`` is the share of queries drawn evenly, ``share`` what each feedback evens out.

    ``scale`` as in epsilon_greedy.
    """

    rate: Rate = 0.05
    explore: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.1
    share: Share = 0.0005
    scale: Scale = 0.0


class Exp4Options(Options, frozen=True):
    """``rate`` of learning, ``share`` of all weight that each feedback evens out, ``scale`` as in the others."""

    rate: Rate = 0.1
    share: Share = 0.01
    scale: Scale = 0.0


class Learning(Policy):
    """Keeps a number for each model it has had feedback of."""

    scale = 0.0

    def __init__(self, options: Mapping[str, object], random: Random) -> None:
        super().__init__(options, random)
        self.known: dict[str, float] = {}

    def losses(self, label: bytes, outputs: Mapping[str, bytes]) -> dict[str, float]:
        """Return how wrong each model was, from 0 to 1."""
        right = value(label)
        return {model: _loss(value(output), right, self.scale) for model, output in outputs.items()}

    def state(self) -> bytes:
        """Return the numbers."""
        return msgspec.json.encode(self.known)

    def restore(self, state: bytes) -> None:
        """Take them back."""
        try:
            self.known = _state.decode(state)
        except msgspec.DecodeError:
            self.known = {}


class EpsilonGreedy(Learning):
    """Asks the model that was wrong least, lately; and now and then another one."""

    name = "epsilon_greedy"

    def __init__(self, options: Mapping[str, object], random: Random) -> None:
        super().__init__({}, random)
        read = self.read(EpsilonGreedyOptions, options)
        self.epsilon, self.memory, self.scale = read.epsilon, read.memory, read.scale

    def select(self, models: Sequence[str]) -> Selection:
        """Choose the best known, where one that is not known is better than any, so that each gets its chance."""
        if self.random.random() < self.epsilon:
            return Selection((self.random.choice(models),))
        return Selection((min(models, key=lambda model: self.known.get(model, -1.0)),))

    def feedback_models(self, models: Sequence[str]) -> tuple[str, ...]:
        """Choose one as a query does."""
        return self.select(models).ask

    def feedback(self, label: bytes, outputs: Mapping[str, bytes]) -> None:
        """Move the averages."""
        for model, loss in self.losses(label, outputs).items():
            before = self.known.get(model)
            self.known[model] = loss if before is None else before + (loss - before) / self.memory


class Weights(Learning):
    """Keeps a weight for each model, 1 on average; one that is new is as good as the average."""

    rate = 0.0
    share = 0.0

    def weigh(self, models: Sequence[str]) -> list[float]:
        """Return the weights of the models, which sum to 1."""
        weights = [self.known.get(model, 1.0) for model in models]
        total = sum(weights)
        return [weight / total for weight in weights] if total > 0 else [1 / len(models)] * len(models)

    def update(self, models: Iterable[str], losses: Mapping[str, float]) -> None:
        """Take from those that were wrong, give every model its share, and make the average 1 again."""
        for model in models:
            self.known.setdefault(model, 1.0)
        for model, loss in losses.items():
            self.known[model] *= math.exp(-self.rate * loss)
        average = sum(self.known.values()) / len(self.known)
        for model, weight in self.known.items():
            self.known[model] = (1 - self.share) * (weight / average if average > 0 else 1.0) + self.share


class Exp3(Weights):
    """Asks one model, drawn by weight; a feedback is compared with one model, drawn so too."""

    name = "exp3"

    def __init__(self, options: Mapping[str, object], random: Random) -> None:
        super().__init__({}, random)
        read = self.read(Exp3Options, options)
        self.rate, self.explore, self.share, self.scale = read.rate, read.explore, read.share, read.scale
        self._models: tuple[str, ...] = ()

    def select(self, models: Sequence[str]) -> Selection:
        """Draw one."""
        return Selection(tuple(self.random.choices(models, self.chances(models))))

    def chances(self, models: Sequence[str]) -> list[float]:
        """Return how likely each model is drawn."""
        even = self.explore / len(models)
        return [(1 - self.explore) * weight + even for weight in self.weigh(models)]

    def feedback_models(self, models: Sequence[str]) -> tuple[str, ...]:
        """Draw one."""
        self._models = tuple(models)
        return self.select(models).ask

    def feedback(self, label: bytes, outputs: Mapping[str, bytes]) -> None:
        """Blame the more for a wrong answer the less likely it was to be heard: so all are blamed alike, on average."""
        chances = dict(zip(self._models, self.chances(self._models), strict=True))
        losses = self.losses(label, outputs)
        self.update(self._models, {model: loss / chances[model] for model, loss in losses.items() if model in chances})


class Exp4(Weights):
    """Asks all models; the answer is that with the most weight behind it."""

    name = "exp4"

    def __init__(self, options: Mapping[str, object], random: Random) -> None:
        super().__init__({}, random)
        read = self.read(Exp4Options, options)
        self.rate, self.share, self.scale = read.rate, read.share, read.scale

    def select(self, models: Sequence[str]) -> Selection:
        """Choose all."""
        return Selection(tuple(models))

    def combine(self, selection: Selection, outputs: Mapping[str, bytes]) -> Combined:
        """Return the answer with the most weight."""
        return vote(selection, outputs, dict(zip(selection.ask, self.weigh(selection.ask), strict=True)))

    def feedback_models(self, models: Sequence[str]) -> tuple[str, ...]:
        """Compare all."""
        return tuple(models)

    def feedback(self, label: bytes, outputs: Mapping[str, bytes]) -> None:
        """Take weight from those that were wrong."""
        self.update(outputs, self.losses(label, outputs))


def _loss(said: Any, right: Any, scale: float) -> float:
    if scale and number(said) and number(right):
        return min(1.0, float(abs(said - right)) / scale)
    return 0.0 if same(said, right) else 1.0
