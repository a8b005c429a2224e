"""The judge of batching policies: it is the same every time, it finds fault with bad policies, and none with ours."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bench.batching import judge
from bench.batching.__main__ import faults, quickly, table
from bench.batching.profiles import PROFILES
from bench.batching.sweep import CASES, compare

from forecastle.serving.policy import FixedBatch


def test_nothing_is_wrong_with_the_adaptive_policy_in_a_quick_look() -> None:
    found = quickly()
    assert list(faults(found)) == []
    assert len(table(found).splitlines()) == len(found) + 1


def test_a_simulation_is_the_same_every_time() -> None:
    index = next(i for i, case in enumerate(CASES) if case.profile.name == "noisy" and case.load > 1)
    assert compare(index, 1000) == compare(index, 1000)


def test_a_policy_that_is_too_slow_or_takes_batches_that_gain_nothing_is_found_out() -> None:
    indices = [i for i, case in enumerate(CASES) if case.profile.name in {"overhead", "linear"} and case.replicas == 1]
    found = [compare(i, 1500) for i in indices]
    one = [replace(c, adaptive=c.case.run(partial(FixedBatch, 1), 1500)) for c in found]
    assert any("in time, where a fixed size has" in fault for fault in judge.faults(one))
    many = [replace(c, adaptive=c.case.run(partial(FixedBatch, 100), 1500)) for c in found]
    told = list(judge.faults(many))
    assert any("which gain nothing" in fault for fault in told)
    assert any("where 64 is the limit" in fault for fault in told)


def test_a_profile_says_what_it_can_answer_at_most() -> None:
    capacity = {profile.name: round(profile.capacity) for profile in PROFILES}
    assert (capacity["flat"], capacity["linear"], capacity["step, tight"]) == (3200, 500, 533)
