"""Rules of the house that no linter knows, each with code that breaks it.

Where the code does not keep a rule yet, the violations are counted. The numbers are exact: they
may only be made smaller, and whoever puts something right takes it off the count.
"""

import ast
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

import pytest
from houserules import (
    Found,
    Module,
    astray,
    bare_lines,
    compiled_records,
    copied_records,
    counts,
    hidden_imports,
    modules,
    private_uses,
    repeated_classes,
    riddles,
    stubs,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

Rule = Callable[[list[Module]], Iterator[Found]]

# Tests of more than a module.
SUITES = (
    "house/*",  # the house itself
    "samples/*",  # the programs in samples/
    "test_packaging.py",
    "test_aarch64_python.py",  # the whole on another machine
    "engine/test_*.py",  # the engine as a whole against known results
    "engine/hostile/*",  # programs that mean harm
    "engine/arch/test_*.py",  # all architectures, as they are known by their records
    "engine/*/test_differential.py",  # a package against the tools or the kernel of this machine
    "engine/linux/fs/test_differential.py",
    "tui/test_flows_*.py",  # the interface as a whole, as its user and its terminal see it
    "tui/test_in_tmux.py",
    "tui/test_painting.py",
    "tui/test_readme.py",
    "tui/test_snapshots.py",
)

# What is left to be put right: violations of each rule in each package.
STUBS: dict[str, int] = {}
PRIVATE: dict[str, int] = {}
REPEATED: dict[str, int] = {}
RIDDLES: dict[str, int] = {}
BARE: dict[str, int] = {}
ASTRAY: dict[str, int] = {}
COPIED = {  # forms of files, DAP's bodies, requests taken apart, and the API's own records
    "engine": 1,
    "engine.probes": 1,
    "engine.session": 9,
    "tui.widgets": 1,
}
COMPILED = {"tui.panes": 4, "tui.widgets": 2}  # messages of Textual, whose class has a metaclass


@pytest.fixture(scope="module")
def engine() -> list[Module]:
    return modules(ROOT, "engine")


@pytest.fixture(scope="module")
def everything(engine: list[Module]) -> list[Module]:
    return engine + modules(ROOT, "tui")


def check(found: Iterable[Found], expected: dict[str, int]) -> None:
    """Compare with the count; the message says where to look."""
    listed = list(found)
    actual = counts(listed)
    wrong = {name for name in {*actual, *expected} if actual.get(name) != expected.get(name)}
    lines = [str(each) for each in listed if each.package in wrong]
    assert actual == expected, "\n".join(["", *lines, f"counted now: {actual}"])


def test_only_abstract_classes_leave_methods_to_others(everything: list[Module]) -> None:
    check(stubs(everything), STUBS)


def test_private_names_stay_in_their_module(everything: list[Module]) -> None:
    check(private_uses(everything), PRIVATE)


def test_a_class_name_means_one_thing_in_the_engine(engine: list[Module]) -> None:
    check(repeated_classes(engine), REPEATED)


def test_docstrings_say_what_things_are(everything: list[Module]) -> None:
    check(riddles(everything), RIDDLES)


def test_docstrings_describe_what_they_name(everything: list[Module]) -> None:
    check(bare_lines(everything), BARE)


def test_tests_mirror_the_code() -> None:
    check(astray(ROOT, SUITES), ASTRAY)


def test_the_top_level_holds_what_it_may() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of git's")
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    tops = {PurePosixPath(path).parts[0] for path in listed}
    assert {top for top in tops if not top.startswith(".")} == {
        *("LICENSE", "README.md", "engine", "pyproject.toml", "samples", "tests", "tui")
    }


def test_imports_are_seen_by_the_contracts(everything: list[Module]) -> None:
    found = {str(each.path) for each in hidden_imports(everything)}
    assert found == {
        "engine/arch/__init__.py",  # the list of architectures: imported when they are wanted
        "engine/cli/main.py",  # the list of subcommands: likewise
        "engine/linux/table.py",  # families of system calls: likewise
        "engine/trace/formats/__init__.py",  # output formats: likewise
        "engine/cpu/unicorn_library.py",  # Unicorn: its library and constants, without the binding
    }


def test_records_are_structs(everything: list[Module]) -> None:
    check(compiled_records(everything), COMPILED)


def test_a_record_is_not_copied_field_by_field(everything: list[Module]) -> None:
    check(copied_records(everything), COPIED)


def parsed(*texts: str) -> list[Module]:
    return [Module(PurePosixPath(f"x/m{at}.py"), ast.parse(text)) for at, text in enumerate(texts)]


FOUR = "class A:\n a: int\n b: int\n c: int\n d: int\n"
BREAKING: list[tuple[Rule, tuple[str, ...]]] = [
    (stubs, ("class A:\n def f(self): raise NotImplementedError",)),
    (stubs, ("class A(B):\n def f(self): raise NotImplementedError('later')",)),
    (stubs, ("def f():\n raise NotImplementedError",)),
    (private_uses, ("def f(x): return x._y",)),
    (private_uses, ("class A:\n _z = 1\ndef f(x): x._y = x._z",)),
    (private_uses, ("from m import _y",)),
    (private_uses, ("class A:\n def f(self): return self.b._y",)),
    (repeated_classes, ("class A: ...", "class A: ...")),
    (repeated_classes, ("class A: ...", "class B:\n class _A: ...")),
    (bare_lines, ('def f(row):\n """Do.\n\n Args:\n  row: it.\n """',)),
    (bare_lines, ('class A:\n """A thing.\n\n Attributes:\n  rows: them.\n """',)),
    (hidden_imports, ("from importlib import import_module\nimport_module('engine.cpu')",)),
    (hidden_imports, ("import importlib\nimportlib.import_module('engine.cpu')",)),
    (hidden_imports, ("__import__('engine.cpu')",)),
    (compiled_records, ("from dataclasses import dataclass",)),
    (compiled_records, ("import dataclasses",)),
    (copied_records, (f"{FOUR}def f(x): return A(x.a, x.b, x.c, d=x.d, e=1)",)),
    (copied_records, (f"{FOUR}def f(x): return A(x.y.a, x.y.b, x.y.c, x.y.d)",)),
    (riddles, ('"""What it is."""',)),
    (riddles, ('class A:\n """\n    Whether it is."""',)),
    (riddles, ('def f():\n """Where it is."""',)),
    (riddles, ('class A:\n x: int\n """How many."""',)),
    (riddles, ('def f():\n """It is done."""',)),
    (riddles, ('class A:\n """Those that are left."""',)),
]

KEEPING: list[tuple[Rule, tuple[str, ...]]] = [
    (stubs, ("class A(Protocol[T]):\n def f(self): raise NotImplementedError",)),
    (stubs, ("class A(abc.ABC):\n def f(self): raise NotImplementedError",)),
    (private_uses, ("class A:\n def f(self): return self._y, super()._z, self.__dict__",)),
    (private_uses, ("class A:\n def f(self, o): self._y = o._y",)),
    (private_uses, ("class A:\n __slots__ = ('_y',)\ndef f(x): return x._y",)),
    (private_uses, ("def f(x): return x._replace(y=1)\nfrom m import __version__",)),
    (repeated_classes, ("class A: ...", "class B: ...")),
    (hidden_imports, ("from importlib.metadata import version\nversion('x')",)),
    (copied_records, (f"{FOUR}def f(x): return A(x.a, x.b, x.c, x.other)",)),
    (copied_records, (f"{FOUR}def f(x, y): return A(x.a, x.b, y.c, y.d)",)),
    (compiled_records, ("from msgspec import Struct",)),
    (riddles, ('"""Whatever it is."""\nx = "What"', 'def f():\n """True if so."""')),
]


@pytest.mark.parametrize(("rule", "texts"), BREAKING)
def test_a_violation_is_found(rule: Rule, texts: tuple[str, ...]) -> None:
    assert len(list(rule(parsed(*texts)))) == 1


@pytest.mark.parametrize(("rule", "texts"), KEEPING)
def test_what_is_no_violation_is_not_found(rule: Rule, texts: tuple[str, ...]) -> None:
    assert not list(rule(parsed(*texts)))


def test_a_test_of_nothing_is_found(tmp_path: Path) -> None:
    for file in (
        "engine/guest/memory.py",
        "engine/cli/run.py",
        "tests/engine/guest/test_memory_limits.py",
        "tests/engine/test_guest.py",
        "tests/cli/test_run.py",
        "tests/cli/test_walk.py",
        "tests/engine/test_memory.py",
        "tests/engine/fetch/test_memory.py",
        "tests/suite/test_all.py",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    assert [str(found.path) for found in astray(tmp_path, ["suite/*"])] == [
        "tests/cli/test_walk.py",
        "tests/engine/fetch/test_memory.py",
        "tests/engine/test_memory.py",
    ]


def test_a_count_is_exact() -> None:
    found = [Found(PurePosixPath("engine/guest/memory.py"), 1, "wrong")]
    check(found, {"engine.guest": 1})
    for expected in ({}, {"engine.guest": 2}, {"engine.guest": 1, "tui": 1}):
        with pytest.raises(AssertionError):
            check(found, expected)
