"""Where values came from is what a tracer that goes forwards has found.

The tracer steps through a run and keeps for each byte of registers and cells the moment at
which it was made. It knows plain moves, loads and stores, by their text, and takes what else
writes for a computation: where a chain goes on from there, by an instruction that the tracer does
not know, that is no mistake.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from compiled import build
from historykit import past, recorded
from sessionkit import SAMPLES

from engine.arch.ia64.rse import skip_up
from engine.arch.machine import Insn
from engine.cpu import native
from engine.cpu.base import Access, Stop, StopKind
from engine.history.journal import Op
from engine.history.timeline import Moment
from engine.image.elf import ElfImage
from engine.image.symbols import SymbolTable
from engine.session.control.past.backwards import Backwards
from engine.session.control.past.origins import FollowedPlace
from engine.session.guest.past import PastSession
from engine.session.protocol.views import OriginLink

AVX = Path(__file__).parents[4] / "data" / "avx" / "copies.S"
Key = tuple[str, int]
"""A byte: (register or "", its number or address)."""

_MOVES = {
    "x86_64": r"mov|movabs|movzx|movsx|movsxd|push|pop",
    "aarch64": r"mov|ldr|ldur|str|stur|ldrb|strb|ldrsw|ldp|stp",
    "riscv64": r"(?:c\.)?(?:mv|ld|lw|lwu|lbu|sd|sw|sb|ldsp|sdsp|lwsp|swsp)",
    "ia64": r"mov|mov\.i|ld[1248]|st[1248]|alloc",
}
_STORES = r"(?:c\.)?(?:st|str|stur|strb|stp|sd|sw|sb|sdsp|swsp|st[1248])$"


class _ArenaAddresses(Mapping[int, int]):
    """Every page of the arena, at the address that the guest has it at."""

    def __init__(self, session: PastSession) -> None:
        self._table = session.cpu.page_table

    def __contains__(self, key: object) -> bool:
        return True

    def __getitem__(self, key: int) -> int:
        found = self._table.address_of(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError("nobody goes through all of them")

    def __len__(self) -> int:
        return 1


class Tracer:
    """Lives through a run and knows where each byte was made.

    Attributes:
        made: the moment of each; what is not there is from the start.
    """

    def __init__(self, session: PastSession, backwards: Backwards) -> None:
        self._session = session
        self._timeline = backwards.timeline
        self._arch = session.arch
        self.names = [
            one.name
            for one in session.arch.registers
            if one.bits == 64
            and one.name not in (session.arch.roles.pc, "zero", "r0")
            and (session.arch.name != "ia64" or re.fullmatch(r"b\d|r[1-4]?\d", one.name))
        ]
        self._bsp = 0
        self.made: dict[Key, Moment] = {}

    def key(self, name: str, byte: int) -> Key:
        """The byte of a register, of the stack's by its place."""
        if self._arch.name == "ia64" and name[0] == "r" and int(name[1:]) >= 32:
            return "stacked", skip_up(self._bsp, int(name[1:]) - 32) + byte
        return name, byte

    def live(self, end: int) -> None:
        """Step up to a tick."""
        session, timeline = self._session, self._timeline
        while not timeline.ended and timeline.now().clock < end:
            now = timeline.now()
            if session.code_at(now.pc) and self._is_call(now.pc):
                self._all(now, session.kernel.step)
            else:
                self._step(now)

    def _is_call(self, pc: int) -> bool:
        text = self._decoded(pc).mnemonic
        return text in ("syscall", "svc", "ecall") or "break" in text

    def _decoded(self, pc: int) -> Insn:
        session = self._session
        return session.disassembler.decode(pc, session.code_at(pc))[0]

    def _values(self) -> dict[Key, int]:
        if self._arch.name == "ia64":
            self._bsp = self._session.cpu.read_register("bsp")
        values = self._session.cpu.read_registers(self.names)
        return {
            self.key(name, byte): value >> 8 * byte & 0xFF
            for name, value in zip(self.names, values, strict=True)
            for byte in range(8)
        }

    def _all(self, now: Moment, step: object) -> None:
        """A system call: it makes what it changes of registers; of memory nothing is asked."""
        before = self._values()
        self._session.kernel.step()
        changed = {key for key, value in self._values().items() if before.get(key) != value}
        for name in self.names:
            keys = {self.key(name, byte) for byte in range(8)}
            if changed & keys:
                self.made.update(dict.fromkeys(keys, now))

    def _changed(self, now: Moment, before: dict[Key, int]) -> None:
        for key, value in self._values().items():
            if key in before and before[key] != value:
                self.made[key] = now

    def _step(self, now: Moment) -> None:
        session = self._session
        insn, before = self._decoded(now.pc), self._values()
        arch = session.arch.name
        idle = re.match(r"\(p(\d+)\) ", insn.mnemonic)
        runs = idle is None or session.cpu.read_register("pr") >> int(idle[1]) & 1
        name = re.sub(r"^\(p\d+\) |;;$", "", insn.mnemonic)
        plain = re.fullmatch(_MOVES[arch], name) is not None
        accessed = session.disassembler.accessed(now.pc, session.code_at(now.pc))
        words = re.findall(r"ar\.\w+|\w+", re.sub(r"\[.*?\]|\S*\(.*?\)", "", insn.operands))
        session.machine.current.memory.sync()
        kept = dict(self.made)
        known = [self._register(word) for word in words]
        sources = {
            one[0]: [kept.get(self.key(one[0], at)) for at in range(8)]
            for one in known
            if one is not None
        }
        accesses: list[Access] = []
        stack = arch == "x86_64" and re.match("push|pop|call|ret|leave", insn.mnemonic)
        if stack or re.search(r"[\[(]", insn.operands):
            stop, accesses = session.cpu.observe(_ArenaAddresses(session))
            assert stop is None, insn.text
        else:
            session.kernel.step()
        self._values()
        if not runs:
            return
        for one in accesses:
            if one.write:
                for byte in range(one.size):
                    self.made["", one.address + byte] = now
        for written in accessed[1] if accessed is not None else ():
            found = self._register(written)
            if found is not None:
                for byte in range(8):
                    self._make(found[0], byte, now)
        self._changed(now, before)
        if plain:
            self._copy(name, known, sources, accesses, kept, now)

    def _register(self, word: str) -> tuple[str, int] | None:
        """The register that a word of an instruction's names, and its bytes."""
        word = {"lr": "x30", "fp": "x29"}.get(word, word.removeprefix("ar."))
        word = re.sub(r"^(r\d+)b$", r"\1l", word)  # gdb's name
        whole, first, size = self._arch.slices.get(word, (word, 0, 8))
        return (whole, size) if whole in self.names and first == 0 else None

    def _make(self, name: str, byte: int, moment: Moment | None) -> None:
        if moment is None:
            self.made.pop(self.key(name, byte), None)
        else:
            self.made[self.key(name, byte)] = moment

    def _copy(
        self,
        name: str,
        known: list[tuple[str, int] | None],
        sources: dict[str, list[Moment | None]],
        accesses: list[Access],
        kept: dict[Key, Moment],
        now: Moment,
    ) -> None:
        loads = [one.address + at for one in accesses if not one.write for at in range(one.size)]
        stores = [one.address + at for one in accesses if one.write for at in range(one.size)]
        if stores:
            at = 0
            for one in known:
                if one is None:
                    continue
                share = len(stores) // (2 if name == "stp" else 1)
                for byte in range(share):
                    if at < len(stores):
                        self._set(("", stores[at]), sources[one[0]][byte])
                        at += 1
                if name != "stp":
                    break
            return
        targets = known[:2] if name == "ldp" else known[:1]
        share = len(loads) // len(targets) if targets else 0
        for number, target in enumerate(targets):
            if target is None:
                continue
            if loads:
                for byte in range(min(share, 8)):
                    address = loads[number * share + byte]
                    self._set(self.key(target[0], byte), kept.get(("", address)))
            elif len(known) == 2 and known[1] is not None:
                for byte in range(min(target[1], known[1][1])):
                    self._set(self.key(target[0], byte), sources[known[1][0]][byte])

    def _set(self, key: Key, moment: Moment | None) -> None:
        if moment is None:
            self.made.pop(key, None)
        else:
            self.made[key] = moment


