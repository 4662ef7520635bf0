"""Bands by drawing clusters again: held to repeating values one by one, and to known centres."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.statistics.events.cluster_bootstrap import cluster_band
from toolkit.statistics.numeric.student import two_sided_95


def drawn_one_by_one(clusters, values, figure):
    """Repeat the values of each cluster as often as a draw has it, and take the figure."""
    _, cluster = np.unique(clusters, return_inverse=True)
    count = cluster.max() + 1
    draws = np.random.default_rng(20_261_123).multinomial(count, np.full(count, 1 / count), 999)
    figures = [figure(np.repeat(values, draw[cluster])) for draw in draws]
    half = two_sided_95(count - 1) * np.sqrt(count / (count - 1)) * np.std(figures)
    return figure(values) - half, figure(values) + half


@pytest.mark.parametrize("seed", range(4))
def test_bands_are_those_of_values_repeated_one_by_one(seed):
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, 25, 160)
    values = np.round(rng.standard_t(3, 160), seed)  # with ties
    found = cluster_band(clusters, values)
    assert found is not None
    np.testing.assert_allclose(found.mean, drawn_one_by_one(clusters, values, np.mean), rtol=1e-12)
    np.testing.assert_allclose(
        found.median, drawn_one_by_one(clusters, values, np.median), rtol=1e-9, atol=1e-12
    )


def test_the_order_of_values_and_the_names_of_clusters_change_nothing():
    rng = np.random.default_rng(8)
    clusters, values = rng.integers(0, 30, 200), rng.normal(size=200)
    order = rng.permutation(200)
    first, second = cluster_band(clusters, values), cluster_band(5 * clusters[order], values[order])
    assert first is not None
    assert second is not None
    np.testing.assert_allclose(first.mean, second.mean, rtol=1e-12)
    assert first.median == pytest.approx(second.median, rel=1e-12)


def test_too_few_values_or_clusters_have_no_band():
    assert cluster_band(np.arange(19), np.ones(19)) is None
    assert cluster_band(np.arange(200) % 9, np.ones(200)) is None
    assert cluster_band(np.zeros(0, dtype=np.int64), np.zeros(0)) is None


def test_many_clusters_are_drawn_in_groups_of_neighbours():
    values = np.random.default_rng(2).normal(size=3_000)
    found = cluster_band(np.arange(3_000), values)
    assert found is not None
    error = values.std() / np.sqrt(3_000)
    assert (found.mean[1] - found.mean[0]) / (2 * 1.966 * error) == pytest.approx(1, abs=0.12)


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [12, 25])
def test_bands_hold_the_centre_as_often_as_they_say_where_clusters_move_together(clusters):
    rng = np.random.default_rng(clusters)
    held = np.zeros(2)
    for _ in range(1_000):
        cluster = np.repeat(np.arange(clusters), rng.integers(1, 8, clusters))
        values = rng.normal(size=clusters)[cluster] + rng.standard_t(4, cluster.size)
        found = cluster_band(cluster, values)
        if found is None:
            held += 0.95  # less than 20 values
            continue
        held += [low <= 0 <= high for low, high in (found.mean, found.median)]
    assert 0.93 <= held[0] / 1_000 <= 0.97
    assert 0.92 <= held[1] / 1_000 <= 0.98
