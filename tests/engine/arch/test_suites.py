"""Every architecture runs in the shared suites, or the reason why not is written down."""

import archkit
import pytest


@pytest.mark.parametrize("what", ["compiler", "samples", "hostile"])
@pytest.mark.parametrize("arch", archkit.EVERY)
def test_what_there_is_nothing_for_has_a_reason(arch: str, what: str) -> None:
    assert archkit.has(arch, what) is not ((arch, what) in archkit.WITHOUT)


def test_what_is_assembled_has_its_text() -> None:
    assert set(archkit.ASSEMBLED) == set(archkit.SEVEN)


def test_suites_run_on_somebody() -> None:
    for suite in (archkit.COMPILED, archkit.HOSTILE, archkit.JUMPING, archkit.MEASURED):
        assert suite
        assert set(suite) <= set(archkit.EVERY)
