"""What of the host's standard streams reaches a guest, and that all of it can be recorded."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from compiled import build

from engine.session import GuestConfig, Session

STREAMS = r"""
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
    struct stat st;
    struct timespec now;
    char line[64];
    clock_gettime(CLOCK_REALTIME, &now);
    fstat(0, &st);
    ssize_t got = read(0, line, 5);
    long here = lseek(0, 0, SEEK_CUR), end = lseek(0, -2, SEEK_END);
    dprintf(1, "%o %d:%d %ld %d, %ld of %ld, read %.*s\n", st.st_mode, st.st_uid, st.st_gid,
            (long)st.st_size, st.st_mtim.tv_sec < now.tv_sec, here, end, (int)got, line);
    return 0;
}
"""
TOLD = "100644 1000:1000 11 1, 5 of 9, read hello\n"


@contextmanager
def standard_streams(source: Path, out: Path) -> Iterator[None]:
    """Standard input and output of this very process, redirected."""
    kept = [os.dup(fd) for fd in (0, 1)]
    files = [os.open(source, os.O_RDONLY), os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)]
    try:
        for fd, file in enumerate(files):
            os.dup2(file, fd)
        yield
    finally:
        for fd, file in enumerate(kept):
            os.dup2(file, fd)
        for file in (*files, *kept):
            os.close(file)


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    (tmp_path / "source").write_text("hello world")
    return build(tmp_path, "streams", STREAMS, "-static")


def _run(guest: Path, recorded: list[tuple[str, bytes]], answers: dict[str, bytes]) -> str:
    def take(source: str, data: bytes) -> bytes:
        recorded.append((source, data))
        return answers.get(source, data)

    folder = guest.parent
    with standard_streams(folder / "source", folder / "out"):
        session = Session(GuestConfig(str(guest), isolated=True))
        session.hooks.host_input = take
        try:
            session.run()
        finally:
            session.close()
    return (folder / "out").read_text()


@pytest.mark.parametrize("mode", [0o600, 0o777])
def test_a_redirected_file_looks_the_same_whoever_owns_it(guest: Path, mode: int) -> None:
    (guest.parent / "source").chmod(mode)
    assert _run(guest, [], {}) == TOLD


def test_every_answer_of_the_streams_passes_the_hook(guest: Path) -> None:
    recorded: list[tuple[str, bytes]] = []
    assert _run(guest, recorded, {}) == TOLD
    assert {source for source, _ in recorded} >= {"stat", "read", "seek", "write"}
    assert b"hello" in dict(recorded)["read"]
    other = {"seek": (77).to_bytes(8, "little"), "read": b"other"}
    assert _run(guest, [], other) == TOLD.replace("5 of 9, read hello", "77 of 77, read other")


def test_a_pipe_has_no_position(guest: Path) -> None:
    (guest.parent / "source").unlink()
    os.mkfifo(guest.parent / "source")
    keep = os.open(guest.parent / "source", os.O_RDWR)
    os.write(keep, b"piped data")
    try:
        assert ", -1 of -1, read piped" in _run(guest, [], {})
    finally:
        os.close(keep)
