"""Names of functions: the index finds what a look at every name finds."""

from collections.abc import Sequence
from pathlib import Path

from controlkit import sample
from hypothesis import given
from hypothesis import strategies as st

from engine.image.elf import ElfImage
from engine.image.symtab import Symbol
from engine.session.browse.function_names import Named, NameSearch
from engine.session.program.libraries import ProgramFile

_IMAGE = ElfImage.open(Path(sample("x86_64", "recursion")))
_FILES = [ProgramFile(path, _IMAGE, frozenset((path,))) for path in ("/bin/p", "/lib/libc.so.6")]


def _each_looked_at(names: Sequence[Named], typed: str, library: str) -> list[Named]:
    fold = typed == typed.lower()
    exact, begins, holds = list[Named](), list[Named](), list[Named]()
    for item in names:
        name = item[0].lower() if fold else item[0]
        if library and not item[2].path.endswith(f"/{library}"):
            continue
        if name == typed:
            exact.append(item)
        elif name.startswith(typed):
            begins.append(item)
        elif typed in name:
            holds.append(item)
    size = [sorted(some, key=lambda item: (len(item[0]), item[0])) for some in (begins, holds)]
    return exact + size[0] + size[1]


_NAME = st.text(alphabet="abA_:İ", min_size=1, max_size=6)


@given(
    st.lists(st.tuples(_NAME, st.integers(0, 1)), max_size=30),
    st.text(alphabet="abA_", max_size=3),
    st.sampled_from(("", "libc.so.6")),
    st.integers(0, 20),
)
def test_it_finds_what_a_look_at_every_name_finds(
    names: list[tuple[str, int]], typed: str, library: str, limit: int
) -> None:
    symbol = Symbol("s", 0, 0, "func", "global", 1)
    listed = [(name, symbol, _FILES[file]) for name, file in names]
    asked = f"{library}:{typed}" if library else typed
    found = NameSearch(listed).find(asked, limit)
    assert found == _each_looked_at(listed, typed, library)[:limit]


def test_a_newline_is_no_name() -> None:
    assert NameSearch([]).find("a\nb", 5) == []
    assert NameSearch([]).find("", 5) == []
