"""`kprobe-tui record --boot` and what is done with its file: the same boot, byte for byte."""

import contextlib
import io
import os
import pty
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bootkit import busybox_root, initrd, needs_host_code
from controlkit import sample
from guestrun import Outcome, run
from kernelimages import AMD64_61, AMD64_612, fetched_modules, image_path
from msgspec.structs import replace

from engine.history.bootrecord import BootRecorder, RecordedMachine, read_boot

SHELL = """#!/bin/sh
mount -t devtmpfs dev /dev
mount -t proc proc /proc
setsid sh -c 'exec sh -i </dev/ttyS0 >/dev/ttyS0 2>&1'
"""


def tui(folder: Path, *words: str) -> Outcome:
    return run(*words, cwd=folder, deadline=600)


@needs_host_code
@pytest.mark.slow
def test_a_recorded_boot_goes_again_with_probes_that_nobody_had_thought_of(tmp_path: Path) -> None:
    """The file is all it needs; its trace is that of the boot itself."""
    image, disk = str(image_path(AMD64_61)), initrd(tmp_path)
    (tmp_path / "typed").write_bytes(b"hello\n")
    probes = ("-e", "p:open do_sys_openat2 name=+0($arg2):ustring", "-r", "ksys_read", "-o")
    command = [sys.executable, "-m", "tui"]
    for words in (
        ("record", "--boot", "-o", "boot.rec"),
        ("trace", "--boot", *probes, "plain"),
    ):
        with (tmp_path / "typed").open("rb") as typed, (tmp_path / words[0]).open("wb") as out:
            done = subprocess.run(
                [*command, *words, "--initrd", disk, image],
                cwd=tmp_path,
                stdin=typed,
                stdout=out,
                stderr=subprocess.PIPE,
                check=False,
                timeout=600,
            )
        assert (done.returncode, done.stderr) == (0, b"")
    console = (tmp_path / "record").read_bytes().decode()
    assert "typed hello" in console
    disk.unlink()
    again = tui(tmp_path, "replay", *probes, "again", "boot.rec")
    assert (again.code, again.err, again.out) == (0, "", console)
    rows = (tmp_path / "again").read_text()
    assert rows == (tmp_path / "plain").read_text()
    assert rows.count(" open: ") > 3
    assert rows.count("ksys_read") > 3
    told = tui(tmp_path, "bt", "--boot", "--at", "do_sys_openat2", "--hit", "3", "boot.rec")
    assert told.code == 0, told
    assert "__x64_sys_openat" in told.out
    # A replay that ends otherwise than the recorded boot says so.
    data = (tmp_path / "boot.rec").read_bytes()
    boot = read_boot(str(tmp_path / "boot.rec"))
    assert boot.end is not None
    with io.FileIO(tmp_path / "other.rec", "w") as file:
        recorder = BootRecorder()
        recorder.begin(file, boot.machine, boot.kernel, boot.initrd, lambda: 1)
        recorder.end(replace(boot.end, blocks=boot.end.blocks - 1000))  # nothing was typed
    other = tui(tmp_path, "replay", "other.rec")
    assert other.code == 2
    assert "this boot is not the one that was recorded: another is its console's" in other.err
    (tmp_path / "cut.rec").write_bytes(data[: len(data) - 30])
    cut = tui(tmp_path, "replay", "cut.rec")
    assert cut.code == 124, cut
    assert "cut.rec: cut off at byte" in cut.err
    assert console.startswith(cut.out)


