"""What a ring of a guest's may keep waiting has a bound."""

from pathlib import Path

import pytest
from compiled import build
from sessionkit import loaded

from engine.linux import uringrequests

_POLLS = r"""
#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    struct io_uring_params params = { 0 };
    int ends[2], ring = syscall(__NR_io_uring_setup, 64, &params);
    char *queue = mmap(0, params.sq_off.array + 256, 3, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries = mmap(0, 4096, 3, MAP_SHARED, ring, IORING_OFF_SQES);
    unsigned *tail = (void *) (queue + params.sq_off.tail);
    unsigned *array = (void *) (queue + params.sq_off.array);
    long all = 0;
    pipe(ends);
    for (int round = 0; round < 20; round++) {
        for (unsigned at = 0; at < 64; at++) {
            memset(entries + at, 0, 64);
            entries[at].opcode = IORING_OP_POLL_ADD;
            entries[at].fd = ends[0];
            entries[at].poll32_events = 1;
            array[*tail & 63] = at;
            ++*tail;
        }
        long taken = syscall(__NR_io_uring_enter, ring, 64, 0, 0, 0, 0);
        if (taken < 0) {
            printf("%ld %s\n", all, strerror(errno));
            write(ends[1], "x", 1);
            syscall(__NR_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, 0, 0);
            taken = syscall(__NR_io_uring_enter, ring, 64, 0, 0, 0, 0);
            printf("%ld\n", taken);
            return 0;
        }
        all += taken;
    }
    return 1;
}
"""


def test_requests_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uringrequests, "_MOST", 200)
    program = build(tmp_path, "polls", _POLLS, "-static")
    with loaded(program) as guest:
        assert guest.run().exit_code == 0
    assert guest.out == "200 Resource temporarily unavailable\n64\n"