def ends_there(links: tuple[OriginLink, ...], wanted: Moment | None, arch: str) -> bool:
    """True if a chain ends at a moment, or passes it by an instruction that the tracer ignores."""
    last = links[-1]
    if wanted is None:
        return last.end == "start"
    for link in links:
        if (link.clock, link.pc) == (wanted.clock, wanted.pc):
            name = re.sub(r"^\(p\d+\) |;;$", "", link.insn.split()[0])
            return bool(link.end) or re.fullmatch(_MOVES[arch], name) is None
    return False


@pytest.mark.parametrize(
    ("arch", "name", "end", "asked"),
    [
        ("x86_64", "structs", 60, 12),
        pytest.param("x86_64", "sort", 500, 40, marks=pytest.mark.slow),
        pytest.param("aarch64", "structs", 200, 40, marks=pytest.mark.slow),
        pytest.param("riscv64", "structs", 200, 40, marks=pytest.mark.slow),
        pytest.param("ia64", "recursion", 200, 40, marks=pytest.mark.slow),
    ],
)
def test_random_bytes(arch: str, name: str, end: int, asked: int) -> None:
    """Bytes of registers and of cells that were written, one by one."""
    choose = random.Random(5)
    wrong = []
    with recorded(SAMPLES / arch / name) as ran:
        with past(ran) as session:
            tracer = Tracer(session, Backwards(session))
            tracer.live(end)
            framed = 32 + (session.cpu.read_register("cfm") & 127 if arch == "ia64" else 0)
            made, key, names = tracer.made, tracer.key, tracer.names
            registers = [
                (register, byte, made.get(key(register, byte)))
                for register in choose.choices(
                    [one for one in names if any(key(one, byte) in made for byte in range(8))],
                    k=asked,
                )
                for byte in (choose.randrange(8),)
                if arch != "ia64" or int(register[1:]) < framed
            ]
            written = sorted(address for where, address in made if not where)
            cells = [("", one, made["", one]) for one in choose.choices(written, k=asked)]
        with past(ran) as session:
            backwards = Backwards(session)
            timeline = backwards.timeline
            timeline.seek_clock(end)
            begun = timeline.now()
            for register, first, wanted in [*registers, *cells]:
                links = backwards.origin(FollowedPlace(register, first, 1, 1000), None)
                assert timeline.now() == begun
                if not ends_there(links, wanted, arch):
                    wrong.append((register, hex(first), wanted, links))
    assert not wrong, "\n".join(map(str, wrong[:5]))


