"""Reasons of null figures: the codes of the ``*_reason`` columns, and their words."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a number is null.

    >>> Reason("too_few").words
    'too few observations for this statistic'
    """

    EMPTY = "empty"
    TOO_FEW = "too_few"
    TOO_SHORT = "too_short"
    DEGENERATE = "degenerate"
    NO_REVERSION = "no_reversion"
    BELOW_STEP = "below_step"
    SEVERAL_SPEEDS = "several_speeds"
    SPIKES_DOMINATE = "spikes_dominate"
    TESTS_DISAGREE = "tests_disagree"
    MISSING_LEG = "missing_leg"
    LOW_COVERAGE = "low_coverage"
    MISSING_PRICE = "missing_price"
    DENSE_ROWS = "dense_rows"
    UNKNOWN_FEE = "unknown_fee"
    NOTHING_LEFT = "nothing_left"
    STEP_TOO_COARSE = "step_too_coarse"
    CENSORED = "censored"
    TRUNCATED = "truncated"
    CLOCK_SKEW = "clock_skew"
    MADE_ID = "made_id"
    NOT_NOTED = "not_noted"
    DAYS_DEPEND = "days_depend"
    MORE_THAN_EXPECTED = "more_than_expected"
    LONG_MEMORY = "long_memory"
    FEW_CLUSTERS = "few_clusters"
    NOT_PARETO = "not_pareto"
    LEG_RATES = "leg_rates"

    @property
    def words(self) -> str:
        """The reason in words, for a reader."""
        return _WORDS[self]

    @property
    def in_place(self) -> str:
        """What a table shows in the place of the number: a dash, or on which side it lies.

        >>> Reason.BELOW_STEP.in_place, Reason.EMPTY.in_place
        ('under 1 step', '–')
        """
        return "under 1 step" if self is Reason.BELOW_STEP else "–"


_WORDS = {
    Reason.EMPTY: "no observation in the window",
    Reason.TOO_FEW: "too few observations for this statistic",
    Reason.TOO_SHORT: "the window is too short for this statistic",
    Reason.DEGENERATE: "the values do not vary",
    Reason.NO_REVERSION: "none: a spread that never returns to its mean fits these rows too",
    Reason.BELOW_STEP: "shorter than the spacing of the observations can show",
    Reason.SEVERAL_SPEEDS: "one speed beneath noise does not fit: there are several speeds, "
    "a season, a shift of level or noise with memory",
    Reason.SPIKES_DOMINATE: "more than half of the variance is that of a few spikes",
    Reason.TESTS_DISAGREE: "one test finds a return to the mean, another does not: "
    "the window is too short to tell",
    Reason.MISSING_LEG: "one leg has nothing to compare the other with",
    Reason.LOW_COVERAGE: "too little of the window is covered on both legs: try a longer one",
    Reason.MISSING_PRICE: "the prices of both legs that it needs are not held",
    Reason.DENSE_ROWS: "rows come more often than settlements, and nothing tells the two apart",
    Reason.UNKNOWN_FEE: "the fee table does not say what this costs",
    Reason.NOTHING_LEFT: "after the cost nothing is left at any time",
    Reason.STEP_TOO_COARSE: "the steps are too long to show it",
    Reason.CENSORED: "its end was not seen",
    Reason.TRUNCATED: "its beginning was not seen",
    Reason.CLOCK_SKEW: "its close is stamped before its opening",
    Reason.MADE_ID: "the service sends no id of the event, so that its close cannot be told from "
    "another's",
    Reason.NOT_NOTED: "nobody counted it when the rows came",
    Reason.DAYS_DEPEND: "days are too like the days before them to be separate draws",
    Reason.MORE_THAN_EXPECTED: "there are more rows than their step lets expect",
    Reason.LONG_MEMORY: "what was long ago still shows in the values: a window of this length does "
    "not bound their long-run mean",
    Reason.FEW_CLUSTERS: "events depend on each other, in too few clusters for an interval",
    Reason.NOT_PARETO: "the index changes with the depth of the tail, so that it is biased",
    Reason.LEG_RATES: "the rates of the legs are known, which tell more",
}
