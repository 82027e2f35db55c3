import re

from qkdemo.facts.softcap import READINGS, first_acceptance, latest


def test_readings_are_in_order_and_name_their_thread() -> None:
    assert list(READINGS) == sorted(READINGS, key=lambda reading: reading.date)
    for reading in READINGS:
        assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", reading.link)
        assert reading.kernel
        assert reading.version
        assert reading.note.endswith(".")


def test_no_kernel_is_read_twice_on_one_day() -> None:
    seen = [(reading.kernel, reading.date) for reading in READINGS]
    assert len(set(seen)) == len(seen)


def test_the_latest_reading_of_a_kernel_is_its_last() -> None:
    for kernel, reading in latest().items():
        assert all(other.date <= reading.date for other in READINGS if other.kernel == kernel)


def test_flash_attention_refused_a_cap_before_anybody_took_one() -> None:
    of_kernel = [reading for reading in READINGS if reading.kernel == "FlashAttention"]
    assert [reading.accepts for reading in of_kernel] == [False, True]
    assert of_kernel[0].date < first_acceptance().date
