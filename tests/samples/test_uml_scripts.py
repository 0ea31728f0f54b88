"""Scripts of bpftrace on a whole Linux kernel that is the guest, and on its programs."""

import re
from pathlib import Path

import pytest
from compiled import build
from guestrun import Outcome, run
from umlkit import QUICK, SHOWN, WORDS, made

INIT = r"""
#include <fcntl.h>
#include <sys/reboot.h>
#include <unistd.h>
__attribute__((noinline)) long load(int fd) { char text[64]; return read(fd, text, sizeof text); }
__attribute__((noinline)) long both(int fd) { return load(fd) + load(fd); }
int main(void)
{
    both(open("/init", O_RDONLY));
    reboot(RB_POWER_OFF);
}
"""
SCRIPT = """
uprobe:init:load { @in[comm, pid, func, arg0] = count(); @s[ustack(3)] = count(); }
uretprobe:/init:load { @got = sum(retval); }
kprobe:vfs_read { @reads[comm, pid, func] = count(); @k[kstack(2), ustack(2)] = count(); }
kretprobe:vfs_read { @most = max(retval); }
kprobe:do_filp_open /comm == "init"/ { printf("%s opens %s\\n", comm, str(*(uint64 *)arg1)); }
profile:hz:99 { @ticks = count(); }
"""
EXPECTED = """\
init opens /init


@got: 128
@in[init, 1, load, 3]: 2
@k[
        vfs_read+N
        ksys_read+N
,\x20
        *read+N
        load+N
]: 2
@most: 64
@reads[init, 1, vfs_read]: 2
@s[
        load+N
        both+N
        main+N
]: 1
@s[
        load+N
        both+N
        main+N
]: 1
@ticks: N
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("scripted")
    made(work / "uml", INIT=str(build(work, "init", INIT, "-static", "-O0", "-g")))
    return work / "uml"


def scripted(folder: Path, script: str, *options: str) -> Outcome:
    words = ("-q", "-o", "out", *options, *SHOWN, "-e", script, "--", "./linux.uml")
    return run(
        "bpftrace", *words, *WORDS, *QUICK, cwd=folder, env={"HOME": str(folder)}, deadline=900
    )


@pytest.mark.slow
def test_a_kernel_and_its_programs(folder: Path) -> None:
    config = "config = { show_debug_info = false; } "
    found = scripted(folder, config + SCRIPT)
    assert found.code == 0, found.err
    text = re.sub(r"\+\d+$", "+N", (folder / "out").read_text(), flags=re.M)
    text = re.sub(r"(@ticks: )\d+", r"\1N", text)
    assert re.sub(r"\w*read\+N\n( +load)", r"*read+N\n\1", text) == EXPECTED


@pytest.mark.slow
@pytest.mark.parametrize("value", ["uid", "username", "curtask", "cpid", 'signal("KILL")'])
def test_what_nobody_knows_of_its_tasks_is_refused(folder: Path, value: str) -> None:
    found = scripted(folder, f"kprobe:vfs_read {{ $x = {value}; }}", "--dry-run")
    assert found.code == 2
    name = value.partition("(")[0]
    assert f"ERROR: {name}() is refused: the " in found.err
