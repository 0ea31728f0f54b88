"""The fuzzy search: what fits is what Textual's own search finds, and comes in its order."""

import random

import pytest
from textual.fuzzy import FuzzySearch

from tui.command_line import COMMANDS
from tui.fuzzy import Prepared, match
from tui.keymap import ACTIONS

_TEXTS = [action.help for action in ACTIONS] + [spec.help for spec in COMMANDS]


def _score(wanted: str, text: str) -> float:
    found = match(wanted, Prepared.of(text))
    return 0.0 if found is None else found.score


@pytest.mark.parametrize("seed", range(5))
def test_the_same_texts_fit(seed: int) -> None:
    chance = random.Random(seed)
    theirs = FuzzySearch()
    for _ in range(200):
        text = chance.choice(_TEXTS)
        letters = sorted(chance.sample(range(len(text)), min(4, len(text))))
        wanted = "".join(text[at] for at in letters).lower()
        if chance.random() < 0.3:
            wanted = wanted[::-1]
        score, _ = theirs.match(wanted, text)
        found = match(wanted, Prepared.of(text))
        assert (found is not None) == (score > 0), (wanted, text)
        if found is not None:
            assert "".join(text[at] for at in found.at).lower() == wanted
            assert list(found.at) == sorted(set(found.at))
            assert found.score <= score
            assert wanted not in text.lower() or found.score == score


def test_one_piece_comes_first_and_beginnings_of_words_next() -> None:
    texts = ["to the cursor", "run to cursor", "runtime curse", "rather cured"]
    order = sorted(texts, key=lambda text: -_score("run to", text))
    assert order[0] == "run to cursor"
    assert _score("rtc", "run to cursor") > _score("rtc", "runtime curse")
    found = match("rtc", Prepared.of("run to cursor"))
    assert found is not None
    assert found.at == (0, 4, 7)
    assert found.stretches == [(0, 1), (4, 5), (7, 8)]
    assert match("xyz", Prepared.of("run to cursor")) is None


def test_many_ways_to_find_the_letters_cost_no_more() -> None:
    found = match("ab" * 40 + "c", Prepared.of("ab" * 400 + "xc"))
    assert found is not None
    assert match("ab" * 40 + "z", Prepared.of("ab" * 400)) is None
