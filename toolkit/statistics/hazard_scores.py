"""Errors of the regression of Cox whose lives come in clusters, from the scores of these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from toolkit.statistics.clusters import Floats, Integers


@dataclass(frozen=True)
class Scores:
    """What each life adds to the score and to the information of a fitted regression.

    ``design`` has a row per life and a column per slope. A life is watched after its entry, to its
    duration. Ties are taken as by Breslow: of slopes that were fitted with another rule the scores
    sum up to nearly 0.

    >>> durations = np.array([1.0, 2.0, 3.0])
    >>> fitted = Scores(durations, np.zeros(3), np.ones(3, bool), np.eye(3)[:, :1], np.zeros(1))
    >>> fitted.of_lives.ravel().round(3).tolist()
    [0.444, 0.111, 0.111]
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
        """The first age at which each life is watched, and the first after it."""
        begun = np.searchsorted(self._ages, self.entries, side="right")
        over = np.searchsorted(self._ages, self.durations, side="right")
        return np.minimum(np.where(self.entries > 0, begun, 0), over), over

    @cached_property
    def _risk(self) -> Floats:
        return np.exp(self.design @ self.slopes)

    def _watched(self, each: Floats) -> Floats:
        """Sum over those watched at each age, of values or of rows of values."""
        begun, over = self._places
        change = np.zeros((self._ages.size + 1, *each.shape[1:]))
        np.add.at(change, begun, each)
        np.add.at(change, over, -each)
        return np.cumsum(change, axis=0)[:-1]

    @cached_property
    def _at_ages(self) -> tuple[Floats, Floats]:
        """The hazard at each age, and the mean of the design among those watched."""
        total = self._watched(self._risk)
        mean = self._watched(self._risk[:, None] * self.design) / total[:, None]
        ends = np.bincount(self._places[1][self.ended] - 1, minlength=self._ages.size)
        return ends / total, mean

    @cached_property
    def _expected(self) -> tuple[Floats, Floats]:
        """The sums of the hazard, and of hazard times mean, over the ages of each life."""
        hazard, mean = self._at_ages
        begun, over = self._places
        sums = np.cumsum(np.column_stack([hazard, hazard[:, None] * mean]), axis=0)
        sums = np.vstack([np.zeros(sums.shape[1]), sums])
        own = self._risk[:, None] * (sums[over] - sums[begun])
        return own[:, :1], own[:, 1:]

    @cached_property
    def of_lives(self) -> Floats:
        """The score of each life: a row per life, a column per slope."""
        hazards, means = self._expected
        own = np.zeros(self.design.shape)
        at = self._places[1][self.ended] - 1
        own[self.ended] = self.design[self.ended] - self._at_ages[1][at]
        return own - (self.design * hazards - means)

    def information(self, some: np.ndarray) -> Floats:
        """Return what some lives add to the information: all lives add up to all of it."""
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
    """Return the errors of slopes whose lives come in clusters, and their degrees of freedom.

    The sandwich of Lin and Wei (1989), with the jackknife's correction for few clusters: the change
    of the slopes without a cluster, by one step of Newton among the lives of the others (Lipsitz
    and Parzen 1996, CR3 of Bell and McCaffrey 2002). The freedom is Satterthwaite's of what each
    cluster adds to the information, less 1: few where few clusters tell most about a slope.
    """
    whole = scores.of_lives.sum(axis=0)  # nearly 0
    moved, parts = [], []
    for each in range(count):
        others = of != each
        left = Scores(
            scores.durations[others],
            scores.entries[others],
            scores.ended[others],
            scores.design[others],
            scores.slopes,
        )
        kept = left.information(np.ones(others.sum(), dtype=bool))
        change = left.of_lives.sum(axis=0) - whole
        moved.append(np.linalg.pinv(kept, hermitian=True) @ change)
        parts.append(scores.information(~others))
    errors = np.sqrt((count - 1) / count * np.square(moved).sum(axis=0))
    inverse = np.linalg.pinv(np.sum(parts, axis=0), hermitian=True)
    added = np.einsum("ij,cjk,ki->ci", inverse, np.array(parts), inverse)
    return errors, np.square(added.sum(axis=0)) / np.square(added).sum(axis=0) - 1
