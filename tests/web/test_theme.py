"""The theme can be read: by anybody in light and in dark, and the two colours of attention also by the colour-blind.

Contrast after WCAG 2.2 (text 4.5 : 1, graphics 3 : 1); colour vision after Machado, Oliveira and Fernandes 2009,
severity 1; colour differences as distances in CIELAB, where about 2 is just noticeable.
"""

import tomllib
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

CONFIG = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
MODES = ("light", "dark")
TEXT, GRAPHICS = 4.5, 3.0
CAPTION_OPACITY = 0.6  # at which Streamlit writes st.caption
VISION = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def srgb(colour: str) -> NDArray[np.float64]:
    """Red, green and blue in [0, 1], as the screen is told."""
    return np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])


def light(channels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Red, green and blue in [0, 1], in proportion to the light."""
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    dark, bright = sorted(float(XYZ[1] @ light(channels)) for channels in (one, other))
    return (bright + 0.05) / (dark + 0.05)


def lab(colour: str, vision: str) -> NDArray[np.float64]:
    seen = np.clip(np.asarray(VISION[vision]) @ light(srgb(colour)), 0, 1)
    x, y, z = np.cbrt(np.maximum(XYZ @ seen / (XYZ @ np.ones(3)), (6 / 29) ** 3))  # darker than 0.9 % counts as 0.9 %
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def backgrounds(mode: str) -> set[str]:
    """Every colour that text stands on, in the page and in the sidebar."""
    theme = CONFIG["theme"][mode]
    return {part[key] for part in (theme, theme["sidebar"]) for key in ("backgroundColor", "secondaryBackgroundColor")}


def test_contrast_is_21_for_black_on_white_and_4_54_for_the_grey_that_just_passes() -> None:
    assert contrast(srgb("#000000"), srgb("#FFFFFF")) == pytest.approx(21)
    assert contrast(srgb("#767676"), srgb("#FFFFFF")) == pytest.approx(4.54, abs=0.005)


def test_lab_of_white_is_100_0_0() -> None:
    assert lab("#FFFFFF", "usual") == pytest.approx([100, 0, 0], abs=0.01)


@pytest.mark.parametrize("mode", MODES)
def test_every_colour_of_text_can_be_read_on_every_background(mode: str) -> None:
    theme = CONFIG["theme"][mode]
    colours = [theme[key] for key in ("primaryColor", "textColor", "linkColor", "codeTextColor")]
    for colour, background in product(colours + theme["chartCategoricalColors"], backgrounds(mode)):
        assert contrast(srgb(colour), srgb(background)) >= TEXT, f"{colour} on {background}"


@pytest.mark.parametrize("mode", MODES)
def test_captions_can_be_read(mode: str) -> None:
    text = srgb(CONFIG["theme"][mode]["textColor"])
    for background in map(srgb, backgrounds(mode)):
        assert contrast(CAPTION_OPACITY * text + (1 - CAPTION_OPACITY) * background, background) >= TEXT


@pytest.mark.parametrize("mode", MODES)
def test_the_white_tick_shows_on_the_primary_colour(mode: str) -> None:
    assert contrast(srgb("#FFFFFF"), srgb(CONFIG["theme"][mode]["primaryColor"])) >= GRAPHICS


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("mode", MODES)
def test_plain_normalised_and_bound_differ_for_every_kind_of_colour_vision(mode: str, vision: str) -> None:
    for one, other in combinations(CONFIG["theme"][mode]["chartCategoricalColors"][:3], 2):
        assert np.linalg.norm(lab(one, vision) - lab(other, vision)) > 20, f"{one} and {other}"


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("mode", MODES)
def test_two_sides_that_are_compared_differ_from_each_other_and_from_plain_attention(mode: str, vision: str) -> None:
    """The left one has the colour of text, the right one the fifth of the palette."""
    theme = CONFIG["theme"][mode]
    plain, right = theme["chartCategoricalColors"][0], theme["chartCategoricalColors"][4]
    for one, other in combinations((theme["textColor"], right, plain), 2):
        assert np.linalg.norm(lab(one, vision) - lab(other, vision)) > 15, f"{one} and {other}"


@pytest.mark.parametrize("mode", MODES)
def test_ramps_have_ten_colours_and_the_sequential_one_leaves_the_page_steadily(mode: str) -> None:
    theme = CONFIG["theme"][mode]
    assert len(theme["chartDivergingColors"]) == len(theme["chartSequentialColors"]) == 10
    page = srgb(theme["backgroundColor"])
    steps = [contrast(srgb(colour), page) for colour in theme["chartSequentialColors"]]
    assert steps == sorted(steps)


def test_both_modes_say_the_same_things() -> None:
    assert CONFIG["theme"]["light"].keys() == CONFIG["theme"]["dark"].keys()


def test_nothing_is_fetched_from_elsewhere() -> None:
    assert "://" not in repr(CONFIG)
