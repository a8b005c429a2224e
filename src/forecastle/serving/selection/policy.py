"""What chooses among the models of an application, and makes one answer of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar

import msgspec

from forecastle.errors import BadInput


class Selection(NamedTuple):
    """Models to ask: those whose answers count, and those that are asked besides, whose answers are dropped."""

    ask: tuple[str, ...]
    shadow: tuple[str, ...] = ()


class Combined(NamedTuple):
    """One answer, in JSON; ``confidence`` is the share of the asked models that agree with it, where several were."""

    output: bytes
    confidence: float | None = None


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What can be set of a policy: its fields, with their bounds."""


Opt = TypeVar("Opt", bound=Options)


class Policy:
    """Chooses models, combines their answers, and learns from feedback: asks the first model, until it says otherwise.

    What it is given is one application's: ``models`` are those that it is linked to now, in the order of linking.
    """

    name = ""
    """What an application calls it."""

    def __init__(self, options: Mapping[str, object], random: Random) -> None:
        """Take the options it has, which raises BadInput where they are others, or out of their bounds."""
        self.options = self.read(Options, options)
        self.random = random

    def read(self, kind: type[Opt], options: Mapping[str, object]) -> Opt:
        """Return options as what they are.

        Raises:
            BadInput: one is not known, or not what it should be; it names the policy and what it takes.
        """
        try:
            return msgspec.convert(dict(options), kind)
        except msgspec.ValidationError as error:
            known = ", ".join(field.name for field in msgspec.structs.fields(kind)) or "none"
            raise BadInput(f"the options of the policy {self.name!r}: {error}; its options are: {known}") from None

    def select(self, models: Sequence[str]) -> Selection:
        """Choose which of the models are asked, of at least one."""
        return Selection((models[0],))

    def combine(self, selection: Selection, outputs: Mapping[str, bytes]) -> Combined:
        """Make one answer of those that came in time, at least one, in JSON by model.

        Raises:
            BadOutput: they make none.
        """
        (model,) = selection.ask
        return Combined(outputs[model])

    def feedback_models(self, models: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        """Say whose answers a feedback is compared with."""
        return ()

    def feedback(self, label: bytes, outputs: Mapping[str, bytes]) -> None:
        """Learn what would have been right, in JSON, and what the models said of those that answered."""

    def state(self) -> bytes:
        """Return what was learned."""
        return b""

    def restore(self, state: bytes) -> None:
        """Know what was learned before; what cannot be understood is ignored."""


def value(output: bytes) -> Any:
    """Return what an answer, or a label, says: a batch of one result is that result."""
    found = msgspec.json.decode(output)
    while isinstance(found, list) and len(found) == 1:
        found = found[0]
    return found
