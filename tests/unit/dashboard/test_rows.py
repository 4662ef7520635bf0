"""The table whose rows open: what its script gets, and which row was opened."""

from __future__ import annotations

from toolkit.dashboard.rows import RowColumn


def test_a_number_that_is_not_known_is_a_dash_and_sorts_as_nothing():
    data = RowColumn("bps", "number", [12.25, None], digits=2).data
    assert data["shown"] == ["12.25", "–"]
    assert data["values"] == [12.25, None]
    assert data["className"] == "number"


def test_a_number_is_sent_as_fine_as_it_is_told_from_others_in_the_order():
    assert RowColumn("bps", "number", [1.23456, None]).data["values"] == [1.235, None]
    lasted = RowColumn("lasted", "number", [1.23456], shown=["1 s"]).data
    assert lasted["values"] == [1.23456]


def test_what_rounds_to_zero_has_no_sign():
    assert RowColumn("bps", "number", [-0.04, -0.06]).texts == ["0.0", "-0.1"]


def test_a_line_says_in_words_what_it_draws():
    column = RowColumn("24 h", "line", [[None, 2.0, -1.0], [1.0], None], narrow=False)
    few = "fewer than two values are held"
    assert column.texts == ["from 2.0 to -1.0, lowest -1.0, highest 2.0", few, few]
    assert column.data["className"] == "narrow-out"


def test_texts_of_others_are_plain():
    data = RowColumn("symbol", "text", ["A\u202e\nB"], titles=["x\x1b[31m"]).data
    assert data["shown"] == ["A� B"]
    assert data["titles"] == ["x�[31m"]


def test_an_age_has_the_limits_from_which_the_browser_colours_it():
    data = RowColumn("age", "age", [90, None], limits=[(300, 900), (None, None)]).data
    assert data["shown"] == ["1 min 30 s", "–"]
    assert data["values"] == [90, None]
    assert data["limits"] == [(300, 900), (None, None)]
    assert data["className"] == "number age"
