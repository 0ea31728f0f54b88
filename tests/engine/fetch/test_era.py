"""The rules of the language by the version of the kernel."""

import pytest

from engine.fetch.era import MEASURED, Era, Version, era_of


def test_the_latest_rules_are_those_of_new_kernels() -> None:
    assert era_of((7, 3, 1)) == Era()
    assert era_of((6, 18, 0)) == MEASURED != Era()
    assert era_of((6, 19, 0)) == era_of((7, 0, 9)), "7.0 brought no rule of its own"
    assert era_of((7, 1, 0)) != era_of((7, 0, 9))


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ((6, 1, 192), set()),
        ((6, 4, 16), {"char"}),
        ((6, 5, 0), {"char", "btf", "function_events", "caret_moves", "size_after_body"}),
    ],
)
def test_rules_come_one_after_the_other(version: Version, known: set[str]) -> None:
    era = era_of(version)
    assert {rule for rule in Era.__struct_fields__ if getattr(era, rule)} == known


def test_old_words_of_errors() -> None:
    era = era_of((6, 1, 0))
    assert era.text("BAD_MAXACT_TYPE", "new words") == "Maxactive is not for kprobe"
    assert era.text("BAD_VAR", "the same words") == "the same words"
    assert era_of((6, 5, 0)).text("BAD_MAXACT_TYPE", "new words") == "new words"
    assert era_of((7, 2, 0)).text("FILE_ON_KPROBE", "new") == (
        "File offset is not available with kprobe"
    )
    assert era_of((7, 3, 0)).text("FILE_ON_KPROBE", "new") == "new"
