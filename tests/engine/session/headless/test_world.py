"""The description of the guest's world, which is made by asking guests."""

import pytest

from engine.linux.limits import LIMITS
from engine.session.headless.world import WorldChapter, describe_world


@pytest.fixture(scope="module")
def chapters() -> dict[str, WorldChapter]:
    return {chapter.title: chapter for chapter in describe_world()}


def test_every_chapter_says_something(chapters: dict[str, WorldChapter]) -> None:
    assert all(row.words for chapter in chapters.values() for row in chapter.rows)
    assert {"The machine", "prctl", "ptrace", "io_uring", "families of sockets"} <= chapters.keys()


def test_each_architecture_has_its_missing_calls(chapters: dict[str, WorldChapter]) -> None:
    missing = {
        row.label: row.words for row in chapters["System calls that are missing (ENOSYS)"].rows
    }
    assert list(missing) == ["x86_64", "aarch64", "riscv64", "ia64"]
    assert "execve" in missing["ia64"]
    assert "execve" not in missing["x86_64"]


def test_limits_are_all_told(chapters: dict[str, WorldChapter]) -> None:
    rows = {row.label: row.words for row in chapters["Limits (RLIMIT_*: soft, hard)"].rows}
    assert rows.keys() == {*LIMITS}
    assert rows["stack"] == ("8388608, unlimited",)


def test_what_an_architecture_alone_has_is_under_its_name(
    chapters: dict[str, WorldChapter],
) -> None:
    served = next(chapter for title, chapter in chapters.items() if "carried out" in title)
    rows = {row.label: row.words for row in served.rows}
    assert rows["only x86_64"] == ("arch_prctl",)
    assert "riscv_hwprobe" in rows["only riscv64"]
    assert "openat" in rows["files"]
