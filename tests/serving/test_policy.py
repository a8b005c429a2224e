from __future__ import annotations

import pytest

from forecastle.serving.policy import APART_SECONDS, PIPELINE_SECONDS, FixedBatch


@pytest.mark.parametrize(("share", "size"), [(1, 1), (3, 3), (8, 8), (100, 8)])
def test_a_batch_is_what_waits_within_the_limit(share: int, size: int) -> None:
    assert FixedBatch(8).size(share, 1.0, 1.0) == size


def test_a_model_that_predicts_one_at_a_time_gets_one_until_its_cost_is_known() -> None:
    policy = FixedBatch(32, together=False)
    assert policy.size(10, 1.0, 1.0) == 1
    policy.observe(1, APART_SECONDS / 5, APART_SECONDS / 5)
    assert policy.size(10, 1.0, 1.0) == 5
    assert policy.size(2, 1.0, 1.0) == 2


def test_a_slow_model_that_predicts_one_at_a_time_gets_one() -> None:
    policy = FixedBatch(32, together=False)
    policy.observe(1, 1.0, 1.0)
    assert policy.size(10, 1.0, 1.0) == 1


def test_only_a_quick_model_is_sent_its_next_batch_ahead() -> None:
    policy = FixedBatch(32)
    assert policy.depth() == 1
    policy.observe(1, PIPELINE_SECONDS / 10, PIPELINE_SECONDS / 10)
    assert policy.depth() == 2
    for _ in range(20):
        policy.observe(1, PIPELINE_SECONDS * 10, PIPELINE_SECONDS * 10)
    assert policy.depth() == 1
