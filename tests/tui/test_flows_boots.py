"""A booted kernel in the interface, by keys: probes, the way back, tasks, the console."""

from pathlib import Path

import pytest
from bootkit import initrd, needs_host_code
from flowkit import SMALL, User, flow, place
from kernelimages import AMD64_61, image_path

from engine.session.headless.boot_recordings import opened_boot_recording
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.kernels import BootRequest
from engine.session.protocol.views import RunState

INIT = "#!/bin/sh\necho what is it\nread line\necho it is $line\npoweroff -f\n"


@needs_host_code
@pytest.mark.slow
def test_a_kernel_from_power_on_to_power_off(tmp_path: Path) -> None:
    path = str(image_path(AMD64_61))
    boot = BootRequest(path, initrd=str(initrd(tmp_path, INIT)), append="quiet")
    config = GuestConfig(path, called=True, history=True, boot=boot)

    async def steps(user: User) -> None:
        assert user.focus == "code"
        await user.shows("[boot]")
        await place(user, "p:t/read vfs_read count=$arg3:u64")
        await user.command("b do_sys_openat2")
        await user.until(lambda: len(user.probes) == 2)
        await user.press("c")
        await user.until(lambda: user.view.location == "do_sys_openat2+0x0", "the breakpoint")
        await user.press("3")
        await user.shows("entry_SYSCALL_64_after")
        await user.command("p filename")
        await user.says('"/init"')
        await user.press("1", "y")
        await user.shows("ftrace knows the function")
        await user.shows("nothing is planted")
        await user.press("escape", "i")
        await user.until(lambda: user.view.location == "do_sys_openat2+0x5", "a step")
        await user.press("I")
        await user.until(lambda: user.view.location == "do_sys_openat2+0x0", "back")
        assert user.view.history is not None
        assert user.view.history.past
        await user.press("T")
        await user.shows("kthreadd")
        await user.command("delete 2")
        await user.until(lambda: len(user.probes) == 1)
        await user.press("c", "7")
        await user.shows("what is it")
        await user.press("enter")
        await user.press(*"42")
        await user.press("enter")
        await user.state(RunState.ENDED)
        await user.shows("it is 42")
        assert user.view.reason == "the machine is switched off"
        assert user.probes[0].hits == user.view.events > 3
        await user.press("escape", "6")
        await user.shows("read(count=")
        await user.press("r")
        await user.state(RunState.READY)
        assert user.probes[0].hits == 0

    flow(steps, config=config, size=SMALL)


@needs_host_code
@pytest.mark.slow
def test_a_recorded_boot(tmp_path: Path) -> None:
    """All of it is the past at once; a probe of later gets its rows; it cannot be changed."""
    path, script = str(tmp_path / "boot.rec"), INIT.replace("read line", "line=42")
    disk = str(initrd(tmp_path, script))
    boot = BootRequest(str(image_path(AMD64_61)), initrd=disk, append="quiet")
    with opened_boot_recording(boot, path, lambda data: None, None) as recorded:
        recorded.run()
    config = GuestConfig(path, called=True, history=True, boot=BootRequest(path))

    async def steps(user: User) -> None:
        await user.state(RunState.ENDED)
        assert user.view.reason == "the machine is switched off"
        await user.press("7")
        await user.shows("it is 42")
        await user.press("1")
        await place(user, "p:t/read vfs_read count=$arg3:u64")
        await user.command("refill")
        await user.until(lambda: user.view.events > 0, "rows of the past")
        await user.state(RunState.ENDED)
        assert user.probes[0].hits == user.view.events
        await user.press("6")
        await user.shows("read(count=")
        await user.press("@")
        await user.until(lambda: user.view.location == "vfs_read+0x0", "the hit")
        await user.press("1", "I")
        await user.until(lambda: user.view.location.startswith("ksys_read+"), "a step back")
        await user.command("set var $rax = 1")
        await user.says("its probes can be changed")

    flow(steps, config=config, size=SMALL)


PROBED = """#!/bin/sh
mount -t sysfs s /sys
mount -t tracefs t /sys/kernel/tracing
echo 'p:k/read vfs_read+0x21' > /sys/kernel/tracing/kprobe_events
echo 1 > /sys/kernel/tracing/events/k/read/enable
read line < /init
poweroff -f
"""


@needs_host_code
@pytest.mark.slow
def test_the_kernels_own_kprobe_in_slow_motion(tmp_path: Path) -> None:
    """Played by a key, then by hand to and fro: the machinery, the header, the registers."""
    path = str(image_path(AMD64_61))
    boot = BootRequest(path, initrd=str(initrd(tmp_path, PROBED)), append="quiet")
    config = GuestConfig(path, called=True, history=True, boot=boot)

    def done() -> list[str]:
        hit = user_of[0].view.hit
        return [phase.name for phase in hit.done] if hit is not None else []

    user_of: list[User] = []

    async def steps(user: User) -> None:
        user_of.append(user)
        await user.press("P")
        await user.until(lambda: done() == ["trap"], "the first phase is played")
        await user.press("P", "4")
        await user.shows("cc 47 44")
        await user.shows("for  8b 47 44")
        await user.shows("! pc")
        await user.shows("asm_exc_int3")
        await user.press(".")
        await user.until(lambda: done() == ["trap", "entry"], "a phase by hand")
        await user.press(",", ",")
        await user.until(lambda: user.view.hit is not None and not done(), "in front of it")
        for _ in range(8):
            await user.press(".")
        await user.until(lambda: done()[-1:] == ["out of line"], "in the slot")
        await user.shows("* rax")
        await user.shows("jmp")
        await user.press(".")
        await user.until(lambda: user.view.location == "vfs_read+0x27", "it is over")
        await user.command("info kprobes")
        await user.says("vfs_read+0x21    [OPTIMIZED]")

    flow(steps, config=config, size=SMALL)
