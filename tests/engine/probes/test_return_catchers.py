"""Every catcher of the list catches returns, and changes what it says and nothing else."""

from typing import Any

import pytest
from archkit import ASSEMBLED
from ia64returns import RETURNS as IA64_PROGRAM
from ia64returns import guest as ia64_guest
from probekit import CODE, SP, ProbeGuest
from returnkit import F, assembled

from engine.arch import by_name
from engine.arch.plan import Mode
from engine.errors import CommandError
from engine.probes import return_catchers
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.regs import PtRegs
from engine.probes.return_catcher import CatcherKind
from engine.probes.return_catchers import CATCHERS, RETURNS
from engine.probes.return_sites import RETURN_SITES

each = pytest.mark.parametrize("kind", CATCHERS, ids=lambda kind: kind.name)
PARTS = {
    "x86_64": ("call {F}; nop; int3", "nop; mov eax, 7; ret"),
    "aarch64": ("bl {F}; nop; brk #0xf000", "nop; mov x0, #7; ret"),
}


def built(arch: str, returns: str, mode: Mode = Mode.STRICT) -> ProbeGuest:
    guest = ProbeGuest(arch, returns=returns, mode=mode)
    for text, at in zip(PARTS[arch], (CODE, F), strict=True):
        code = assembled(arch, text, at)
        guest.memory.poke(at, code)
        guest.names.functions.append((at, at + len(code)))
    guest.pc, guest.sp = CODE, SP
    return guest


def has(arch: str, kind: CatcherKind) -> bool:
    try:
        built(arch, kind.name)
    except CommandError:
        return False
    return True


def inside(arch: str, returns: str, *, hooked: bool) -> tuple[dict[str, int], int, list[Any]]:
    """Registers and the word at the stack pointer in a called function, and returns caught."""
    guest = built(arch, returns)
    rows: list[Any] = []
    seen: list[tuple[dict[str, int], int]] = []
    probe = Kretprobe(addr=F)
    probe.record_return = lambda thread, address, entry=(): rows.append(address)

    def look(probe: Kprobe, regs: PtRegs) -> None:
        seen.append((guest.registers(), int.from_bytes(regs.read(regs.sp, 8), "little")))

    if hooked:
        guest.manager.register(probe)
    guest.manager.register(Kprobe(addr=F + (1 if arch == "x86_64" else 4), pre_handler=look))
    guest.run_to_trap()
    return (*seen[0], rows)


@each
@pytest.mark.parametrize("arch", ASSEMBLED)
def test_it_catches_a_return_and_changes_what_it_says(arch: str, kind: CatcherKind) -> None:
    if not has(arch, kind):
        ways = by_name(arch).returns
        assert ways is None or ways.carried is None
        return
    changes = built(arch, kind.name).manager.returns.changes
    plain, word, nothing = inside(arch, kind.name, hooked=False)
    hooked, other, rows = inside(arch, kind.name, hooked=True)
    back = CODE + (5 if arch == "x86_64" else 4)
    assert (nothing, rows) == ([], [back])
    assert {name for name in plain if plain[name] != hooked[name]} == set(changes.registers)
    link = by_name(arch).roles.link
    before, after = (word, other) if link is None else (plain[link], hooked[link])
    assert before == back
    assert (after != before) is changes.return_address
    assert changes.stack == 0


@each
def test_on_ia64_all_of_them_catch_the_same(kind: CatcherKind) -> None:
    with ia64_guest(IA64_PROGRAM, kind.name) as one:
        one.hook(["ten"])
        at = one.functions()["ten"]
        changes = one.manager.returns.changes
        seen: list[dict[str, int]] = []
        entry = Kprobe(addr=at, pre_handler=lambda probe, regs: seen.append(one.registers()))
        one.manager.register(entry)
        one.manager.register(
            Kprobe(addr=at + 1, pre_handler=lambda probe, regs: seen.append(one.registers()))
        )
        one.run()
        assert one.rows[0][2] == 80 * 4 + 90 + 8 * 16
        taken = changes.stack
        assert seen[0]["r12"] - seen[1]["r12"] == taken
        assert (taken > 0) is ("r12" in changes.registers)


@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)
def test_each_strictness_has_a_usual_one(mode: Mode) -> None:
    (usual,) = [kind for kind in CATCHERS if kind.usual_in is mode]
    by_default, by_name_ = built("x86_64", RETURNS[0], mode), built("x86_64", usual.name, mode)
    assert type(by_default.manager.returns) is type(by_name_.manager.returns)


def test_the_list_is_the_only_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more line is one more way; without it the name means nothing."""
    built_for: list[int] = []

    def build(host: Any, page: int) -> Any:
        built_for.append(page)
        return RETURN_SITES.build(host, page)

    toy = CatcherKind("toy", None, trampoline=True, build=build)
    built("x86_64", "toy")
    assert not built_for
    monkeypatch.setattr(return_catchers, "CATCHERS", (*CATCHERS, toy))
    _, _, rows = inside("x86_64", "toy", hooked=True)
    assert rows == [CODE + 5]
    assert len(built_for) == 1
    assert built_for[0] > 0
