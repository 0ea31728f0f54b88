"""The import contracts of pyproject.toml break when they are violated: each has its controls."""

import contextlib
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter import configuration
from importlinter.application import rendering, use_cases
from importlinter.application.ports.reporting import Report

configuration.configure()

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]

FACADE = "the terminal interface knows the facade only"
CLI_FACADE = "the command line knows the facade only"
LAYERS = "layers point downwards"
LIBRARIES = "each library has its users"
PEERS = "architectures are independent of each other, and nothing depends on one"
ROOMS = "the session's rooms point downwards"
SCREEN = "the engine never reaches the screen"

NEW_ARCH = "engine/arch/pdp11"

# Contract, module, what is added to it.
CONTROLS = [
    (LAYERS, "engine/arch/base.py", "import engine.trace.ring"),
    (LAYERS, "engine/guest/memory.py", "def late():\n    from engine.linux import kernel"),
    (LAYERS, "engine/attic/__init__.py", ""),  # a package that no layer names
    (SCREEN, "engine/worker.py", "import tui.render"),
    (LIBRARIES, "engine/probes/kprobe.py", "import unicorn"),
    (LIBRARIES, "engine/cpu/ram.py", "from unicorn import Uc"),
    (LIBRARIES, "engine/session/guest/session.py", "import textual.app"),
    (LIBRARIES, "tui/render.py", "import click"),
    (LIBRARIES, "tui/render.py", "import numpy"),  # a library that no rule names
    (FACADE, "tui/render.py", "import engine.probes"),
    (FACADE, "tui/render.py", "import engine"),
    (FACADE, "tui/widgets/planted.py", "from engine.cli.main import main"),
    (
        FACADE,
        "tui/widgets/planted.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import engine.guest.memory",
    ),
    (CLI_FACADE, "engine/cli/main.py", "import engine.guest.memory"),
    (CLI_FACADE, "engine/cli/planted.py", "from engine import fetch"),
    (PEERS, "engine/arch/ia64/bundle.py", "import engine.arch.x86_64"),
    (PEERS, "engine/arch/ia64/bundle.py", "from engine.arch.x86_64.decode import decode"),
    (PEERS, "engine/arch/ia64/bundle.py", "from engine.arch import ARCHES"),
    (PEERS, "engine/arch/base.py", "import engine.arch.x86_64"),
    (PEERS, "engine/trace/planted.py", "from engine.arch.aarch64 import AARCH64"),
    (PEERS, "engine/cpu/ia64/core.py", "import engine.arch.aarch64"),
    (PEERS, f"{NEW_ARCH}/planted.py", "import engine.arch.aarch64"),
    (PEERS, "engine/image/elf.py", "import engine.arch.pdp11.facts"),
    (ROOMS, "engine/session/protocol/commands.py", "import engine.session.control"),
    (ROOMS, "engine/session/attic/__init__.py", ""),  # a package that no layer names
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code, with one more architecture in it."""
    tree = tmp_path_factory.mktemp("copy")
    for package in ("engine", "tui"):
        shutil.copytree(
            ROOT / package,
            tree / package,
            ignore=lambda _, names: {name for name in names if name == "__pycache__"},
        )
    (tree / "tests" / "support").mkdir(parents=True)
    for file in ("pyproject.toml", "tests/support/importrules.py"):
        shutil.copy(ROOT / file, tree / file)
    (tree / NEW_ARCH).mkdir()
    (tree / NEW_ARCH / "__init__.py").write_text("from engine.arch.pdp11 import facts\n")
    (tree / NEW_ARCH / "facts.py").write_text("from engine.arch import base\n")
    return tree


@contextlib.contextmanager
def imported_from(tree: Path) -> Iterator[None]:
    """Look for packages in `tree`, not where this process has found its own."""
    own = [name for name in sys.modules if name.partition(".")[0] in ("engine", "tui", "tests")]
    hidden = {name: sys.modules.pop(name) for name in own}
    path = sys.path[:]
    sys.path.insert(0, str(tree))
    try:
        yield
    finally:
        sys.path[:] = path
        sys.modules.update(hidden)


@contextlib.contextmanager
def planted(file: Path, text: str) -> Iterator[None]:
    """Add lines to a file, or make it, and its directory, for as long as this lasts."""
    before = file.read_text() if file.exists() else None
    made = None if file.parent.exists() else file.parent
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{before or ''}\n{text}\n")
    try:
        yield
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_text(before)
        if made is not None:
            shutil.rmtree(made)


def broken(tree: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the contracts that the linter finds broken in `tree`."""
    reports: list[Report] = []

    def keep(report: Report) -> None:
        reports.append(report)
        rendering.render_report(report)

    monkeypatch.setattr(use_cases, "render_report", keep)
    with imported_from(tree):
        fine = use_cases.lint_imports(
            config_filename=str(tree / "pyproject.toml"),
            cache_dir=None,
            is_debug_mode=True,
            no_logo=True,
        )
    (report,) = reports
    checks = list(report.get_contracts_and_checks())
    assert len(checks) == len(SETTINGS["contracts"])
    found = {contract.name for contract, check in checks if not check.kept}
    assert fine is not bool(found)
    return found


def test_the_code_keeps_all_contracts(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken(copy, monkeypatch) == set()


@pytest.mark.slow
@pytest.mark.parametrize(("contract", "module", "text"), CONTROLS)
def test_a_planted_import_breaks_its_contract(
    contract: str,
    module: str,
    text: str,
    copy: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with planted(copy / module, text):
        assert broken(copy, monkeypatch) == {contract}
    if text:
        dotted = module.removesuffix(".py").replace("/", ".")
        assert dotted in capsys.readouterr().out  # the culprit is named


def test_each_contract_has_a_control() -> None:
    names = [contract["name"] for contract in SETTINGS["contracts"]]
    assert sorted({contract for contract, _, _ in CONTROLS}) == sorted(names)


def allowed(name: str) -> list[str]:
    """The rules of an allow-list."""
    (rules,) = (each["allowed"] for each in SETTINGS["contracts"] if each["name"] == name)
    return list(rules)


FREE = "engine.* -> "
"""Before a library that all of the engine may use."""


def restricted() -> set[str]:
    """The libraries that only some may use."""
    rules = allowed(LIBRARIES)
    free = {rule.removeprefix(FREE) for rule in rules if rule.startswith(FREE)}
    return {rule.partition(" -> ")[2] for rule in rules} - free


@pytest.mark.slow
@pytest.mark.parametrize("library", sorted(restricted()))
def test_no_library_may_be_used_by_others(
    library: str, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with planted(copy / "engine" / "errors.py", f"import {library}"):
        assert broken(copy, monkeypatch) == {LIBRARIES}


@pytest.mark.parametrize(
    "name", [each["name"] for each in SETTINGS["contracts"] if each["type"] == "allow_list"]
)
def test_an_idle_rule_of_a_list_breaks_it(
    name: str, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = copy / "pyproject.toml"
    before = settings.read_text()
    rule = allowed(name)[0]
    text, count = re.subn(
        rf'(name = "{re.escape(name)}"\n.*?)"{re.escape(rule)}"',
        rf'\1"{rule}", "engine.nowhere -> engine.trace"',
        before,
        count=1,
        flags=re.DOTALL,
    )
    assert count == 1
    settings.write_text(text)
    try:
        assert broken(copy, monkeypatch) == {name}
    finally:
        settings.write_text(before)


def test_contracts_leave_nothing_out() -> None:
    """No exceptions, no imports that the linter does not see."""
    assert "exclude_type_checking_imports" not in SETTINGS
    assert SETTINGS["root_packages"] == ["engine", "tui"]
    for contract in SETTINGS["contracts"]:
        assert not {"ignore_imports", "exhaustive_ignores"} & set(contract), contract["name"]
