"""The coarse clocks stand between two ticks, as with CONFIG_HZ=250 on Linux."""

from pathlib import Path

from compiled import build
from guestrun import run

SOURCE = """
#include <stdio.h>
#include <time.h>
int main(void) {
    struct timespec r, a, b;
    for (int c = 5; c <= 6; c++) {
        int wrong = 0, changes = 0;
        long last = -1;
        clock_getres(c, &r);
        for (int i = 0; i < 2000; i++) {
            clock_gettime(c, &a);
            clock_gettime(c - 5, &b);
            long behind = (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec;
            wrong += behind < 0 || behind > 2 * r.tv_nsec;
            changes += a.tv_nsec != last;
            last = a.tv_nsec;
        }
        printf("%ld %d %d\\n", r.tv_nsec, wrong, changes < 1000);
    }
    clock_getres(0, &r);
    printf("%ld\\n", r.tv_nsec);
    return 0;
}
"""


def test_coarse_clocks_have_the_resolution_of_a_tick(tmp_path: Path) -> None:
    program = build(tmp_path, "coarse", SOURCE, "-O1")
    done = run("run", str(program), cwd=tmp_path)
    assert done.out == "4000000 0 1\n4000000 0 1\n1\n"
