"""Patterns of paths, against Python's own glob."""

import glob
import os
from pathlib import Path

import pytest

from engine.session.program.file_globs import matching_paths


def entries(path: str) -> list[str]:
    return os.listdir(path) if os.path.isdir(path) else []


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    for name in ("lib/liba.so", "lib/libb.so.1", "lib/.hidden.so", "lib64/liba.so", "x[1].so"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / "link").symlink_to("lib")
    return folder


@pytest.mark.parametrize(
    "pattern",
    ["*", "lib/*", "lib*/liba.so", "*/*.so", "l?b/lib[ab].so*", "lib/.*", "no/*", "lib/liba.so/*"],
)
def test_patterns_match_what_a_shell_matches(tree: Path, pattern: str) -> None:
    whole = f"{tree}/{pattern}"
    assert sorted(matching_paths(whole, entries)) == sorted(glob.glob(whole))


def test_the_order_is_that_of_names(tree: Path) -> None:
    found = list(matching_paths(f"{tree}/l*/l*", entries))
    names = ("lib/liba.so", "lib/libb.so.1", "lib64/liba.so", "link/liba.so", "link/libb.so.1")
    assert found == [f"{tree}/{name}" for name in names]
