"""Reasons of null figures: the codes of the ``*_reason`` columns, and their words."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Why a number is null: a code, and its words for a reader.

    >>> Reason("too_few").words
    'too few observations for this statistic'
    """

    words: str

    def __new__(cls, code: str, words: str = "") -> Self:
        """Give a code its words."""
        reason = str.__new__(cls, code)
        reason._value_ = code
        reason.words = words
        return reason

    EMPTY = "empty", "no observation in the window"
    TOO_FEW = "too_few", "too few observations for this statistic"
    TOO_SHORT = "too_short", "the window is too short for this statistic"
    DEGENERATE = "degenerate", "the values do not vary"
    NO_REVERSION = (
        "no_reversion",
        "none: a spread that never returns to its mean fits these rows too",
    )
    BELOW_STEP = "below_step", "shorter than the spacing of the observations can show"
    SEVERAL_SPEEDS = (
        "several_speeds",
        (
            "one speed beneath noise does not fit: there are several speeds, a season, a "
            "shift of level or noise with memory"
        ),
    )
    SPIKES_DOMINATE = "spikes_dominate", "more than half of the variance is that of a few spikes"
    TESTS_DISAGREE = (
        "tests_disagree",
        "one test finds a return to the mean, another does not: the window is too short to tell",
    )
    MISSING_LEG = "missing_leg", "one leg has nothing to compare the other with"
    LOW_COVERAGE = (
        "low_coverage",
        "too little of the window is covered on both legs: try a longer one",
    )
    MISSING_PRICE = "missing_price", "the prices of both legs that it needs are not held"
    DENSE_ROWS = (
        "dense_rows",
        "rows come more often than settlements, and nothing tells the two apart",
    )
    UNKNOWN_FEE = "unknown_fee", "the fee table does not say what this costs"
    NOTHING_LEFT = "nothing_left", "after the cost nothing is left at any time"
    STEP_TOO_COARSE = "step_too_coarse", "the steps are too long to show it"
    CENSORED = "censored", "its end was not seen"
    TRUNCATED = "truncated", "its beginning was not seen"
    CLOCK_SKEW = "clock_skew", "its close is stamped before its opening"
    MADE_ID = (
        "made_id",
        "the service sends no id of the event, so that its close cannot be told from another's",
    )
    NOT_NOTED = "not_noted", "nobody counted it when the rows came"
    DAYS_DEPEND = "days_depend", "days are too like the days before them to be separate draws"
    MORE_THAN_EXPECTED = "more_than_expected", "there are more rows than their step lets expect"
    LONG_MEMORY = (
        "long_memory",
        (
            "what was long ago still shows in the values: a window of this length does "
            "not bound their long-run mean"
        ),
    )
    FEW_CLUSTERS = (
        "few_clusters",
        "events depend on each other, in too few clusters for an interval",
    )
    NOT_PARETO = "not_pareto", "the index changes with the depth of the tail, so that it is biased"
    LEG_RATES = "leg_rates", "the rates of the legs are known, which tell more"

    @property
    def in_place(self) -> str:
        """The text that a table shows in place of the number.

        >>> Reason.BELOW_STEP.in_place, Reason.EMPTY.in_place
        ('under 1 step', '–')
        """
        return "under 1 step" if self is Reason.BELOW_STEP else "–"
