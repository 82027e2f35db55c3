"""How often one address may do something: as often as a hall, not as often as a script."""

import random

from qkdemo.web.serving.limits import Limit


class Clock:
    """Stands still until it is turned."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_so_many_at_once_and_then_one_in_so_many_seconds() -> None:
    clock = Clock()
    limit = Limit(most=3, every_s=10, clock=clock)
    assert [limit.allows("192.0.2.1") for _ in range(5)] == [True, True, True, False, False]
    clock.now = 9.9
    assert not limit.allows("192.0.2.1")
    clock.now = 10
    assert [limit.allows("192.0.2.1") for _ in range(2)] == [True, False]
    clock.now = 1000
    assert [limit.allows("192.0.2.1") for _ in range(4)] == [True, True, True, False]


def test_one_address_holds_up_no_other() -> None:
    limit = Limit(most=1, every_s=10, clock=Clock())
    assert limit.allows("192.0.2.1")
    assert limit.allows("192.0.2.2")
    assert not limit.allows("192.0.2.1")
    assert limit.allows("2001:db8:1:2::/64")
    assert not limit.allows("2001:db8:1:2::/64")


def test_addresses_are_forgotten_when_they_may_do_everything_again() -> None:
    clock = Clock()
    limit = Limit(most=1, every_s=10, clock=clock)
    for number in range(10_000):
        limit.allows(str(number))
    clock.now = 11
    limit.allows("one more")
    assert len(limit._full_at) == 1


def test_what_is_allowed_is_allowed_whatever_the_clock_says() -> None:
    """At some times (now + 1000) − now is more than 1000, by rounding."""
    dice = random.Random(0)
    times = [8000 * dice.random() for _ in range(500)]
    assert any((now + 1000) - now > 1000 for now in times)
    for now in times:
        limit = Limit(most=3, every_s=1000 / 3, clock=lambda now=now: now)
        assert [limit.allows("a") for _ in range(4)] == [True, True, True, False]
