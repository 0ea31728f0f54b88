"""`kprobe-tui boot`: Debian's kernels to their power-off, twice the same, and what cannot be."""

import fcntl
import hashlib
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest
from bootkit import busybox_root, initrd, needs_host_code
from controlkit import sample
from guestrun import Outcome, run
from kernelimages import AMD64_61, AMD64_612, UML_61, fetched_modules, image_path

from engine.chapters import load_chapter
from engine.cpu import native


def boot(folder: Path, *words: str, stdin: bytes | None = None) -> Outcome:
    return run("boot", *words, cwd=folder, stdin=stdin, deadline=600)


@needs_host_code
@pytest.mark.slow
@pytest.mark.parametrize("name", [AMD64_61, AMD64_612])
def test_a_kernel_boots_to_its_power_off_twice_the_same(name: str, tmp_path: Path) -> None:
    """The console's bytes are the same, and so is the number of blocks."""
    image, disk = image_path(name), initrd(tmp_path)
    typed = tmp_path / "typed"
    typed.write_bytes(b"hello\n")
    outcomes = []
    for _ in range(2):
        with typed.open("rb") as source:
            done = subprocess.run(
                [sys.executable, "-m", "tui", "boot", "--debug", "--initrd", disk, image],
                stdin=source,
                capture_output=True,
                check=False,
                timeout=600,
            )
        assert done.returncode == 0, done.stderr
        blocks = re.search(rb"(\d+) blocks, (\d+\.\d+) s of the machine's", done.stderr)
        assert blocks is not None
        outcomes.append((done.stdout, blocks[0]))
    assert outcomes[0] == outcomes[1]
    text = outcomes[0][0].decode().replace("\r\n", "\n")
    release = name.removeprefix("vmlinuz-")
    assert f"Linux version {release} " in text
    said = "\n".join(line for line in text.splitlines() if not line.startswith("["))
    assert f"release {release}\n1\nslept\n8\n" in said
    assert "typed hello" in said
    assert "System halted" in text.splitlines()[-1]
    for word in ("WARNING", "BUG", "Oops", "cut here", "Call Trace"):
        assert word not in text


@needs_host_code
@pytest.mark.slow
def test_the_chapter_shows_what_a_boot_prints(tmp_path: Path) -> None:
    """Each line of the example, but for its time, which goes with the busybox of the ramdisk."""
    chapter = load_chapter("booting").text
    example = re.search(r"(?s)```console\n.*?\.gz (\S+)\n(.*?)```", chapter)
    assert example is not None
    assert example[1] == AMD64_61
    made = initrd(tmp_path, None)
    done = boot(tmp_path, "--initrd", str(made), str(image_path(AMD64_61)))
    said = [re.sub(r"^\[ *[\d.]+\] ", "", line) for line in done.out.splitlines()]
    lines = [re.sub(r"^\[ *[\d.]+\] ", "", line) for line in example[2].splitlines()]
    lines.remove("...")
    assert len(lines) == 9
    assert [line for line in lines if line not in said] == []


@needs_host_code
@pytest.mark.slow
def test_a_folder_becomes_the_root_with_modules_in_it(tmp_path: Path) -> None:
    """Over a packed ramdisk whose init never runs; ext4 brings its modules along."""
    image = image_path(AMD64_61)
    packed = initrd(tmp_path)
    tree = tmp_path / "modules" / "lib" / "modules" / "6.1.0-56-amd64" / "kernel"
    tree.mkdir(parents=True)
    for path in fetched_modules(AMD64_61, ("ext4", "jbd2", "mbcache", "crc16", "crc32c_generic")):
        shutil.copy(path, tree)
    script = "#!/bin/sh\nmount -t proc p /proc\nmodprobe ext4 && cat /proc/modules\npoweroff -f\n"
    root = busybox_root(tmp_path, script)
    words = ("--initrd", str(packed), "--init", str(root), "--modules", str(tmp_path / "modules"))
    done = boot(tmp_path, *words, "--module", "ext4", "--append", "quiet", str(image))
    assert done.code == 0, done
    assert {line.split()[0] for line in done.out.splitlines() if " Live " in line} == {
        *("ext4", "jbd2", "mbcache", "crc16")
    }


