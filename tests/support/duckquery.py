"""Queries that DuckDB answers, of tables in files."""

from typing import Any

import duckdb


def rows(query: str) -> list[tuple[Any, ...]]:
    """All rows of the answer."""
    found = duckdb.sql(query)
    assert found is not None
    return found.fetchall()
