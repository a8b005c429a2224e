from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forecastle.serving.deadlines import Deadlines
from serving.fakes import FakeClock


class Item:
    def __init__(self, deadlines: Deadlines, clock: FakeClock, seconds: float) -> None:
        self.deadline = clock.time + seconds
        self.over = False
        self.expired_at: float | None = None
        self._deadlines = deadlines
        self._clock = clock
        deadlines.watch(self)

    def expire(self) -> None:
        self.expired_at = self._clock.time
        self.end()

    def end(self) -> None:
        self.over = True
        self._deadlines.ended()


@given(st.lists(st.tuples(st.floats(0.01, 10), st.booleans()), max_size=40))
def test_what_is_not_over_expires_at_its_deadline_and_what_is_over_never(items: list[tuple[float, bool]]) -> None:
    clock = FakeClock()
    deadlines = Deadlines(clock)
    made = [(Item(deadlines, clock, seconds), ends) for seconds, ends in items]
    for item, ends in made:
        if ends:
            item.end()
    assert len(deadlines) == sum(not ends for _, ends in made)
    clock.advance(20)
    assert len(deadlines) == 0
    for item, ends in made:
        assert item.expired_at == (None if ends else item.deadline)


def test_a_mass_of_things_that_are_over_is_not_held_until_their_deadlines() -> None:
    clock = FakeClock()
    deadlines = Deadlines(clock)
    for _ in range(10_000):
        Item(deadlines, clock, 1000).end()
    assert len(deadlines._heap) < 3000
    assert clock.timers <= 1


def test_an_item_may_end_others_as_it_expires() -> None:
    clock = FakeClock()
    deadlines = Deadlines(clock)
    items = [Item(deadlines, clock, 1) for _ in range(5000)]

    def end_all() -> None:
        for item in items:
            item.end()

    items[0].expire = end_all  # type: ignore[method-assign]
    clock.advance(2)
    assert all(item.over for item in items)
    assert all(item.expired_at is None for item in items)
    assert len(deadlines) == 0