@needs_host_code
@pytest.mark.slow
@pytest.mark.parametrize("name", [AMD64_61, AMD64_612])
def test_disks_are_read_and_changed_and_their_images_are_not(name: str, tmp_path: Path) -> None:
    """The second one shares no line with the first, the third does; two boots are the same."""
    image, release = image_path(name), name.removeprefix("vmlinuz-")
    tree = tmp_path / "modules" / release / "kernel"
    tree.mkdir(parents=True)
    wanted = ["virtio_blk"]
    if name == AMD64_61:  # what later kernels have built in
        wanted += ["virtio", "virtio_ring", "virtio_pci", "virtio_pci_modern_dev"]
        wanted += ["virtio_pci_legacy_dev"]
    for path in fetched_modules(name, wanted):
        shutil.copy(path, tree)
    script = "#!/bin/sh\nmount -t devtmpfs d /dev\nmount -t proc p /proc\n"
    script += "modprobe virtio_pci; modprobe virtio_blk\n"
    script += "sha256sum /dev/vda /dev/vdb /dev/vdc\n"
    script += "cat /dev/vda > /dev/vdc && cat /proc/version > /dev/vdb\n"
    script += "echo 3 > /proc/sys/vm/drop_caches\nsha256sum /dev/vdc\nls /dev/vd*\n"
    script += "cat /proc/interrupts\npoweroff -f\n"
    root = busybox_root(tmp_path, script)
    words = ["--init", str(root), "--modules", str(tmp_path / "modules"), "--append", "quiet"]
    contents = [random.Random(n).randbytes((3, 1, 3)[n] << 20) for n in range(3)]
    for number, data in enumerate(contents):
        (tmp_path / f"disk{number}").write_bytes(data)
        words += ["--disk", f"disk{number}"]
    done = boot(tmp_path, "--debug", *words, str(image))
    assert done.code == 0, done
    sums = [hashlib.sha256(data).hexdigest() for data in (*contents, contents[0])]
    assert re.findall(r"(?m)^([0-9a-f]{64})  /dev/vd", done.out) == sums
    lines = re.findall(r"(?m)^ *(\d+): +\d+ +XT-PIC +(virtio.*)$", done.out)
    assert [(line, names.strip()) for line, names in lines] == [
        ("10", "virtio1"),
        ("11", "virtio0, virtio2"),
    ]
    again = boot(tmp_path, "--debug", *words, str(image))
    assert again.out == done.out
    assert again.err.split(",")[0] == done.err.split(",")[0]
    assert [(tmp_path / f"disk{n}").read_bytes() for n in range(3)] == contents
    done = boot(tmp_path, *words, "--disk-memory", "1M", str(image))
    assert done.code == 2
    assert "the guest has changed more than 1 MB on its disks" in done.err


@needs_host_code
@pytest.mark.slow
def test_random_numbers_follow_from_the_seed(tmp_path: Path) -> None:
    """The generator is ready from the first line of the boot on, and its numbers are repeated."""
    script = "#!/bin/sh\nmount -t devtmpfs d /dev\nmount -t proc p /proc\n"
    script += "sha256sum /proc/sys/kernel/random/uuid\npoweroff -f\n"
    root = busybox_root(tmp_path, script)
    said = []
    for words in ((), ("--seed", "0"), ("--seed", "7")):
        done = boot(tmp_path, "--init", str(root), *words, str(image_path(AMD64_61)))
        assert done.code == 0, done
        assert "[    0.000000] random: crng init done" in done.out
        said.append(re.findall(r"(?m)^([0-9a-f]{64}) ", done.out))
    assert said[0] == said[1]
    assert len(said[0]) == 1
    assert said[0] != said[2]


@needs_host_code
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "append", "code", "said"),
    [
        ("reboot -f", "", 0, "the kernel has reset the machine"),
        ("reboot -f", "reboot=t", 0, "the kernel has reset the machine"),
        ("echo o > /proc/sysrq-trigger; cat", "", 0, ""),
        ("echo c > /proc/sysrq-trigger", "", 1, "the kernel has panicked: sysrq triggered crash"),
    ],
    ids=["reset", "triple-fault", "power-off", "crash"],
)
def test_each_way_off_is_an_end(
    command: str, append: str, code: int, said: str, tmp_path: Path
) -> None:
    root = busybox_root(tmp_path, f"#!/bin/sh\nmount -t proc proc /proc\n{command}\n")
    (root / "bin" / "reboot").symlink_to("busybox")
    words = ("--init", str(root), "--append", f"quiet {append}", "--timeout", "300")
    done = boot(tmp_path, *words, str(image_path(AMD64_61)))
    assert (done.code, done.err) == (code, f"kprobe-tui: {said}\n" if said else "")


