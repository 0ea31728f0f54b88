"""A booted machine with a disk, at moments of its past."""

import hashlib
import shutil
from pathlib import Path
from random import Random

import pytest
from bootkit import busybox_root, needs_host_code
from kernelimages import AMD64_612, fetched_modules, image_path

from engine.machine.stepping import MachineMoment
from engine.session.headless.bootable import bootable
from engine.session.headless.booting import Booted
from engine.session.kernel.opened import OpenedKernel
from engine.session.machine.debugging import DebuggedMachine
from engine.session.protocol.kernels import BootRequest, KernelChoice

INIT = """#!/bin/sh
mount -t devtmpfs d /dev
modprobe virtio_blk
for n in 1 2 3 4 5 6; do
    echo round $n | dd of=/dev/vda bs=512 seek=$n conv=notrunc 2>/dev/null
    echo 3 > /proc/sys/vm/drop_caches
    head -c 65536 /dev/vda | sha256sum
done
poweroff -f
"""


@needs_host_code
@pytest.mark.slow
def test_a_machine_with_a_disk_goes_back(tmp_path: Path) -> None:
    """Memory, registers, the disk's content and its device are what they were at 12 moments."""
    release = AMD64_612.removeprefix("vmlinuz-")
    tree = tmp_path / "modules" / release / "kernel"
    tree.mkdir(parents=True)
    for path in fetched_modules(AMD64_612, ["virtio_blk"]):
        shutil.copy(path, tree)
    root = busybox_root(tmp_path, INIT)
    (tmp_path / "disk").write_bytes(Random(1).randbytes(1 << 20))
    request = BootRequest(
        str(image_path(AMD64_612)),
        append="quiet",
        memory=128 << 20,
        init=str(root),
        modules=str(tmp_path / "modules"),
        disks=(str(tmp_path / "disk"),),
    )
    said = bytearray()
    booted = Booted(bootable(request), said.extend, None, repeats=True)
    opened = OpenedKernel(booted.kernel, KernelChoice())
    machine = DebuggedMachine(booted.machine, booted.log, opened, past=True)
    assert machine.why_no_past == ""
    (disk,) = booted.machine.disks

    def state() -> tuple[MachineMoment, object, str, str, str]:
        cpu = booted.machine.cpu
        registers = tuple(cpu[name] for name in ("rip", "rsp", "rax", "rdi", "eflags"))
        content = hashlib.sha256(disk.read(0, disk.size)).hexdigest()
        devices = repr(sorted(booted.machine.state()["devices"].items()))
        return machine.moment, registers, hashlib.sha256(cpu.memory).hexdigest(), content, devices

    place = booted.kernel.symbol("blk_mq_start_request")
    assert place is not None
    machine.stop_at({place})
    found = []
    while machine.go():
        found.append(state())
    assert len(found) > 12
    assert len({each[3] for each in found}) > 5
    text = bytes(said)
    assert text.count(b"  -") == 6
    for each in Random(2).sample(found, 12):
        machine.seek(each[0])
        assert state() == each
    assert bytes(said) == text
