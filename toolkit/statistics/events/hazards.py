"""Regression of Cox: which sizes, venues and hours make events last."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.columns import schema_of
from toolkit.errors import InputError, needs_extra
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame
from toolkit.statistics.events.clusters import (
    AUTO,
    LIVES_IN,
    NONE,
    checked_cluster_kind,
    chosen_clusters,
    clusters_of_lives,
    joined,
)
from toolkit.statistics.events.exposure import Watched
from toolkit.statistics.numeric.arrays import Floats, Integers
from toolkit.statistics.numeric.life_curve import MIN_ENDED, TWO_SIDED_95
from toolkit.statistics.numeric.tails import two_sided_95_between, two_sided_chance


@dataclass(frozen=True)
class Scores:
    """The contribution of each life to the score and the information of a fitted regression.

    ``design`` has one row per life and one column per slope. A life is watched from its entry to
    its duration. Ties are Breslow's.
    """

    durations: Floats
    entries: Floats
    ended: np.ndarray
    design: Floats
    slopes: Floats

    @cached_property
    def _ages(self) -> Floats:
        return np.unique(self.durations[self.ended])

    @cached_property
    def _places(self) -> tuple[Integers, Integers]:
        begun = np.searchsorted(self._ages, self.entries, side="right")
        over = np.searchsorted(self._ages, self.durations, side="right")
        return np.minimum(np.where(self.entries > 0, begun, 0), over), over

    @cached_property
    def _risk(self) -> Floats:
        return np.exp(self.design @ self.slopes)

    def _watched(self, each: Floats) -> Floats:
        begun, over = self._places
        change = np.zeros((self._ages.size + 1, *each.shape[1:]))
        np.add.at(change, begun, each)
        np.add.at(change, over, -each)
        return np.cumsum(change, axis=0)[:-1]

    @cached_property
    def _at_ages(self) -> tuple[Floats, Floats]:
        """The hazard at each age, and the mean design of those watched."""
        total = self._watched(self._risk)
        mean = self._watched(self._risk[:, None] * self.design) / total[:, None]
        ends = np.bincount(self._places[1][self.ended] - 1, minlength=self._ages.size)
        return ends / total, mean

    @cached_property
    def _expected(self) -> tuple[Floats, Floats]:
        hazard, mean = self._at_ages
        begun, over = self._places
        sums = np.cumsum(np.column_stack([hazard, hazard[:, None] * mean]), axis=0)
        sums = np.vstack([np.zeros(sums.shape[1]), sums])
        own = self._risk[:, None] * (sums[over] - sums[begun])
        return own[:, :1], own[:, 1:]

    @cached_property
    def of_lives(self) -> Floats:
        """The score of each life (row) for each slope (column)."""
        hazards, means = self._expected
        own = np.zeros(self.design.shape)
        at = self._places[1][self.ended] - 1
        own[self.ended] = self.design[self.ended] - self._at_ages[1][at]
        return own - (self.design * hazards - means)

    def information(self, some: np.ndarray) -> Floats:
        """Return the contribution of some lives to the information."""
        hazard, mean = self._at_ages
        hazards, means = self._expected
        design = self.design[some]
        risk = np.where(some, self._risk, 0.0)
        cross = design.T @ means[some]
        found: Floats = (
            (design * hazards[some]).T @ design
            - (cross + cross.T)
            + (mean * (hazard * self._watched(risk))[:, None]).T @ mean
        )
        return found


def clustered_errors(scores: Scores, of: Integers, count: int) -> tuple[Floats, Floats]:
    """Return the errors of slopes for clustered lives, and their degrees of freedom.

    The sandwich of Lin and Wei (1989) with the jackknife's correction for few clusters: the change
    of the slopes without each cluster, by one Newton step (Lipsitz and Parzen 1996, CR3 of Bell and
    McCaffrey 2002). The freedom is Satterthwaite's of the clusters' shares of the information, less
    1.
    """
    whole = scores.of_lives.sum(axis=0)  # nearly 0
    of_lives = ("durations", "entries", "ended", "design")
    moved, parts = [], []
    for each in range(count):
        others = of != each
        left = replace(scores, **{name: getattr(scores, name)[others] for name in of_lives})
        kept = left.information(np.ones(others.sum(), dtype=bool))
        change = left.of_lives.sum(axis=0) - whole
        moved.append(np.linalg.pinv(kept, hermitian=True) @ change)
        parts.append(scores.information(~others))
    errors = np.sqrt((count - 1) / count * np.square(moved).sum(axis=0))
    inverse = np.linalg.pinv(np.sum(parts, axis=0), hermitian=True)
    added = np.einsum("ij,cjk,ki->ci", inverse, np.array(parts), inverse)
    return errors, np.square(added.sum(axis=0)) / np.square(added).sum(axis=0) - 1


MOST_RATIOS = 50
"""The most ratios of a family in one regression."""

_MOST_LEFT_OUT = 50
"""Above this number neighbouring clusters are joined: each needs one more pass."""
_LEAST_FREEDOM = 2.0
"""The fewest degrees of freedom of a slope with bounds."""


@analysis(
    "events.hazard_ratios",
    """
        covariate value baseline hazard_ratio hazard_ratio_lower hazard_ratio_upper p_value n
        n_ended n_left_out coverage cluster n_clusters""",
    key=("family", "covariate", "value", "baseline"),
    title="What makes events end sooner,",
    about="""
        A ratio of 2 means that twice as many events of any age end in the next moment. For
        a column of numbers it is the ratio per unit, for text that against the value of
        most events.""",
    example="spread --covariate size",
    covariates=Parameter(
        "What explains an end: size, symbol, legs, exchange or hour.", option="--covariate"
    ),
    cluster=LIVES_IN,
)
def hazard_ratios(
    lives: Frame,
    covariates: Sequence[str] = ("size",),
    *,
    held: pl.DataFrame | None = None,
    cluster: str = AUTO,
) -> pl.DataFrame:
    """Estimate what makes events end sooner or later, by the regression of Cox.

    ``lives``, ``held`` and what counts are those of `survival`. With a hazard ratio of 2, twice as
    many events of any age end in the next moment, all other covariates equal. For a column of
    numbers it is the ratio per unit, for text that of each value against the commonest. Ties are
    Efron's.

    The ratio is taken as constant over age: check it by `survival_curve`. Bounds and p-values allow
    for dependence within a ``cluster``, as in `survival`
    (`toolkit.statistics.events.hazards.clustered_errors`). Left out are lives with a null
    covariate, with a value of which none ended, and those that ended when they opened. One row per
    family, covariate and value but the baseline, in the order of ``covariates``:

    {columns}

    Raises
    ------
    InputError
        As `survival`. ``covariates`` is empty, or has a column of neither text nor numbers. A
        family has more than 50 ratios.
    MissingExtraError
        statsmodels is not installed: the extra ``survival`` has it.

    References
    ----------
    Cox, D. R. (1972), Journal of the Royal Statistical Society B 34. Lin, D. Y. and Wei, L. J.
    (1989), Journal of the American Statistical Association 84. Efron, B. (1977), Journal of the
    American Statistical Association 72. Ten for each ratio: Peduzzi, P. et al. (1995), Journal of
    Clinical Epidemiology 48.

    Examples
    --------
    >>> count = 40
    >>> lives = pl.DataFrame({"family": "spread", "t_open": [0] * count,
    ...     "duration_s": [1.0 + k * (1 + k % 2) for k in range(count)], "entry_s": 0.0,
    ...     "observed": [1] * count, "kind": "closed", "known_until": [100] * count,
    ...     "window_start": [0] * count, "window_end": [100] * count,
    ...     "symbol": ["A_B", "C_D"] * (count // 2)})
    >>> found = hazard_ratios(lives, ["symbol"])
    >>> found.select("value", "baseline", "n", pl.col("hazard_ratio").round(2)).row(0)
    ('C_D', 'A_B', 40, 0.25)
    """
    checked_cluster_kind(cluster)
    watched = Watched.of(lives, covariates, held)
    names = watched.names[1:]
    if not names:
        raise InputError("covariates", covariates, "columns of the lives, e.g. size")
    for name in names:
        kind = watched.groups.schema[name]
        if not (kind == pl.String or kind.is_numeric()):
            raise InputError("covariates", f"{name} ({kind})", "columns of text or numbers")
    cut = watched.cut().filter(pl.col("duration_s") > pl.col("entry_s"))
    known = cut.drop("kind", "cut").join(watched.groups, on="_number", maintain_order="left")
    found = [
        {"family": family} | row
        for (family,), of_family in known.partition_by("family", as_dict=True).items()
        for row in _ratios(of_family, names, cluster)
    ]
    rows = pl.DataFrame(found, schema=schema_of("events.hazard_ratios"))
    return (
        rows.drop("coverage")
        .join(watched.held_s(), on="family", how="left", maintain_order="left")
        .select(rows.columns)
        .sort("family", maintain_order=True)
        .with_columns(watched.question("events.hazard_ratios/2", cluster=cluster).columns)
    )


def _ratios(lives: pl.DataFrame, names: list[str], cluster: str) -> list[dict[str, object]]:
    known = lives.drop_nulls(names)
    used = _comparable(known, [name for name in names if known.schema[name] == pl.String])
    rows: list[dict[str, object]] = []
    columns: dict[int, pl.Expr] = {}  # of the design, by the number of the row
    for name in names:
        if known.schema[name] != pl.String:
            columns[len(rows)] = pl.col(name).cast(pl.Float64)
            rows.append({"covariate": name})
            continue
        most, all_values = _values(used, name), _values(known, name)
        against: dict[str, object] = {"covariate": name, "baseline": most[0] if most else None}
        for value in (value for value in all_values if value not in most[:1]):
            if value in most:
                columns[len(rows)] = (pl.col(name) == value).cast(pl.Float64)
            rows.append(against | {"value": value, "hazard_ratio_reason": Reason.DEGENERATE.value})
        if len(all_values) < 2:
            rows.append(against | {"hazard_ratio_reason": Reason.TOO_FEW.value})
    if len(rows) > MOST_RATIOS:
        raise InputError("covariates", f"{len(rows)} ratios", f"at most {MOST_RATIOS} of a family")
    ended = int(used["observed"].sum())
    design = used.select(each.alias(str(at)) for at, each in columns.items()).to_numpy()
    too_few: dict[str, object] = {"hazard_ratio_reason": Reason.TOO_FEW.value}
    found = [too_few] * len(columns)
    if columns and ended >= MIN_ENDED * len(columns):
        found = _fitted(used, design, cluster)
    for at, figures in zip(columns, found, strict=True):
        rows[at] |= figures
    counts = {"n": used.height, "n_ended": ended, "n_left_out": lives.height - used.height}
    return [row | counts for row in rows]


def _values(lives: pl.DataFrame, name: str) -> list[str]:
    counted = lives.group_by(name).len().sort("len", name, descending=[True, False])
    return counted[name].to_list()


def _comparable(lives: pl.DataFrame, texts: list[str]) -> pl.DataFrame:
    """Leave out lives of values of which none ended, until each value has one."""
    some_ended = [(pl.col("observed").sum() > 0).over(name) for name in texts]
    kept = lives.filter(some_ended) if texts else lives
    return kept if kept.height == lives.height else _comparable(kept, texts)


def _fitted(lives: pl.DataFrame, design: Floats, cluster: str) -> list[dict[str, object]]:
    with needs_extra("survival"):
        from statsmodels.duration.hazard_regression import PHReg  # noqa: PLC0415 - of an extra

    degenerate: dict[str, object] = {"hazard_ratio_reason": Reason.DEGENERATE.value}
    centred = design - design.mean(axis=0)
    if np.linalg.matrix_rank(centred) < design.shape[1]:
        return [degenerate] * design.shape[1]
    spread = centred.std(axis=0)  # a step of the fit is of one size for all columns
    entries = lives["entry_s"].to_numpy()  # statsmodels watches from that age on, not after it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            fit = PHReg(
                lives["duration_s"].to_numpy(),
                centred / spread,
                status=lives["observed"].to_numpy(),
                entry=np.nextafter(entries, np.inf) if entries.any() else None,
                ties="efron",
            ).fit(disp=0)
        except (Warning, np.linalg.LinAlgError):  # it does not end at finite ratios
            return [degenerate] * design.shape[1]
    slopes, apart = fit.params / spread, fit.bse / spread
    return _bounded(lives, centred, slopes, apart, cluster)


def _bounded(
    lives: pl.DataFrame, design: Floats, slopes: Floats, apart: Floats, asked: str
) -> list[dict[str, object]]:
    durations, entries = lives["duration_s"].to_numpy(), lives["entry_s"].to_numpy()
    scores = Scores(durations, entries, lives["observed"].to_numpy() == 1, design, slopes)
    clusters = chosen_clusters(asked, clusters_of_lives(lives, asked), scores.of_lives)
    errors, reach = apart, np.full(slopes.shape, TWO_SIDED_95)
    few = np.full(slopes.shape, clusters.few)
    p_values = np.array([math.erfc(each / math.sqrt(2)) for each in np.abs(slopes / apart)])
    if clusters.kind != NONE and not clusters.few:
        of_lives = joined(clusters.of, clusters.count, _MOST_LEFT_OUT)
        errors, freedom = clustered_errors(scores, *of_lives)
        few, freedom = freedom < _LEAST_FREEDOM, np.maximum(freedom, _LEAST_FREEDOM)
        reach, p_values = two_sided_95_between(freedom), two_sided_chance(slopes / errors, freedom)
    figures = np.exp([slopes, slopes - reach * errors, slopes + reach * errors]), p_values
    rows: list[dict[str, object]] = []
    for ratio, lower, upper, p_value, none in np.vstack([*figures, few]).T.tolist():
        own: dict[str, object] = {"cluster": clusters.kind, "n_clusters": clusters.count}
        own |= {"hazard_ratio": ratio, "hazard_ratio_reason": None}
        bounds = {"hazard_ratio_lower": lower, "hazard_ratio_upper": upper, "p_value": p_value}
        own |= {"hazard_ratio_reason": Reason.FEW_CLUSTERS.value} if none else bounds
        rows.append(own)
    return rows