def test_what_a_call_has_read() -> None:
    """The byte of the call, and the place in the file."""
    guest = SAMPLES / "x86_64" / "lines"
    with recorded(guest, "foo", stdin=b"one foo\ntwo foo bar\n") as ran, past(ran) as session:
        backwards = Backwards(session)
        backwards.timeline.end()
        address = next(
            op[1]
            for entry in ran.journal
            for op in entry.ops
            if op[0] == Op.WRITE and b"foo" in op[2]
        )
        (link,) = backwards.origin(FollowedPlace("", address + 17, 1, 1000), None)
        assert link.what.endswith("byte 17: standard input at 0x11")
        assert (link.end, link.value, link.insn) == ("input", hex(ord("a")), "syscall")


@pytest.mark.parametrize("missed", [Stop(StopKind.QUANTUM), None])
def test_an_instruction_that_is_not_seen_at_first(
    monkeypatch: pytest.MonkeyPatch, missed: Stop | None
) -> None:
    """What is not seen at once is no computation: the same links come out."""
    with recorded(SAMPLES / "x86_64" / "structs") as ran, past(ran) as session:
        backwards = Backwards(session)
        backwards.timeline.seek_clock(60)
        tracer = Tracer(session, backwards)
        backwards.timeline.start()
        tracer.live(60)
        stack = session.cpu.read_register("rsp")
        cell = next(one for where, one in sorted(tracer.made) if not where and one > stack)
        wanted = backwards.origin(FollowedPlace("", cell, 1, 1000), None)
        assert len(wanted) > 1
        observe, asked = session.cpu.observe, list[Moment]()

        def late(
            places: Mapping[int, int], call: Callable[[], Stop | None] | None = None
        ) -> tuple[Stop | None, list[Access]]:
            if isinstance(places, dict):  # of the search for what has written
                return observe(places, call)
            asked.append(backwards.timeline.now())
            return (missed, []) if asked.count(asked[-1]) == 1 else observe(places)

        monkeypatch.setattr(session.cpu, "observe", late)
        assert backwards.origin(FollowedPlace("", cell, 1, 1000), None) == wanted
        assert asked


