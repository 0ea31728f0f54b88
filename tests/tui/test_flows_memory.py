"""The code pane shows the guest's memory: what was patched, written by the guest, planted."""

from functools import partial

from assembling import assembles
from controlkit import sample
from flowkit import User, both, flow

from engine.session.protocol import commands as cmd
from engine.session.protocol.views import RunState


def row_text(user: User, address: int) -> str:
    """The line of the code pane that an address has, "" for none."""
    digits = f"{address:x} "
    lines = (line[:70] for line in user.screen.splitlines()[2:])
    return next((line for line in lines if line[3:].startswith(digits)), "")


def stands(user: User, address: int) -> bool:
    """True if the guest stands at an address, and the code pane has the arrow there."""
    return user.view.pc == address and "→" in row_text(user, address)


async def stopped_at(user: User, place: str) -> None:
    await user.command(f"b {place}")
    await user.until(lambda: user.probes)
    await user.press("c")
    await user.state(RunState.STOPPED)


@assembles
def test_code_that_was_assembled_is_shown_and_pc_in_it() -> None:
    async def steps(user: User) -> None:
        await stopped_at(user, "ackermann")
        pc = user.view.pc
        await user.press("i")
        await user.until(lambda: user.view.pc == pc + 2)
        await user.command(f"go {pc + 7:#x}")
        assert "mov     edi, ebx" in row_text(user, pc + 7)
        await user.press("A")
        await user.type("nop")
        await user.press("enter")
        await user.until(lambda: "nop" in row_text(user, pc + 7))
        assert "; was 89 df  mov edi, ebx" in row_text(user, pc + 7)
        assert "nop" in row_text(user, pc + 8)
        for address in (pc + 4, pc + 5, pc + 7, pc + 8):
            await user.press("i")
            await user.until(partial(stands, user, address), f"pc at {address:#x}")
        await user.press("U")
        await user.until(lambda: ".byte   0x89" in row_text(user, pc + 7))
        assert "was" not in row_text(user, pc + 7)
        await user.until(lambda: "→" in row_text(user, pc + 8), "pc inside of an instruction")

    flow(steps)


@both
def test_code_as_written_and_as_executed(arch: str) -> None:
    async def steps(user: User) -> None:
        await stopped_at(user, "ackermann")
        pc = user.view.pc
        trap = {"x86_64": "int3", "aarch64": "brk", "riscv64": "ebreak"}[arch]
        assert trap not in row_text(user, pc)
        await user.press("X")
        await user.until(lambda: trap in row_text(user, pc))
        assert "as executed" in user.screen
        assert "; was " in row_text(user, pc)
        await user.press("X")
        await user.until(lambda: trap not in row_text(user, pc))

    flow(steps, guest=sample(arch, "recursion"))


def test_slots_and_the_stack_are_memory_too() -> None:
    async def steps(user: User) -> None:
        await stopped_at(user, "ackermann")
        await user.press("i")
        await user.until(lambda: user.view.reason == "stepped")
        slots = next(m.start for m in user.view.mappings if "detour" in m.name)
        await user.command(f"go {slots:#x}")
        await user.until(lambda: "test    edi, edi" in row_text(user, slots))
        assert "kprobe-tui:detour" in user.panes.code.parts[0] + "".join(user.panes.code.parts)
        await user.command(f"go {user.address('main') + 1:#x}")
        assert row_text(user, user.address("main") + 1), "an instruction begins where one goes"
        sp = next(r.value for r in user.view.registers if r.name == "rsp")
        user.app.post(cmd.WriteMemory(sp, bytes.fromhex("90c3")))
        user.app.post(cmd.WriteRegister("rip", sp))
        await user.until(lambda: "nop" in row_text(user, sp), "code on the stack")
        await user.until(lambda: "→" in row_text(user, sp), "pc on the stack")
        await user.command("go 0x12345678")
        await user.says("nothing is mapped at 0x12345678")

    flow(steps)
