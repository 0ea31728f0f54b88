"""What is installed, and what a run does not pay for."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, files

import pytest


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_engine_never_loads_the_screen() -> None:
    assert not {"textual", "rich"} & loaded_by("import engine.cli, engine.session")


def test_a_run_starts_without_what_it_may_not_need() -> None:
    loaded = loaded_by("import engine.cli, engine.session")
    assert not {"capstone", "keystone", "elftools", "pydemumble"} & loaded


def test_the_wheel_holds_two_packages() -> None:
    try:
        installed = files("kprobe-tui")
    except PackageNotFoundError:
        pytest.skip("kprobe-tui is not installed")
    assert installed is not None
    tops = {path.parts[0] for path in installed if not str(path).startswith("..")}
    packages = {top for top in tops if not top.endswith((".dist-info", ".pth", "__pycache__"))}
    assert packages <= {"engine", "tui"}
