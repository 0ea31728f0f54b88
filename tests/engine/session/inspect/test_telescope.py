"""Values followed from pointer to pointer: what stands at the end, and memory that is hostile."""

import shutil
import subprocess
from pathlib import Path

import pytest
from archkit import EVERY
from controlkit import Held, held, sample

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import PointerHop, RegisterView, StackWord


def register(guest: Held, name: str) -> RegisterView:
    """A register by its name."""
    return next(each for each in guest.view.registers if each.name == name)


def words(guest: Held, address: int, count: int = 1) -> tuple[StackWord, ...]:
    """Words of memory as a front end is told."""
    guest.do(cmd.ReadWords(address, count))
    return guest.all(ev.WordsRead)[-1].words


def plain(hops: tuple[PointerHop, ...]) -> list[tuple[int, str]]:
    """Values and texts alone."""
    return [(hop.value, hop.text) for hop in hops]


@pytest.mark.parametrize("arch", EVERY)
def test_what_the_stack_of_a_new_program_leads_to(arch: str) -> None:
    path = sample(arch, "recursion")
    with held(path, "5", "ab") as guest:
        roles = guest.control.session.arch.roles
        sp = register(guest, roles.sp).value
        found = words(guest, sp, 6)
        first = next(n for n, word in enumerate(found) if word.value == 3)
        assert found[first].hops == (), "the number of arguments is no pointer"
        name, five = found[first + 1], found[first + 2]
        # A string that ends within the 52 bytes that are read is shown whole.
        cut = f'"{path}"' if len(path) < 52 else f'"{path[:48]}"...'
        assert plain(name.hops) == [(name.value, cut)]
        assert name.hops[0].region == "stack"
        assert plain(five.hops) == [(five.value, '"5"')]
        code = register(guest, roles.pc)
        assert [hop.region for hop in code.hops] == ["code"]
        assert code.hops[0].place.endswith("start+0x0")
        assert code.hops[0].text, "the instruction"


def test_cycles_faults_and_strings() -> None:
    with held(sample("x86_64", "recursion"), "5") as guest:
        sp = register(guest, "rsp").value - 0x400

        def put(offset: int, data: bytes | int) -> None:
            raw = data if isinstance(data, bytes) else data.to_bytes(8, "little")
            guest.do(cmd.WriteMemory(sp + offset, raw))

        def seen(offset: int) -> list[tuple[int, str]]:
            return plain(words(guest, sp + offset)[0].hops)

        put(0, sp)  # to itself
        assert seen(0) == [(sp, ""), (sp, "...")]
        put(0x10, sp + 0x18)
        put(0x18, sp + 0x10)
        assert [text for _, text in seen(0x10)] == ["", "", "..."]
        for number in range(20):  # longer than anybody reads
            put(0x100 + 8 * number, sp + 0x108 + 8 * number)
        assert len(seen(0x100)) == 6
        assert seen(0x100)[-1] == (sp + 0x100 + 48, "...")
        put(0x20, sp + 0x28)
        put(0x28, 0xDEAD_0000_0000_BEEF)  # not mapped, and no text
        assert seen(0x20) == [(sp + 0x28, ""), (0xDEAD_0000_0000_BEEF, "")]
        assert seen(0x28) == []
        put(0x30, sp + 0x38)
        put(0x38, b"\x1b[2J\x07\0\0\0")  # would clear a terminal, and is no text for its bell
        assert '"' not in seen(0x30)[-1][1]
        put(0x38, b"\x1b[2J\n\t\0\0")
        assert seen(0x30) == [(sp + 0x38, r'"\33[2J\n\t"')]
        put(0x38, "grün".encode() + b"\0")
        assert seen(0x30) == [(sp + 0x38, '"grün"')]
        put(0x38, b"ab\0\0\0\0\0\0")
        assert seen(0x30) == [(sp + 0x38, ""), (0x6261, '"ab"')]
        put(0x200, sp + 0x208)
        put(0x208, b"x" * 200)
        assert seen(0x200) == [(sp + 0x208, '"' + "x" * 48 + '"...')]
        stack = next(m for m in guest.view.mappings if m.name == "[stack]")
        put(0x40, stack.end - 4)
        guest.do(cmd.WriteMemory(stack.end - 4, b"wxyz"))
        assert seen(0x40) == [(stack.end - 4, "")], "it ends with the memory"
        assert len(words(guest, stack.end - 16, 32)) == 2
        assert words(guest, 0, 4) == ()
        assert words(guest, (1 << 64) - 4, 4) == ()


def test_the_place_behind_a_call_that_does_not_return() -> None:
    with held(sample("x86_64", "structs")) as guest:
        pc = register(guest, "rip").value
        module = guest.control.session.seen.modules.at(pc)
        assert module is not None
        symbols = module.symbols
        start = next(s for s in symbols.functions() if s.name == "rt_start")
        main = next(s for s in symbols.functions() if s.name == "main")
        sp = register(guest, "rsp").value - 64
        for value, place in (
            (start.address + start.size, f"rt_start+{start.size:#x}"),
            (main.address, "main+0x0"),
        ):
            guest.do(cmd.WriteMemory(sp, value.to_bytes(8, "little")))
            assert words(guest, sp)[0].hops[0].place == place


SOURCE = r"""
#include <string.h>
const char *greetings[2] = { "good morning", 0 };
struct list { struct list *next; const char *text; } last = { 0, "the end" }, head = { &last };
__attribute__((noinline)) long at(const char **words, struct list *list, void (*call)(void))
{ asm volatile("" ::: "memory"); return words[0][0] + (long)list->next + (long)call; }
void nothing(void) { }
int main(void) { return (int)at(greetings, &head, nothing); }
"""


def test_a_program_of_positions_its_own_is_followed_where_it_is(tmp_path: Path) -> None:
    if shutil.which("x86_64-linux-gnu-gcc") is None:
        pytest.skip("no compiler")
    source, program = tmp_path / "chains.c", tmp_path / "chains"
    source.write_text(SOURCE)
    subprocess.run(
        ["x86_64-linux-gnu-gcc", "-O1", "-g", "-fPIE", "-pie", "-o", program, source], check=True
    )
    with held(str(program)) as guest:
        guest.do(cmd.ToggleBreak("at"), cmd.Continue())
        arguments = [register(guest, name) for name in ("rdi", "rsi", "rdx")]
        greetings, head, call = (each.hops for each in arguments)
        assert greetings[0].place == "greetings+0x0"
        assert greetings[1].place.startswith("chains:.rodata+")
        assert greetings[1].text == '"good morning"'
        assert [hop.place for hop in head[:2]] == ["head+0x0", "last+0x0"]
        assert plain(head)[-1] == (0, "")
        assert call[0].place == "nothing+0x0"
        assert call[0].text in ("ret", "endbr64")
        assert register(guest, "rip").hops[0].text not in ("int3", ""), "as the program has it"
