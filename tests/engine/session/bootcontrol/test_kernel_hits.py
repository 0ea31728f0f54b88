"""Hits of the kernel's own kprobes, phase by phase: in all ways that they have, to and fro.

A machine that was watched phase by phase goes as one that nobody has watched: what its own trace
and its console say are the same, times included.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bootcontrolkit import BootUser
from bootkit import needs_host_code
from kernelheaders import built_modules
from kernelimages import AMD64_61, AMD64_612

from engine.session.protocol import commands as cmd
from engine.session.protocol.views import HitView

pytestmark = [pytest.mark.slow, needs_host_code]
INSIDE = {AMD64_61: ("0x21", "0x2b"), AMD64_612: ("0x25", "0x2f")}
"""An instruction of vfs_read that a jump can stand over, and a conditional branch."""
TRACED = """#!/bin/sh
mount -t sysfs s /sys
mount -t tracefs t /sys/kernel/tracing
cd /sys/kernel/tracing
for line in 'p:k/inside vfs_read+{}' 'p:k/also vfs_read+{}' 'p:k/branch vfs_read+{}' \\
    'r:k/back vfs_statx'; do echo "$line" >> kprobe_events; done
echo 1 > events/k/also/enable; echo 1 > events/k/inside/enable; read line < /init
for name in events/k/*/enable; do echo 1 > $name; done
busybox stat /init > /dev/null
sleep 1
busybox stat /init > /dev/null
read line < /init
echo 0 > tracing_on
grep -v '^#' trace
poweroff -f
"""
TRAPPED = ("trap", "entry", "do_int3", "find probe", "pre-handler")
WAYS = {
    ("vfs_statx", "called"): ("call", "save", "find probe", "pre-handler", "resume"),
    ("arch_rethook_trampoline", "returns"): (
        *("save", "find instance", "return handler", "resume"),
    ),
    ("vfs_read+0x21", "int3"): (
        *(*TRAPPED, "next", "pre-handler", "set up", "to slot", "out of line", "resume"),
    ),
    ("vfs_read+0x2b", "emulated"): (*TRAPPED, "emulate", "resume"),
    ("vfs_read+0x21", "detour"): (
        *("jump", "save", "find probe", "pre-handler", "next", "pre-handler", "restore"),
        *("out of line", "resume"),
    ),
}
"""The phases of each way, by the place in 6.1 and how."""


def watch(user: BootUser) -> HitView:
    """Go through the phases of the hit at hand; it, once it is over."""
    hit = user.view.hit
    assert hit is not None
    assert (hit.done, user.view.at_hit) == ((), True)
    route = hit.route
    for count, name in enumerate(route, 1):
        assert user.do(cmd.StepPhase()) == name
        hit = user.view.hit
        assert hit is not None
        assert [phase.name for phase in hit.done] == list(route[:count])
        assert hit.done[-1].after == user.view.pc
    assert not user.view.at_hit
    return hit


def plain(kernel: str, folder: Path, init: str) -> str:
    """The console of a boot that nobody looks at."""
    user = BootUser(kernel, folder, init=init)
    user.do(cmd.Continue())
    user.close()
    return user.output


@pytest.mark.parametrize("kernel", [AMD64_61, AMD64_612], ids=["6.1", "6.12"])
def test_all_ways_of_a_hit(kernel: str, tmp_path: Path) -> None:
    inside, branch = INSIDE[kernel]
    init = TRACED.format(inside, inside, branch)
    user = BootUser(kernel, tmp_path, init=init)
    seen: dict[tuple[str, str], HitView] = {}
    while user.do(cmd.ContinueToHit()).startswith("the kernel's own kprobe at "):
        hit = user.view.hit
        assert hit is not None
        place = hit.place.replace(inside, "0x21").replace(branch, "0x2b").removesuffix("+0x0")
        if (place, hit.how) not in seen:
            seen[place, hit.how] = watch(user)
    assert {way: hit.route for way, hit in seen.items()} == WAYS
    for hit in seen.values():
        phases = {phase.name: phase for phase in hit.done}
        last = hit.done[-1]
        assert last.registers == (), "they are as in front of the hit"
        by_guest = [phase.name for phase in hit.done if phase.by_guest]
        assert by_guest == (["out of line"] if "out of line" in phases else [])
    jump, trap = seen["vfs_read+0x21", "detour"], seen["vfs_read+0x21", "int3"]
    assert jump.detour is not None
    assert (jump.original, jump.planted[:1], trap.planted) == (
        jump.detour.window, b"\xe9", b"\xcc",
    )  # fmt: skip
    assert trap.original == jump.original[: len(trap.original)]
    assert trap.slot == jump.detour.parts[3].start
    assert (jump.probes, trap.probes) == (("k/also", "k/inside"),) * 2
    assert {name for name, *_ in jump.done[-2].registers} == {"rax", "r13"}
    assert jump.done[-1].after == trap.done[-1].after == jump.address + len(jump.original)
    entry, back = seen["vfs_statx", "called"], seen["arch_rethook_trampoline", "returns"]
    (change,) = entry.done[3].changes
    assert int.from_bytes(change.new, "little") == back.address
    assert int.from_bytes(change.old, "little") == back.returns_to == back.done[-1].after
    output = user.output
    user.close()
    assert {" inside: ", " also: ", " branch: ", " back: "} <= set(re.findall(r" \w+: ", output))
    assert output == plain(kernel, tmp_path, init)


@pytest.fixture
def user(tmp_path: Path) -> Iterator[BootUser]:
    user = BootUser(AMD64_61, tmp_path, init=TRACED.format("0x21", "0x21", "0x2b"))
    yield user
    user.close()


def test_words_go_on_several_times(user: BootUser) -> None:
    user.do(cmd.ContinueToHit())
    stands = []
    for _ in range(3):
        user.do(cmd.StepPhase())
        stands.append((user.view.time, user.view.pc, user.view.hit))
    user.do(cmd.ContinueToHit())
    user.do(cmd.ContinueToHit())
    third = user.view.time, user.view.pc
    user.do(cmd.Seek(0))
    user.word("next-hit")
    user.word("phase 3")
    assert (user.view.time, user.view.pc, user.view.hit) == stands[-1]
    user.word("reverse-phase 2")
    assert (user.view.time, user.view.pc, user.view.hit) == stands[0]
    user.do(cmd.Seek(0))
    user.word("next-hit 3")
    assert (user.view.time, user.view.pc) == third
    assert user.word("next-hit again") == 'No symbol "again" in current context.'


def test_to_and_fro(user: BootUser) -> None:
    """Back by phases: to the same moments with the same hit, and into the hit before."""
    user.do(cmd.ContinueToHit())
    stands = [user.view]
    while user.view.at_hit:
        user.do(cmd.StepPhase())
        stands.append(user.view)
    over = stands.pop()
    assert over.reason == "resume"
    for before in reversed(stands):
        user.do(cmd.PhaseBack())
        view = user.view
        assert (view.pc, view.time, view.hit, view.registers[0].value) == (
            *(before.pc, before.time, before.hit, before.registers[0].value),
        )
    for after in stands[1:]:
        user.do(cmd.StepPhase())
        assert (user.view.pc, user.view.hit) == (after.pc, after.hit)
    user.do(cmd.StepPhase())
    user.do(cmd.ContinueToHit())
    assert user.view.hit is not None
    assert user.view.hit.done == ()
    assert user.do(cmd.PhaseBack()) == stands[-1].reason, "in the hit before"
    assert user.view.hit == stands[-1].hit
    user.do(cmd.StepPhase())
    assert (user.view.pc, user.view.hit) == (over.pc, over.hit)
    user.do(cmd.StepInsn())
    assert user.view.hit is None


def test_an_instruction_at_a_time_and_words(user: BootUser) -> None:
    """Phases are counted while instructions are executed, and a stop of the user's is one."""
    user.word("break ksys_read")
    user.word("next-hit")
    user.word("continue")
    user.word("delete")
    assert user.word("info hit") == "The machine stands in no hit."
    for _ in range(9):
        told = user.word("next-hit")
        if "vfs_read+0x21: k/also, k/inside" in told:
            break
    assert "trap -> entry -> do_int3 -> find probe -> pre-handler -> next" in told
    user.word("stepi")
    assert user.view.location == "asm_exc_int3+0x0"
    told = user.word("info hit")
    assert "[trap] -> entry" in told
    assert "trap: int3 traps" in told
    user.word("stepi 3")
    assert "[trap] -> entry" in user.word("info hit")
    assert "[entry] -> do_int3" in user.word("phase")
    user.word("break kprobe_dispatcher")
    assert "[do_int3] -> find probe" in user.word("phase")
    assert user.word("phase").startswith("vfs_read+0x21")
    assert "[find probe] -> pre-handler" in user.word("info hit")
    user.word("delete")
    assert "[pre-handler] -> next" in user.word("phase")
    assert "[find probe] -> pre-handler" in user.word("reverse-phase")
    assert user.view.hit is not None
    user.word("finish")
    assert user.view.hit is None, "another motion leaves the hit"
    assert "vfs_read+0x21" in user.word("info kprobes")


SOURCE = """
#include <linux/kprobes.h>
#include <linux/module.h>
static int before(struct kprobe *p, struct pt_regs *regs) { return 0; }
static void behind(struct kprobe *p, struct pt_regs *regs, unsigned long flags) {}
static struct kprobe kp = {
	.symbol_name = "vfs_read", .offset = 0x21, .pre_handler = before, .post_handler = behind
};
static int __init start(void) { return register_kprobe(&kp); }
static void __exit stop(void) { unregister_kprobe(&kp); }
module_init(start)
module_exit(stop)
MODULE_LICENSE("GPL");
"""


def test_a_post_handler_of_a_module(tmp_path: Path) -> None:
    """The probe of a module that is loaded while it is waited for; its slot ends with an int3."""
    built = tmp_path / "built"
    built.mkdir()
    module = built_modules(AMD64_61, {"posted": SOURCE}, built)["posted"]
    tree = tmp_path / "modules" / AMD64_61.removeprefix("vmlinuz-") / "kernel"
    tree.mkdir(parents=True)
    (tree / "posted.ko").write_bytes(module.read_bytes())
    init = "#!/bin/sh\nbusybox insmod /lib/modules/*/kernel/posted.ko\nread line < /init\n"
    user = BootUser(
        AMD64_61, tmp_path, init=f"{init}poweroff -f\n", modules=str(tmp_path / "modules")
    )
    assert user.do(cmd.ContinueToHit()) == "the kernel's own kprobe at vfs_read+0x21"
    hit = watch(user)
    assert hit.route == (
        *(*TRAPPED, "set up", "to slot", "out of line", "trap", "entry", "do_int3", "fix-up"),
        *("post-handler", "leave", "resume"),
    )
    assert hit.done[-1].after == hit.address + len(hit.original)
    assert hit.done[-1].registers == ()
    assert hit.slot_bytes == hit.original + b"\xcc"
    assert hit.probes == ("before+0x0 [posted]",)
    user.close()
