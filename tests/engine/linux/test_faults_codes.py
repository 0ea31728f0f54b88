"""The codes of faults at addresses of the engine's own windows, of which programs know nothing."""

import subprocess
from pathlib import Path

import pytest
from compiled import build
from guestrun import run

SOURCE = r"""
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
static sigjmp_buf before;
static int code;
static void seen(int number, siginfo_t *info, void *context)
{
    code = info->si_code;
    siglongjmp(before, 1);
}
int main(void)
{
    struct sigaction action = {.sa_sigaction = seen, .sa_flags = SA_SIGINFO | SA_NODEFER};
    int seen_codes[4] = {0};
    sigaction(SIGSEGV, &action, 0);
    sigaction(SIGBUS, &action, 0);
    for (unsigned long at = 0x10000; at < 0x60000000ul; at += 0x10000) {
        if (at >= 0x400000 && at < 0x600000)
            continue; /* the program itself */
        code = 0;
        if (!sigsetjmp(before, 1))
            *(volatile int *)at;
        seen_codes[code & 3]++;
    }
    printf("%d %d\n", seen_codes[1] != 0, seen_codes[2]);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("words", [["run"], ["trace", "-e", "p main"]], ids=["run", "trace"])
def test_nothing_is_mapped_there(words: list[str], tmp_path: Path) -> None:
    program = build(tmp_path, "codes", SOURCE, "-O1", "-static", "-no-pie", "-w")
    native = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert run(*words, str(program), cwd=tmp_path).out == native == "1 0\n"