def typed_boot(folder: Path, end: str, seed: int) -> tuple[bytes, int]:
    """Boot, and type at the shell: the text on the terminal, and the command's wait status.

    Args:
        folder: has the ramdisk; gets the recording.
        end: how it ends: "off", "keys" or "signal".
        seed: of the moments at which keys are hit.
    """
    source = random.Random(seed)
    image = str(image_path(AMD64_61))
    words = ["record", "--boot", "-o", "boot.rec", "--initrd", "initrd.gz", "--append", "quiet"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execv(sys.executable, [sys.executable, "-m", "tui", *words, image])
    shown = bytearray()

    def look(seconds: float, until: bytes = b"") -> None:
        limit = time.monotonic() + seconds
        while time.monotonic() < limit and not (until and until in shown):
            if not select.select((terminal,), (), (), 0.1)[0]:
                continue
            data = b""
            with contextlib.suppress(OSError):
                data = os.read(terminal, 1 << 16)
            if not data:
                return
            shown.extend(data)

    look(240, b"# ")
    for line in (
        b"echo one\n",
        b"for i in 1 2; do echo $i; sleep 0.2; done\n",
        b"echo end$((1))\n",
    ):
        for key in line:
            os.write(terminal, bytes((key,)))
            look(source.random() * 0.05)
        look(0.5)
    look(60, b"end1")
    if end == "signal":
        os.write(terminal, b"while :; do :; done\n")
        look(0.5)
        os.kill(pid, signal.SIGTERM)
    else:
        os.write(terminal, b"\x01x" if end == "keys" else b"poweroff -f\n")
    look(60)
    status = os.waitpid(pid, 0)[1]
    os.close(terminal)
    return bytes(shown), status


@needs_host_code
@pytest.mark.slow
@pytest.mark.parametrize("end", ["off", "keys", "signal"])
def test_keys_come_again_at_their_moments(end: str, tmp_path: Path) -> None:
    """However the boot ends; the end's memory and registers are compared by the replay itself."""
    initrd(tmp_path, SHELL)
    shown, status = typed_boot(tmp_path, end, 3)
    assert os.waitstatus_to_exitcode(status) == (143 if end == "signal" else 0)
    replayed = tui(tmp_path, "replay", "boot.rec")
    assert replayed.code == 0, replayed
    assert "not the one that was recorded" not in replayed.err
    assert ("was stopped" in replayed.err) == (end != "off")
    plain = shown.replace(b"\r", b"").decode()
    assert "end1" in replayed.out
    assert plain.startswith(replayed.out.replace("\r", ""))


@needs_host_code
@pytest.mark.slow
def test_what_was_read_of_disks_is_in_the_file(tmp_path: Path) -> None:
    release = AMD64_612.removeprefix("vmlinuz-")
    tree = tmp_path / "modules" / release / "kernel"
    tree.mkdir(parents=True)
    for path in fetched_modules(AMD64_612, ["virtio_blk"]):
        shutil.copy(path, tree)
    script = "#!/bin/sh\nmount -t devtmpfs d /dev\nmount -t proc p /proc\nmodprobe virtio_blk\n"
    script += "dd if=/dev/vda bs=4096 skip=100 count=50 2>/dev/null | sha256sum\n"
    script += "echo changed | dd of=/dev/vda bs=512 seek=3 conv=notrunc 2>/dev/null\n"
    script += "head -c 4096 /dev/vda | sha256sum\npoweroff -f\n"
    root = busybox_root(tmp_path, script)
    (tmp_path / "disk").write_bytes(random.Random(1).randbytes(8 << 20))
    words = ["--init", str(root), "--modules", str(tmp_path / "modules"), "--append", "quiet"]
    image = str(image_path(AMD64_612))
    done = tui(tmp_path, "record", "--boot", "-o", "d.rec", *words, "--disk", "disk", image)
    assert (done.code, done.err) == (0, ""), done
    assert len(re.findall(r"(?m)^[0-9a-f]{64}  -\r?$", done.out)) == 2
    (tmp_path / "disk").unlink()
    shutil.rmtree(root)
    assert (tmp_path / "d.rec").stat().st_size < 60 << 20
    again = tui(tmp_path, "replay", "d.rec")
    assert (again.code, again.err, again.out) == (0, "", done.out)


def test_a_recorded_run_is_still_read_from_a_pipe(tmp_path: Path) -> None:
    """What tells a recorded boot from it takes no byte of it away."""
    ran = tui(tmp_path, "record", "-o", "run.rec", str(sample("x86_64", "recursion")))
    assert ran.code == 0, ran
    command = [sys.executable, "-m", "tui", "replay", "/dev/stdin"]
    data = (tmp_path / "run.rec").read_bytes()
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.decode()) == (0, ran.out)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A recorded boot of no kernel that could be booted."""
    with io.FileIO(tmp_path / "small.rec", "w") as file:
        machine = RecordedMachine("1", "vmlinuz", "", 64 << 20, 0)
        BootRecorder().begin(file, machine, b"no kernel", b"", lambda: 0)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("boot", "--initrd", "x", "small.rec"), "--initrd: small.rec is a recorded boot"),
        (("boot", "--memory", "1G", "small.rec"), "--memory: small.rec is a recorded boot"),
        (("trace", "--boot", "-e", "p x", "--seed", "1", "small.rec"), "--seed: small.rec is"),
        (("record", "--boot", "-o", "r", "small.rec"), "small.rec: a recorded boot already"),
        (("replay", "small.rec"), "vmlinuz: "),
        (("replay", "--quiet", "small.rec"), "No such option '--quiet'"),
        (("run", "small.rec"), "is a recorded boot (kprobe-tui replay)"),
        (("check", "-f", "x", "small.rec"), "is a recorded boot (kprobe-tui replay)"),
        (("record", "--boot", "vmlinuz"), "Missing option '-o'"),
        (("record", "--boot", "-o", "no/file", "small.rec"), "small.rec: a recorded boot already"),
        (("record", "--boot", "-o", "r", "/bin/true"), "no kernel image"),
    ],
)
def test_bad_usage(words: tuple[str, ...], told: str, small: Path) -> None:
    done = tui(small, *words)
    assert done.code == 2, done
    assert told in done.err
    assert "Traceback" not in done.err
    assert not (small / "r").exists()
