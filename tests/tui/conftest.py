"""Interfaces come and go by the hundred here: what they leave behind is collected seldom."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def few_collections() -> Iterator[None]:
    """A quarter of the time would go into collections that find next to nothing."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()
