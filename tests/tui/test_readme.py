"""The interface does what README and the handbook say of it."""

from pathlib import Path

from pictures import SCENES, key_table
from sysroot import CHECKOUT

from engine.chapters import load_chapter

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_keys_is_the_keymap() -> None:
    table = "\n".join(key_table())
    assert table in load_chapter("keys").text, (
        "python tests/support/pictures.py keys prints the table"
    )


def test_its_pictures_are_there() -> None:
    for name in SCENES:
        path = f"tests/data/pictures/{name}.svg"
        assert path in README
        assert Path(CHECKOUT, path).read_text(encoding="utf-8").startswith("<svg")
