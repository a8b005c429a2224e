"""Several models behind one application: which are asked, and what is made of their answers."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from forecastle.errors import BadInput
from forecastle.serving.selection.ensemble import Ensemble
from forecastle.serving.selection.learning import EpsilonGreedy, Exp3, Exp4
from forecastle.serving.selection.policy import Policy
from forecastle.serving.selection.shadow import Shadow
from forecastle.serving.selection.weighted import Weighted


class Current(Policy):
    """Asks the first model that is linked."""

    name = "current"


POLICIES: dict[str, type[Policy]] = {
    policy.name: policy for policy in (Current, Weighted, Shadow, EpsilonGreedy, Exp3, Exp4, Ensemble)
}
"""What an application may name."""


def make(policy: str, options: Mapping[str, object], random: Random) -> Policy:
    """Make a policy.

    Raises:
        BadInput: there is none of this name, or an option is wrong.
    """
    kind = POLICIES.get(policy)
    if kind is None:
        raise BadInput(f"there is no policy {policy[:64]!r}; there are {', '.join(POLICIES)}")
    return kind(options, random)
