"""docs/store.md has every table and column of the store, as toolkit/tables.csv has them."""

from __future__ import annotations

from toolkit.store.reading.views import VIEWS
from toolkit.tables import TABLES

from .store_page import PAGE, store_page


def test_the_page_of_the_store_is_the_one_made_from_its_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == store_page(), "run `make docs`"


def test_every_table_and_column_has_a_line_that_explains_it() -> None:
    page = store_page()
    for table in TABLES:
        assert f"\n## {table.name}\n" in page
    for view in VIEWS:
        assert f"\n### {view.name}\n" in page
    for table in (*TABLES, *VIEWS):
        assert table.meaning
        for column in table.columns:
            assert f"| `{column.name}` | {column.type} | {column.unit} | " in page
            assert column.meaning
