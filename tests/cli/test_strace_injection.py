"""`kprobe-tui strace -e inject=` and `-e fault=`: against strace itself, and bad expressions."""

import re
import shutil
import subprocess
from pathlib import Path

import archkit
import pytest
from compiled import build
from guestrun import run
from sysroot import CHECKOUT

from engine.errors import CommandError
from engine.session.tracing.call_choice import SyscallChoice

SAMPLES = CHECKOUT / "samples" / "bin"
CALLS = r"""
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile int got;
static void heard(int number) { got += number; }
static void *body(void *at)
{
    for (int i = 0; i < 3; i++) printf("%ld ", syscall(SYS_getppid) >= 0 ? 1 : (long)errno);
    return at;
}
int main(void)
{
    signal(SIGUSR1, heard);
    for (int i = 0; i < 6; i++) {
        errno = 0;
        int fd = open("/dev/null", O_RDONLY);
        long user = syscall(SYS_getuid) < 0;
        printf("%d %d %ld %d\n", fd, errno, user, got);
        if (fd > 2) close(fd);
    }
    body(0);
    pthread_t t;
    pthread_create(&t, 0, body, 0);
    pthread_join(t, 0);
    fflush(stdout);
    return 0;
}
"""
EXPRESSIONS = (
    "fault=openat",
    "fault=openat:error=EMFILE:when=3",
    "fault=openat,close:error=EACCES:when=2+2",
    "fault=getppid:error=5:when=2",
    "inject=openat:error=13:when=2..4",
    "inject=openat:retval=0x29:when=6",
    "inject=close:retval=0:when=1+",
    "inject=getuid:signal=USR1:when=2+3",
    "inject=getuid:signal=SIGUSR1:error=EPERM",
    "inject=getuid:retval=7:signal=10:when=4",
    "inject=/^get.*id$:error=ENOSYS:when=1..2",
    "inject=%file:error=ELOOP:when=5",
    "inject=getuid:delay_enter=10:when=1",
    "inject=getppid:delay_exit=1ms:retval=3",
    "fault=!openat,execve,mmap,mprotect,brk,arch_prctl,write,rt_sigaction,rt_sigreturn,"
    "clone3,futex,exit,exit_group,rt_sigprocmask,munmap,madvise,newfstatat:error=EBADF:when=1",
)
MASKED = re.compile(r"0x[0-9a-f]+|\b\d{3,}\b|\bclone3?\(.*|(?<== )\d+(?= .DELAYED|$)")


def lines(text: str) -> list[str]:
    """The lines about calls that are the same in any run, but for addresses and ids."""
    wanted = re.findall(r"(?:openat|close|getuid|getppid|--- SIG).*", text)
    return [MASKED.sub("*", line) for line in wanted if "/etc/ld" not in line]


@pytest.mark.slow
def test_calls_are_tampered_with_as_strace_does(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    guest = str(build(tmp_path, "calls", CALLS, "-O1", "-static", "-pthread"))
    for each in EXPRESSIONS:
        words = ("-f", "-e", "trace=openat,close,getuid,getppid", "-e", each)
        command = [strace, *words, "-o", "theirs", guest]
        theirs = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        ours = run("strace", *words, "-o", "ours", guest, cwd=tmp_path)
        assert (ours.out, ours.code) == (
            theirs.stdout.replace(" 1000 ", " "),
            theirs.returncode,
        ), each
        found, wanted = ((tmp_path / name).read_text() for name in ("ours", "theirs"))
        assert lines(found) == lines(wanted), each
        assert "INJECTED" in found or "DELAYED" in found or "SIGUSR1" in found


@pytest.mark.parametrize("arch", archkit.COMPILED)
def test_each_architecture_sees_the_error(tmp_path: Path, arch: str) -> None:
    guest = str(SAMPLES / arch / "recursion")
    done = run(
        "strace", "-e", "trace=write", "-e", "fault=write:error=ENOSPC:when=2", guest, cwd=tmp_path
    )
    assert done.out.count("\n") == 2
    assert re.search(
        r"^write\(1, .* = -1 ENOSPC \(No space left on device\) \(INJECTED\)$", done.err, re.M
    )


def test_time_passes_and_calls_that_are_not_shown_are_meant_too(tmp_path: Path) -> None:
    guest = str(SAMPLES / "x86_64" / "recursion")
    words = ("-ttt", "-e", "trace=write", "-e", "inject=write:delay_exit=3s:when=1")
    done = run("strace", *words, guest, cwd=tmp_path)
    times = re.findall(r"^(\d+\.\d+) write", done.err, re.MULTILINE)
    assert 3 <= float(times[1]) - float(times[0]) < 3.1
    hidden = run("strace", "-e", "trace=none", "-e", "fault=write", guest, cwd=tmp_path)
    assert hidden.out == ""


BAD = (
    ("inject=nosuch:error=EIO", "invalid system call 'nosuch'"),
    ("inject=", "invalid system call ''"),
    ("inject=write", "what is to happen? error=ERRNO"),
    ("inject=write:when=2", "what is to happen?"),
    ("inject=write:", "'' is none of error="),
    ("inject=write:error", "'error' is none of"),
    ("inject=write:error=", "'' is no error"),
    ("inject=write:error=EFOO", "'EFOO' is no error: ENOENT, or 1 to 4095"),
    ("inject=write:error=0", "'0' is no error"),
    ("inject=write:error=4096", "'4096' is no error"),
    ("inject=write:error=errorcode", "'errorcode' is no error"),
    ("inject=write:retval=x", "'x' is no 64-bit number"),
    ("inject=write:retval=0x10000000000000000", "is no 64-bit number"),
    ("inject=write:error=EIO:retval=2", "error= and retval=: one of them"),
    ("inject=write:error=EIO:error=EIO", "error= is there twice"),
    ("inject=write:signal=FOO", "'FOO' is no signal"),
    ("inject=write:signal=65", "'65' is no signal"),
    ("inject=write:delay_enter=-1", "'-1' is no time"),
    ("inject=write:delay_exit=99999999999999999999", "is no time"),
    ("inject=write:retval=1:when=0", "when=0 is not of the form"),
    ("inject=write:retval=1:when=65536", "when=65536 is not of the form"),
    ("inject=write:retval=1:when=5..2", "when=5..2 is not of the form"),
    ("inject=write:retval=1:when=1+0", "when=1+0 is not of the form"),
    ("inject=write:retval=1:when=", "when= is not of the form"),
    ("inject=write:syscall=getpid", "another call in its place is not made here"),
    ("inject=write:poke_exit=@arg1=00", "memory is not changed here"),
    ("fault=write:retval=2", "'retval=2' is none of error=, when="),
    ("fault=write:error=EIO:signal=HUP", "is none of error=, when="),
    ("injekt=write:error=EIO", "'injekt' is none of trace, abbrev"),
)


def test_bad_expressions_have_one_error_each(tmp_path: Path) -> None:
    for text, why in BAD:
        with pytest.raises(CommandError, match=re.escape(why)):
            SyscallChoice((text,), ("write", "read"))
    done = run("strace", "-e", BAD[0][0], str(SAMPLES / "x86_64" / "recursion"), cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
