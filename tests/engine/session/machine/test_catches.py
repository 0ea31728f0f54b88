"""Stops where a kernel oopses, warns and panics: in the call that does it."""

import pytest
from bootkit import initrd, needs_host_code
from kernelimages import AMD64_61, AMD64_612, image_path

from engine.errors import CommandError
from engine.session.booted.frames import BootFrames
from engine.session.booted.stacks import BootStacks
from engine.session.headless.bootable import bootable
from engine.session.headless.booting import Booted
from engine.session.kernel.opened import OpenedKernel
from engine.session.machine.catches import CATCHES, KernelCatches
from engine.session.machine.debugging import DebuggedMachine
from engine.session.protocol.kernels import BootRequest, KernelChoice

pytestmark = needs_host_code
INIT = "#!/bin/sh\nfor n in 1 2 3 4 5 6; do (read line < /init); done\nexit 3\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", [AMD64_61, AMD64_612], ids=["6.1", "6.12"])
def test_what_a_kernel_tells_is_caught_in_the_call_that_causes_it(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A function is given a pointer to nothing, and a counter that has run over."""
    disk = initrd(tmp_path_factory.mktemp("disk"), INIT)
    console = bytearray()
    booted = Booted(bootable(BootRequest(str(image_path(name)), str(disk))), console.extend, None)
    opened = OpenedKernel(booted.kernel, KernelChoice())
    machine = DebuggedMachine(booted.machine, booted.log, opened, past=False)
    stacks = BootStacks(
        *(opened, booted.machine.cpu, machine.addresses, machine.modules), machine.task_address
    )
    frames, catches = BootFrames(machine, stacks, opened), KernelCatches(opened, machine)

    def stop(place: str, times: int = 1) -> None:
        address = opened.names.find(place)
        assert address is not None
        machine.stop_at({address} | catches.places)
        for _ in range(times):
            assert machine.go()
        assert machine.pc == address

    stop("run_init_process")
    catches.choose(CATCHES)
    stop("vfs_read", 4)
    assert catches.caught() == ""
    saturated = opened.names.find("refcount_warn_saturate")
    assert saturated is not None
    machine.set_register("rdi", machine.register("rsp") - 1024)
    machine.set_register("rsi", 2)  # REFCOUNT_ADD_UAF
    machine.set_register("rip", saturated)
    machine.stop_at(catches.places)
    assert machine.go()
    assert catches.caught() == "caught a warning: lib/refcount.c:25"
    called = [frame.function for frame in frames.take().frames]
    assert called[0] == "__warn"
    assert "refcount_warn_saturate" in called
    assert "do_syscall_64" in called

    stop("vfs_read", 3)
    machine.set_register("rdi", 0)
    machine.stop_at(catches.places)
    assert machine.go()
    assert catches.caught() == "caught an oops"
    called = [frame.function for frame in frames.take().frames]
    assert called[0] == "oops_enter"
    assert called.index("asm_exc_page_fault") == called.index("vfs_read") - 1
    assert "do_syscall_64" in called

    assert machine.go()
    assert catches.caught() == "caught a panic: Attempted to kill init! exitcode=0x%08x"
    assert not machine.go()
    booted.flush()
    shown = bytes(console)
    assert b"WARNING: " in shown
    assert b"refcount.c:25" in shown
    assert b"BUG: kernel NULL pointer dereference" in shown
    with pytest.raises(CommandError, match="catch crash: there are oops, panic, warn"):
        catches.choose(["crash"])
    booted.machine.close()