@pytest.mark.skipif(not native.lends(), reason="the host has no AVX2 to lend")
def test_through_vectors_of_avx(tmp_path: Path) -> None:
    """Halves are followed each for itself; what clears the upper one has made its zeros."""
    program = build(tmp_path, "copies", AVX.read_text(), "-nostdlib", "-static")
    symbols = ElfImage.open(program).once(SymbolTable)
    start, to = (symbols.find_all(name)[0].address for name in ("from", "to"))
    with recorded(program) as ran, past(ran) as session:
        backwards = Backwards(session)
        backwards.timeline.end()
        origins = dict.fromkeys(range(32), 0) | dict.fromkeys(range(32, 36), -24)
        origins |= dict.fromkeys(range(40, 48), -24) | dict.fromkeys(range(48, 52), -40)
        origins |= dict.fromkeys(range(96, 112), -80)
        for at, distance in origins.items():
            last = backwards.origin(FollowedPlace("", to + at, 1, 1000), None)[-1]
            assert (last.end, last.where) == ("start", f"{start + at + distance:#x}"), (at, last)
        for at in (64, 95):
            last = backwards.origin(FollowedPlace("", to + at, 1, 1000), None)[-1]
            assert (last.end, last.insn.split()[0]) == ("computation", "vaddps")
        last = backwards.origin(FollowedPlace("", to + 112, 16, 1000), None)[-1]
        assert (last.end, last.insn.split()[0]) == ("constant", "vmovdqu")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/usr/bin/cut").exists(), reason="no /usr/bin/cut here")
def test_through_the_buffers_of_libc() -> None:
    """What a program of Debian's writes is from the byte that it has read."""
    text = b"alpha one\nbravo two\ncharlie three\n"
    with recorded("/usr/bin/cut", "-c1-5", stdin=text) as ran, past(ran) as session:
        timeline = (backwards := Backwards(session)).timeline
        writes: list[tuple[int, int, int, int]] = []

        def enter(number: int, name: str, values: tuple[int, ...]) -> None:
            if name == "write" and values[0] == 1:
                writes.append((values[1], values[2], session.kernel.at, session.cpu.blocks()))

        session.hooks.syscall_enter = enter
        timeline.end()
        address, size, at, clock = writes[0]
        timeline.start()
        timeline.approach(at, clock, lambda: False)
        said = session.memory.read(address, size)
        assert said.startswith(b"alpha\nbravo\n")
        for index, wanted in ((2, 2), (7, 11)):
            links = backwards.origin(FollowedPlace("", address + index, 1, 1000), None)
            assert len(links) > 1
            assert links[-1].end == "input"
            assert links[-1].what.endswith(f"byte {wanted}: standard input at {wanted:#x}")
