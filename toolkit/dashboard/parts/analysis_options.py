"""The widgets for the parameters of an analysis, and their values in the link of a page.

A widget's value is kept under the page, the analysis and the parameter. It begins with the default,
or with the example of a parameter without one, and means that where it is left empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolkit.analyses import Analysis, Parameter
from toolkit.columns import column
from toolkit.dashboard.choice import OPTION
from toolkit.dashboard.link import read_choice, read_number, read_option
from toolkit.dashboard.screen import st
from toolkit.errors import InputError
from toolkit.foreign import Markdown

_MOST = 1e15
_LENGTHS_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_LEAST_PX = 150


def draw_options(page: str, analysis: Analysis) -> None:
    """Draw a widget for each parameter that can be typed, in one row or more."""
    asked = _asked(analysis)
    if not asked:
        return
    with st.grid(6, min_column_width=_LEAST_PX):
        for parameter in asked:
            key = _key(page, analysis, parameter)
            st.session_state.setdefault(key, _start(parameter))
            _draw(parameter, key)


def taken_options(page: str, analysis: Analysis) -> dict[str, Any]:
    """Return what the statistic takes for what the widgets show: defaults are left out.

    Raises `InputError` for a wrong length of time or number.
    """
    state, taken = st.session_state, {}
    for parameter in _asked(analysis):
        value = _taken(parameter, state[_key(page, analysis, parameter)])
        usual = parameter.default
        usual = list(usual) if isinstance(usual, tuple) else usual
        if parameter.required or value not in (None, usual):
            taken[parameter.name] = value
    return taken


def options_in_link(page: str, analysis: Analysis) -> dict[str, str]:
    """Return the values that are not those at first, as parameters of a link."""
    state, params = st.session_state, {}
    for parameter in _asked(analysis):
        value = state[_key(page, analysis, parameter)]
        if value not in (None, "", _start(parameter)):
            params[f"{OPTION}{parameter.name}"] = _in_link(value)
    return params


def follow_options(
    page: str, analysis: Analysis, params: Mapping[str, str], faults: list[Markdown]
) -> None:
    """Fill the widgets of an analysis from a link, and say in ``faults`` what is wrong with it."""
    for parameter in _asked(analysis):
        found = _from_link(parameter, params, faults)
        st.session_state[_key(page, analysis, parameter)] = found


def label_of(parameter: Parameter) -> str:
    """Return what a parameter is called above its widget, with the unit of a number.

    >>> label_of(Parameter("The level.", "bps", name="toward", kind="number"))
    'Toward (bps)'
    >>> label_of(Parameter("How many.", name="adf_lags", kind="whole"))
    'ADF lags'
    """
    one = column(parameter.name)
    words = one.short if one.meaning else _in_words(parameter)
    unit = parameter.unit if _is_number(parameter) else ""
    return f"{words[0].upper()}{words[1:]}{f' ({unit})' if unit else ''}"


def _in_words(parameter: Parameter) -> str:
    words = parameter.name.removesuffix(f"_{parameter.unit}") if parameter.unit else parameter.name
    return words.replace("_", " ")


def _asked(analysis: Analysis) -> list[Parameter]:
    return [each for each in analysis.parameters if each.is_asked]


def _key(page: str, analysis: Analysis, parameter: Parameter) -> str:
    return f"{page}_{analysis.name}_{parameter.name}"


def _is_number(parameter: Parameter) -> bool:
    return parameter.kind in ("number", "whole") and not parameter.many


def _start(parameter: Parameter) -> Any:
    value = parameter.example if parameter.required else parameter.default
    if parameter.choices:
        return list(value or ()) if parameter.many else value
    if parameter.kind == "flag":
        return bool(value)
    if _is_number(parameter):
        return value if value is None or parameter.kind == "whole" else float(value)
    if parameter.many:
        texts = [value] if isinstance(value, str) else value or ()
        return ", ".join(_text(parameter, each) for each in texts)
    return _text(parameter, value)


def _text(parameter: Parameter, value: Any) -> str:
    """Write a value as it is typed: a length of 3,600 s is 1h."""
    if value is None or parameter.kind != "length" or not isinstance(value, int):
        return "" if value is None else str(value)
    unit, length_s = next(each for each in _LENGTHS_S.items() if value % each[1] == 0)
    return f"{value // length_s}{unit if value else 's'}"


def _draw(parameter: Parameter, key: str) -> None:
    label, about = map(Markdown.harmless, (label_of(parameter), parameter.help))
    looks: dict[str, Any] = {"key": key, "help": about, "persist_state": "session"}
    if parameter.kind == "flag":
        st.toggle(label, **looks)
        return
    if parameter.choices and parameter.many:
        st.multiselect(label, parameter.choices, **looks)
    elif parameter.choices:
        at = None if _start(parameter) is None else 0
        st.selectbox(label, parameter.choices, index=at, **looks)
    elif _is_number(parameter):
        whole = parameter.kind == "whole"
        form = {"step": 1} if whole else {"step": 1.0, "format": "%g"}
        st.number_input(label, value=None, placeholder="default", **form, **looks)
    else:
        st.text_input(label, placeholder="default", **looks)


def _taken(parameter: Parameter, shown: Any) -> Any:
    """Return the value that a widget stands for, None where it is left empty."""
    if shown in (None, "", []):
        shown = _start(parameter)
    if parameter.kind == "flag":
        return None if parameter.default is None and not shown else shown
    if shown in (None, "", []) or parameter.choices or _is_number(parameter):
        return shown or None if isinstance(shown, str | list) else shown
    if not parameter.many:
        return parameter.read(shown.strip(), label_of(parameter))
    parts = [part.strip() for part in shown.split(",") if part.strip()]
    return parameter.read(_numbers(parameter, parts), label_of(parameter))


def _numbers(parameter: Parameter, parts: list[str]) -> list[Any]:
    if parameter.kind not in ("number", "whole"):
        return list(parts)
    try:
        return [int(each) if parameter.kind == "whole" else float(each) for each in parts]
    except ValueError:
        typed = ", ".join(parts)
        raise InputError(label_of(parameter), typed, "numbers, commas between them") from None


def _in_link(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ",".join(value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _from_link(parameter: Parameter, params: Mapping[str, str], faults: list[Markdown]) -> Any:
    name, start = f"{OPTION}{parameter.name}", _start(parameter)
    if name not in params:
        return start
    if parameter.kind == "flag":
        return read_option(params, name, ("on", "off"), "off", faults) == "on"
    if parameter.choices and parameter.many:
        return read_choice(params, name, parameter.choices, faults)
    if parameter.choices:
        return read_option(params, name, parameter.choices, start or parameter.choices[0], faults)
    if _is_number(parameter):
        number = read_number(params, name, start or 0.0, (-_MOST, _MOST), faults)
        return int(number) if parameter.kind == "whole" else number
    return params[name]
