"""The colours are measured: contrast to the background, and distance for colour-blind eyes."""

import itertools
import subprocess
import sys

import numpy as np
import plotly.io as pio
import pytest

from toolkit.charts.theme import (
    BACKGROUND,
    COLOURS,
    FAMILY_COLOURS,
    MARK_COLOUR,
    STATE_COLOURS,
    WARNING_COLOUR,
)
from toolkit.market import EventFamily
from toolkit.tables import LedgerState

# Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB.
VISION = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
# Ottosson 2020, Oklab.
TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one, two):
    """WCAG 2.2 contrast ratio."""
    light, dark = sorted((linear(c) @ [0.2126, 0.7152, 0.0722] for c in (one, two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def nearest(colours, vision):
    """The smallest Oklab distance of any two of the colours, seen through the vision."""
    seen = [TO_LAB @ np.cbrt(TO_LMS @ np.clip(VISION[vision] @ linear(c), 0, 1)) for c in colours]
    return min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))


@pytest.mark.parametrize("theme", COLOURS)
def test_ten_colours_of_a_template_stand_out_from_its_background(theme):
    assert len(set(COLOURS[theme])) == 10
    assert min(contrast(c, BACKGROUND[theme]) for c in COLOURS[theme]) >= 3
    layout = pio.templates[f"rail_{theme}"].layout
    assert layout.colorway == COLOURS[theme]
    assert layout.paper_bgcolor == layout.plot_bgcolor == BACKGROUND[theme]
    assert "sendChartToCloud" in layout.modebar.remove


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("theme", COLOURS)
def test_colours_states_and_families_stay_apart_for_every_kind_of_eye(theme, vision):
    assert nearest(COLOURS[theme], vision) > 0.055
    assert nearest(COLOURS[theme][:3], vision) > 0.14
    assert nearest(STATE_COLOURS.values(), vision) > 0.13
    assert nearest(FAMILY_COLOURS.values(), vision) > 0.13


@pytest.mark.parametrize("background", BACKGROUND.values())
def test_warning_states_and_families_stand_out_on_either_background(background):
    assert set(STATE_COLOURS) == set(LedgerState)
    assert set(FAMILY_COLOURS) == set(EventFamily)
    own = [*STATE_COLOURS.values(), *FAMILY_COLOURS.values()]
    for colour in [WARNING_COLOUR, MARK_COLOUR, *own]:
        assert contrast(colour, background) >= 3


@pytest.mark.slow
def test_importing_charts_leaves_plotlys_default_and_brings_no_express():
    program = (
        "import sys, plotly.io as pio; before = pio.templates.default; import toolkit.charts; "
        "assert pio.templates.default == before; "
        "print(sorted({'plotly.express', 'streamlit'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
