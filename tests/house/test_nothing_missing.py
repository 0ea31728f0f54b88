"""The option of .ci/run: a test that would be skipped fails, unless it is listed with a reason."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from warmed import SAME_CODE

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SETTINGS = f"[pytest]\npythonpath = {CONFTEST.parent / 'support'}\n"

TESTS = {
    "test_a.py": "import pytest\ndef test_it(): pytest.skip('no gcc')\ndef test_more(): ...\n",
    "test_b.py": "import pytest\npytest.importorskip('no_such_module')\ndef test_it(): ...\n",
    "test_c.py": "import pytest\n@pytest.mark.skip(reason='later')\ndef test_it(): ...\n",
    "test_d.py": "import pytest\n@pytest.mark.xfail\ndef test_it(): assert False\n",
    "trace/test_filter_live.py": "import pytest\ndef test_it(): pytest.skip('wants"
    " KPROBE_TUI_LIVE_KERNEL')\ndef test_other(): pytest.skip('no gcc')\n",
}


def closing_line(folder: Path, *options: str) -> tuple[int, str]:
    """The exit code of a run of the tests above, and the last line."""
    shutil.copy(CONFTEST, folder)
    (folder / "pytest.ini").write_text(f"{SETTINGS}addopts = --import-mode=importlib\n")
    for name, text in TESTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--color=no", *options, str(folder)],
        cwd=folder,
        env={**environment, **SAME_CODE},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout.splitlines()[-1].partition(" in ")[0]


@pytest.mark.parametrize("processes", [(), ("-n", "1")], ids=["alone", "xdist"])
@pytest.mark.slow
def test_a_skipped_test_fails(tmp_path: Path, processes: tuple[str, ...]) -> None:
    options = ("--nothing-missing", "--continue-on-collection-errors", *processes)
    code, line = closing_line(tmp_path, *options)
    assert code == 1
    assert line == "2 failed, 1 passed, 1 skipped, 1 xfailed, 2 errors"


def test_otherwise_it_is_skipped(tmp_path: Path) -> None:
    assert closing_line(tmp_path) == (0, "1 passed, 5 skipped, 1 xfailed")


def test_the_checkout_is_not_what_was_installed(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").touch()
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    shutil.copy(CONFTEST, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--nothing-missing"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_ADDOPTS": "", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "this is not what was installed" in done.stderr