@needs_host_code
@pytest.mark.slow
def test_a_panic_and_a_limit_of_time_are_told(tmp_path: Path) -> None:
    image = str(image_path(AMD64_61))
    done = boot(tmp_path, "--append", "quiet", image)
    assert done.code == 1
    assert done.err == (
        "kprobe-tui: the kernel has panicked: VFS: Unable to mount root fs on unknown-block(0,0)\n"
    )
    looping = initrd(tmp_path, "#!/bin/sh\necho looping\nwhile :; do :; done\n")
    done = boot(tmp_path, "--initrd", str(looping), "--timeout", "20", image)
    assert done.code == 124
    first, second = done.err.splitlines()
    assert first == "kprobe-tui: stopped: the time limit (--timeout) ran out"
    assert re.fullmatch(r"kprobe-tui: the machine was stopped at 0x[0-9a-f]+( \(.+\))?", second)


@needs_host_code
@pytest.mark.slow
def test_a_signal_ends_a_boot(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tui", "boot", str(image_path(AMD64_61))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(100)
        threading.Timer(0.3, process.send_signal, (signal.SIGTERM,)).start()
        began = time.monotonic()
        process.communicate()
        assert process.returncode == 128 + signal.SIGTERM
        assert time.monotonic() - began < 60


@needs_host_code
@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code"),
    [((), 128 + signal.SIGTERM), (("--timeout", "3"), 124)],
    ids=["signal", "time"],
)
def test_a_boot_ends_though_nobody_reads_its_console(words: tuple[str, ...], code: int) -> None:
    """The pipe is full long before the kernel has said all: the machine waits in a write."""
    command = [sys.executable, "-m", "tui", "boot", *words, str(image_path(AMD64_61))]
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.DEVNULL
    ) as process:
        os.close(writing)
        if not words:
            while struct.unpack("i", fcntl.ioctl(reading, termios.FIONREAD, bytes(4)))[0] < 3000:
                assert process.poll() is None
                time.sleep(0.1)
            time.sleep(1)  # the next lines do not fit
            process.send_signal(signal.SIGTERM)
        assert process.wait(120) == code
    os.close(reading)


def test_what_cannot_be_booted_is_told(tmp_path: Path) -> None:
    image = str(image_path(AMD64_61))
    empty, cut, odd = tmp_path / "empty", tmp_path / "cut", tmp_path / "odd"
    empty.touch()
    odd.write_bytes(bytes(513))
    cut.write_bytes(Path(image).read_bytes()[:3_000_000])
    lines = {
        (sample("x86_64", "recursion"),): "a program is not booted: kprobe-tui run",
        ("missing",): "missing: No such file or directory",
        (str(cut),): "cut",
        ("--initrd", "none", image): "none: No such file or directory",
        ("--initrd", str(empty), image): "the file is empty",
        ("--init", "/nowhere", image): "/nowhere: No such file or directory",
        ("--init", str(empty), image): "neither an ELF program nor a script with #!",
        ("--modules", str(tmp_path), image): "there are no modules of 6.1.0-56-amd64",
        ("--module", "ext4", image): "--modules DIR",
        ("--disk", "none", image): "none: No such file or directory",
        ("--disk", str(empty), image): "the file is empty, a disk is not",
        ("--disk", str(tmp_path), image): "neither a file nor a block device",
        ("--disk", str(odd), image): "513 bytes are no disk: sectors have 512",
        (*("--disk", str(cut)) * 17, image): "a machine has 16 disks at the most",
        ("--memory", "32M", image): "a machine has 64 MB to 3072 MB",
        ("--memory", "8G", image): "a machine has 64 MB to 3072 MB",
    }
    if native.possible():
        lines["--append", "x" * 3000, image] = "may have 2047"
    for words, said in lines.items():
        done = boot(tmp_path, *words)
        assert done.code == 2, (words, done)
        assert said in done.err, (words, done)
        assert "Traceback" not in done.err


def test_user_mode_linux_is_no_machine(tmp_path: Path) -> None:
    done = boot(tmp_path, str(image_path(UML_61)))
    assert done.code == 2
    assert "User-mode Linux is a program: kprobe-tui run" in done.err


@needs_host_code
def test_too_little_memory_is_told_with_what_is_needed(tmp_path: Path) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(100 << 20)
    done = boot(tmp_path, "--memory", "128M", "--initrd", str(big), str(image_path(AMD64_61)))
    assert done.code == 2
    assert re.search(r"128 MB of memory are too little .* which take \d+ MB", done.err)
