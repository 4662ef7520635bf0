"""How many events share a bucket of time where they open apart from each other."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

_SEED = 20_261_123
_CELLS = 1_000_000
_MOST_TABLED = 256
_MOST_A_BUCKET = 8  # of more events a bucket it is sooner done to draw the count of each bucket
_ROWS = 16

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Waves = npt.NDArray[np.complex128]


def drawn_squares(events: Counts, places: Counts, draws: int) -> Counts:
    """Put the events of each hour into its buckets at random, and sum the squares of their counts.

    ``events`` are the events of each hour, and ``places`` its buckets, each of which has an equal
    chance. There is one sum per draw. An hour of at most 256 events and at most eight a bucket is
    drawn from the chances of its sums, by one random number. Elsewhere each event is put into a
    bucket. The seed is of the events, so that groups are drawn apart from each other.

    >>> drawn_squares(np.array([3, 1]), np.array([1, 5]), 2).tolist()
    [10, 10]
    """
    rng = np.random.default_rng([_SEED, *events.tolist()])
    alone = (events < 2) | (places < 2)
    drawn = np.full(draws, (events[alone] ** 2).sum())
    tabled = ~alone & (events <= np.minimum(_MOST_TABLED, _MOST_A_BUCKET * places))
    hours = np.stack([events[tabled], places[tabled]])
    hours, times = np.unique(hours, axis=1, return_counts=True)
    for count, each, like in zip(*hours.tolist(), times.tolist(), strict=True):
        chance = pairs_chance(count // _ROWS, each)[count % _ROWS]
        pairs = np.searchsorted(chance, rng.random((like, draws)), side="right")
        drawn += like * count + 2 * pairs.sum(axis=0)
    others = ~alone & ~tabled
    for count, each in zip(events[others].tolist(), places[others].tolist(), strict=True):
        drawn += _squares(rng, count, each, draws)
    return drawn


@lru_cache(maxsize=32)
def pairs_chance(sixteen: int, places: int) -> Floats:
    """Return the chance that at most so many pairs of events are in one bucket together.

    There is a row for each of 16 numbers of events, from 16 times ``sixteen`` on, and a column for
    each number of pairs. The chances are right to 1e-12. The last column is 1 as far as a random
    number can tell.

    Where the number of events is random, Poisson and near to those of the rows, the buckets do not
    depend on each other. So the generating function of events and pairs is that of one bucket to
    the power of their number. Its value on a circle gives the characteristic function of the pairs
    for each number of events, and that their chances (Flajolet and Sedgewick, Analytic
    Combinatorics, VIII).

    >>> pairs_chance(0, 4)[2, :2].round(12).tolist()
    [0.75, 1.0]
    """
    number = np.arange(sixteen * _ROWS, (sixteen + 1) * _ROWS)
    rate, most = float(number[0] + _ROWS / 2), int(number[-1])
    mean = most * (most - 1) / 2 / places
    size = 64 + 64 * round((mean + 20 * mean**0.5 + 64) / 64)
    held = np.arange(most + 1)
    logarithms = np.cumsum(np.log(np.maximum(held, 1)))  # of factorials
    chance = np.exp(held * np.log(rate / places) - rate / places - logarithms)
    held, chance = held[chance > 1e-20], chance[chance > 1e-20]
    events = _waves(held, 2 * most + 64)
    pairs = _waves(held * (held - 1) // 2, size)[: size // 2 + 1]
    found = np.fft.ifft(((events * chance) @ pairs.T) ** places, axis=0)[number]
    found /= np.exp(number * np.log(rate) - rate - logarithms[number])[:, None]
    return np.asarray(np.fft.irfft(found, size, axis=1).cumsum(axis=1))


def _waves(number: Counts, size: int) -> Waves:
    """Return the powers of each root of unity."""
    turns = np.outer(np.arange(size), number) % size
    return np.asarray(np.exp(-2j * np.pi * turns / size))


def _squares(rng: np.random.Generator, count: int, places: int, draws: int) -> Counts:
    """Put events into buckets of equal chance, and sum the squares of the counts of each draw."""
    # an event takes about an eighth of the time of a bucket
    if count > min(8 * places, max(places, _CELLS // draws)):
        held = rng.multinomial(count, np.full(places, 1 / places), size=draws)
    else:
        at = rng.integers(0, places, (draws, count)) + places * np.arange(draws)[:, None]
        held = np.bincount(at.ravel(), minlength=places * draws).reshape(draws, places)
    return np.asarray((held * held).sum(axis=1), np.int64)
