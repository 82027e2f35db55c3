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


def test_flash_attention_refused_a_cap_and_then_took_one_when_others_already_had() -> None:
    of_kernel = [reading for reading in READINGS if reading.kernel == "FlashAttention"]
    assert [reading.accepts for reading in of_kernel] == [False, True, True]
    assert first_acceptance().date.isoformat() == "2024-06-12"
    assert first_acceptance().date < of_kernel[0].date < of_kernel[1].date
    flash_infer = [reading for reading in READINGS if reading.kernel == "FlashInfer"]
    assert [(reading.date.isoformat(), reading.accepts) for reading in flash_infer] == [
        ("2024-05-24", False),
        ("2024-06-14", True),
    ]


def test_a_kernel_is_told_from_a_framework_that_calls_one() -> None:
    assert {reading.kind for reading in READINGS} == {"kernel", "framework"}
    four = {reading.kernel: reading for reading in READINGS if "FlashAttention 4" in reading.kernel}
    assert four["FlashAttention 4"].accepts
    assert not four["TransformerEngine with FlashAttention 4"].accepts
