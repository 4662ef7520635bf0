from __future__ import annotations

import pytest
from scipy import stats

from toolkit.errors import InputError
from toolkit.statistics.numeric.tails import two_sided_95


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 12, 51, 400])
def test_the_point_is_that_of_scipy(freedom):
    assert two_sided_95(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-12)


def test_no_freedom_is_refused():
    with pytest.raises(InputError, match="freedom"):
        two_sided_95(0)
