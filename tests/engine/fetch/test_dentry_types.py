"""`%pd` and `%pD` as strings."""

import pytest

from engine.errors import UnloggedError
from engine.fetch.dentry_types import DentryOffsets, dentry_words

OFFSETS = DentryOffsets(name=0x28, dentry=0x48)


@pytest.mark.parametrize(
    ("word", "changed"),
    [
        ("a=%di:%pd", "a=+0x0(+0x28(%di)):string"),
        ("a=+0(%di):%pD", "a=+0x0(+0x28(+0x48(+0(%di)))):string"),
        ("$arg1:%pD", "+0x0(+0x28(+0x48($arg1))):string"),
        ("=:%pd", "=+0x0(+0x28()):string"),
        ("a=%di:%px", "a=%di:%px"),
        ("%pd", "%pd"),
    ],
)
def test_the_word_that_is_read_instead(word: str, changed: str) -> None:
    assert dentry_words([(3, word)], OFFSETS) == [(3, changed)]


def test_room_for_all_of_them_is_limited() -> None:
    words = [(at, f"a{at}=%di:%pd") for at in range(12)]
    assert len(dentry_words(words[:9], OFFSETS)) == 9
    with pytest.raises(UnloggedError) as caught:
        dentry_words(words, OFFSETS)
    assert caught.value.errno == "ENOMEM"


def test_without_types_the_members_are_not_known() -> None:
    with pytest.raises(UnloggedError, match="struct dentry"):
        dentry_words([(2, "a=%di:%pd")], None)
