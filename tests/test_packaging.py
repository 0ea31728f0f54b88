"""What is installed, and what a run does not pay for."""

import os
import subprocess
import sys
import sysconfig
from importlib.metadata import PackagePath, distribution
from pathlib import Path, PurePosixPath

import pytest
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


def test_the_wheel_holds_two_packages_and_the_commands_name() -> None:
    files = distribution("kprobe-tui").files
    assert files is not None
    tops = {path.parts[0] for path in files} - {"..", "__pycache__"}
    if not any(top.endswith(".pth") for top in tops):  # else it is the checkout that is installed
        version = distribution("kprobe-tui").version
        assert tops == {"engine", "tui", "kprobe_tui", f"kprobe_tui-{version}.dist-info"}
        assert not {path.parts[1] for path in files} & {"tests", "data"}
        assert PurePosixPath("engine/machine/agent.elf") in files
    assert PurePosixPath("kprobe_tui/__main__.py") in files
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
    assert sum(sizes) < 144_000_000


def _size(path: PackagePath) -> int:
    file = Path(str(path.locate()))
    return file.stat().st_size if file.exists() else 0


# Files and folders called engine, where Python may find them before ours.
STRANGERS = ("engine/__init__.py", "engine.py")
SCRIPT = f"{sysconfig.get_path('scripts')}/kprobe-tui"


def started(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
        check=False,
    )


def strange(folder: Path, name: str) -> Path:
    """A stranger's file, which says so when it is imported."""
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("print('a stranger')\n")
    return file


@pytest.mark.parametrize("stranger", STRANGERS)
def test_the_current_directory_shadows_nothing(stranger: str, tmp_path: Path) -> None:
    strange(tmp_path, stranger)
    for words in (("-m", "tui"), ("-P", "-m", "tui"), ("-m", "kprobe_tui"), (SCRIPT,)):
        done = started(*words, "disasm", "--raw", "--arch", "x86_64", "/dev/null", cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_name_of_the_command_is_shadowed_by_no_tui(tmp_path: Path) -> None:
    strange(tmp_path, "tui/__init__.py")
    done = started("-m", "kprobe_tui", "--version", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("kprobe-tui, version ")


def test_workers_of_a_sweep_are_not_shadowed(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="sweep needs pyarrow")
    strange(tmp_path, "engine.py")
    guest = Path(__file__).parents[1] / "samples" / "bin" / "x86_64" / "recursion"
    plan = f"[matrix]\nguest = '{guest}'\n[options]\nf = 'main'\n"
    (tmp_path / "s.toml").write_text(plan)
    done = started("-m", "tui", "sweep", "--jobs", "2", "s.toml", cwd=tmp_path)
    assert done.stdout == "1 cells: 1 passed\n", done.stderr


@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_shadows_the_engine_is_named(stranger: str, tmp_path: Path) -> None:
    file = strange(tmp_path, stranger)
    for words in (("-m", "tui"), (SCRIPT,)):
        done = started(*words, "--help", cwd=tmp_path.parent, PYTHONPATH=str(tmp_path))
        assert (done.returncode, done.stdout) == (2, "")
        first, hint = done.stderr.splitlines()
        assert first.startswith(f"kprobe-tui: {file} is in the way: ")
        assert "PYTHONPATH" in hint


def test_a_folder_without_a_package_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    done = started("-m", "tui", "--help", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("machine", ["aarch64", "x86_64"])
def test_keystone_is_wanted_where_it_has_wheels(machine: str) -> None:
    (wanted,) = (
        one
        for one in map(Requirement, distribution("kprobe-tui").requires or ())
        if one.name == "keystone-engine" and "extra" not in str(one.marker)
    )
    assert wanted.marker is not None
    host = {"platform_machine": machine, "sys_platform": "linux"}
    assert wanted.marker.evaluate(host) == (machine == "x86_64")


def test_a_sweep_explains_itself_without_pyarrow(tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError\n")
    shown = started("-m", "tui", "sweep", "--help", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert (shown.returncode, shown.stderr) == (0, "")
    done = started("-m", "tui", "sweep", "no.toml", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.endswith("pip install 'kprobe-tui[columns]'\n")
