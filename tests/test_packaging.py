"""What is installed, and what a run does not pay for."""

import subprocess
import sys
from importlib.metadata import PackagePath, distribution
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_engine_never_loads_the_screen() -> None:
    assert not {"textual", "rich"} & loaded_by("import engine.cli.trace, engine.worker")


def test_a_run_starts_without_what_it_may_not_need() -> None:
    loaded = loaded_by("import engine.cli.run")
    assert not {"capstone", "keystone", "elftools", "pydemumble"} & loaded


def test_the_wheel_holds_two_packages() -> None:
    files = distribution("kprobe-tui").files
    assert files is not None
    tops = {path.parts[0] for path in files} - {"..", "__pycache__"}
    if not any(top.endswith(".pth") for top in tops):  # else it is the checkout that is installed
        version = distribution("kprobe-tui").version
        assert tops == {"engine", "tui", f"kprobe_tui-{version}.dist-info"}
        assert not {path.parts[1] for path in files} & {"tests", "data"}
    assert PurePosixPath("tui/samples/bin/aarch64/recursion") in files


def test_what_is_installed_is_not_too_big() -> None:
    """All that `pip install kprobe-tui` brings, compiled; neither pip nor the extras."""
    wanted, found = [Requirement("kprobe-tui")], set[str]()
    while wanted:
        one = wanted.pop()
        found.add(one.name)
        for requirement in map(Requirement, distribution(one.name).requires or ()):
            marker = requirement.marker
            if not marker or any(marker.evaluate({"extra": extra}) for extra in {"", *one.extras}):
                wanted.append(requirement)
    assert {"unicorn", "textual", "rich", "linkify-it-py"} <= found
    assert "pytest" not in found
    sizes = [_size(path) for name in found for path in distribution(name).files or ()]
    assert sum(sizes) < 132_000_000


def _size(path: PackagePath) -> int:
    file = Path(str(path.locate()))
    return file.stat().st_size if file.exists() else 0
