"""Symbols of built files, where every rule has its case, and of the small guests."""

import random
import struct
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.image import ElfImage, SymbolTable
from engine.image.index import named_rows
from engine.image.mangling import identifier, spellings
from engine.image.symtab import demangle, shown_place

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "bin"
BASE = 0x10000
FUNC, OBJECT, NOTYPE, SECTION, FILE, TLS, IFUNC = 2, 1, 0, 3, 4, 6, 10
LOCAL, GLOBAL, WEAK = 0, 1, 2
TEXT, DATA, ABS, UNDEF = 1, 2, 0xFFF1, 0


@dataclass
class Elf:
    """A program with .text at BASE, .data behind it, and the given symbols."""

    machine: int = 62
    bits: int = 64
    order: str = "<"
    rows: list[tuple[str, int, int, int, int, int]] = field(default_factory=list)
    dynamic: list[tuple[str, int, int, int, int, int]] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)

    def add(
        self,
        name: str,
        offset: int,
        size: int,
        kind: int = FUNC,
        binding: int = GLOBAL,
        section: int = TEXT,
    ) -> "Elf":
        self.rows.append((name, offset, size, kind, binding, section))
        return self

    def _table(self, rows: list[tuple[str, int, int, int, int, int]]) -> tuple[bytes, bytes]:
        strings = bytearray(b"\0")
        table = bytearray(24 if self.bits == 64 else 16)
        for name, offset, size, kind, binding, section in rows:
            value = offset if section == ABS or kind == TLS else BASE + offset
            info = binding << 4 | kind
            if self.bits == 64:
                entry = (len(strings), info, 0, section, value, size)
                table += struct.pack(self.order + "IBBHQQ", *entry)
            else:
                entry = (len(strings), value, size, info, 0, section)
                table += struct.pack(self.order + "IIIBBH", *entry)
            strings += name.encode() + b"\0"
        return bytes(table), bytes(strings)

    def image(self) -> ElfImage:
        wide = self.bits == 64
        head, phdr, shdr = (64, 56, 64) if wide else (52, 32, 40)
        symtab, strtab = self._table(self.rows)
        dynsym, dynstr = self._table(self.dynamic)
        versym = struct.pack(f"{self.order}{len(self.versions)}H", *self.versions)
        names = b"\0.text\0.data\0.symtab\0.strtab\0.dynsym\0.dynstr\0.gnu.version\0.shstrtab\0"
        contents = [
            (".text", 1, 6, BASE, bytes(0x1000), 0),
            (".data", 1, 3, BASE + 0x1000, bytes(0x1000), 0),
            (".symtab", 2 if self.rows else 1, 0, 0, symtab, 4),
            (".strtab", 3, 0, 0, strtab, 0),
            (".dynsym", 11 if self.dynamic else 1, 0, 0, dynsym, 6),
            (".dynstr", 3, 0, 0, dynstr, 0),
            (".gnu.version", 0x6FFFFFFF if self.versions else 1, 0, 0, versym, 5),
            (".shstrtab", 3, 0, 0, names, 0),
        ]
        body = bytearray(0x1000 - head - phdr)
        sections = [(0,) * 10]
        for name, kind, flags, address, data, link in contents:
            at = head + phdr + len(body)
            entsize = (24 if wide else 16) if kind in (2, 11) else 0
            index = names.index(name.encode() + b"\0")
            sections.append((index, kind, flags, address, at, len(data), link, 0, 1, entsize))
            body += data
        form = "IIQQQQIIQQ" if wide else "IIIIIIIIII"
        table = b"".join(struct.pack(self.order + form, *section) for section in sections)
        ident = b"\x7fELF" + bytes([self.bits // 32, 1 if self.order == "<" else 2, 1]) + bytes(9)
        shoff = head + phdr + len(body)
        fields = (2, self.machine, 1, BASE, head, shoff, 0, head, phdr, 1, shdr, 9, 8)
        words = "HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"
        header = ident + struct.pack(self.order + words, *fields)
        load = (1, 7, 0x1000, BASE, BASE, 0x2000, 0x2000, 0x1000)
        if not wide:
            load = (1, 0x1000, BASE, BASE, 0x2000, 0x2000, 7, 0x1000)
        segment = struct.pack(self.order + ("IIQQQQQQ" if wide else "IIIIIIII"), *load)
        return ElfImage.from_bytes(header + segment + bytes(body) + table, "built")

    def table(self) -> SymbolTable:
        return SymbolTable(self.image())


def at(table: SymbolTable, offset: int) -> str | None:
    found = table.at(BASE + offset)
    return found.name if found else None


LAYOUTS = [(62, 64, "<"), (3, 32, "<"), (22, 64, ">"), (8, 32, ">")]


@pytest.mark.parametrize(("machine", "bits", "order"), LAYOUTS)
def test_all_classes_and_byte_orders(machine: int, bits: int, order: str) -> None:
    table = Elf(machine, bits, order).add("main", 0x10, 0x20).add("var", 0x1000, 4, OBJECT).table()
    assert [(f.name, f.address, f.size) for f in table.functions()] == [("main", BASE + 16, 32)]
    assert at(table, 0x2F) == "main"
    assert at(table, 0x30) is None
    found = table.find("var")
    assert found is not None
    assert (found.kind, found.address) == ("object", BASE + 0x1000)
    assert table.image.section(".text") is not None


def test_the_innermost_sized_symbol_wins() -> None:
    elf = (
        Elf().add("outer", 0, 0x100).add("inner", 0x20, 0x10).add("label", 0x40, 0, NOTYPE, LOCAL)
    )
    table = elf.add("tail", 0x100, 0, NOTYPE).table()
    offsets = (0, 0x20, 0x2F, 0x30, 0x40, 0x41, 0xFF, 0x100, 0x800)
    assert [at(table, offset) for offset in offsets] == [
        *("outer", "inner", "inner", "outer", "outer", "outer", "outer"),
        *("tail", "tail"),
    ]
    assert at(table, 0x1000) is None, "a symbol without size ends with its section"
    assert at(table, -1) is None


def test_order_among_symbols_of_one_start() -> None:
    elf = Elf()
    for name, size, kind, binding in (
        ("data", 8, OBJECT, GLOBAL),
        ("label", 8, NOTYPE, GLOBAL),
        ("weak", 8, FUNC, WEAK),
        ("local", 8, FUNC, LOCAL),
        ("__strong", 8, FUNC, GLOBAL),
        ("_strong", 8, FUNC, GLOBAL),
        ("strong", 9, FUNC, GLOBAL),
        ("strong_too", 8, FUNC, GLOBAL),
    ):
        elf.add(name, 0x10, size, kind, binding)
    expected = ["strong_too", "strong", "_strong", "__strong", "local", "weak", "label", "data"]
    while elf.rows:
        assert at(elf.table(), 0x10) == expected.pop(0)
        shown = at(elf.table(), 0x10)
        elf.rows = [row for row in elf.rows if row[0] != shown]
    assert expected == []


def test_find_prefers_functions_then_default_versions_then_globals() -> None:
    elf = (
        Elf()
        .add("f", 0x50, 1, OBJECT)
        .add("f", 0x40, 1, FUNC, LOCAL)
        .add("f", 0x30, 1, FUNC, WEAK)
    )
    elf.add("f", 0x20, 1, FUNC, GLOBAL).add("f@OLD", 0x10, 1)
    found = elf.table().find_all("f")
    assert [s.address - BASE for s in found] == [0x20, 0x30, 0x40, 0x10, 0x50]
    assert [s.default for s in found] == [True, True, True, False, True]


def test_versions_in_both_tables() -> None:
    elf = Elf(versions=[0, 2, 0x8002])
    elf.dynamic = [
        ("memcpy", 0x10, 4, IFUNC, GLOBAL, TEXT),
        ("memcpy", 0x20, 4, FUNC, GLOBAL, TEXT),
    ]
    elf.add("memcpy@@NEW", 0x10, 4, IFUNC).add("memcpy@OLD", 0x20, 4).add("helper", 0x30, 4)
    table = elf.table()
    assert [(s.address - BASE, s.default) for s in table.find_all("memcpy")] == [
        (0x10, True),
        (0x20, False),
    ]
    assert len(table) == 3, "the same symbols in .dynsym do not count twice"
    elf.rows.clear()
    assert [s.default for s in elf.table().find_all("memcpy")] == [True, False]


def test_what_names_no_place_is_left_out() -> None:
    elf = Elf().add("file.c", 0, 0, FILE, LOCAL, ABS).add("", 0, 0, SECTION, LOCAL)
    elf.add("imported", 0, 0, FUNC, GLOBAL, UNDEF).add("f", 0x10, 4)
    table = elf.add("limit", 5, 0, NOTYPE, GLOBAL, ABS).add("tls", 8, 4, TLS, GLOBAL, DATA).table()
    assert sorted(symbol.name for symbol in table) == ["f", "limit", "tls"]
    assert table.find("file.c") is table.find("imported") is None
    limit, tls = table.find("limit"), table.find("tls")
    assert limit is not None
    assert tls is not None
    assert (limit.address, tls.address, tls.kind) == (5, 8, "tls")
    assert table.at(5) is None
    assert table.at(8) is None


@pytest.mark.parametrize("machine", [183, 243])
def test_mapping_symbols_are_no_names(machine: int) -> None:
    elf = Elf(machine).add("$x", 0x10, 0, NOTYPE, LOCAL).add("$d.1", 0x20, 0, NOTYPE, LOCAL)
    table = elf.add("f", 0, 0x30).table()
    assert [symbol.name for symbol in table] == ["f"]
    assert table.find("$x") is None
    assert Elf(62).add("$x", 0x10, 0, NOTYPE, LOCAL).table().find("$x") is not None


def test_the_thumb_bit_is_no_address_bit() -> None:
    table = Elf(40, 32).add("thumb", 0x11, 4).add("odd", 0x1001, 1, OBJECT).table()
    found, odd = table.find("thumb"), table.find("odd")
    assert found is not None
    assert odd is not None
    assert (found.address - BASE, odd.address - BASE) == (0x10, 0x1001)
    assert at(table, 0x10) == "thumb"


def test_assembly_labels_count_as_functions_unless_covered() -> None:
    elf = Elf().add("_start", 0, 0, NOTYPE).add("f", 0x10, 0x20).add("inside", 0x18, 0, NOTYPE)
    elf.add("local", 0x60, 0, NOTYPE, LOCAL).add("data", 0x1000, 0, NOTYPE, GLOBAL, DATA)
    table = elf.add("etext", 0x1000, 0, NOTYPE).table()
    assert [symbol.name for symbol in table.functions()] == ["_start", "f"]


def test_rows_that_name_nothing() -> None:
    """Kinds, sections and names of all sorts, beside the plain reading of each row."""
    chance = random.Random(3)
    elf = Elf()
    for number in range(400):
        kind = chance.choice((NOTYPE, OBJECT, FUNC, 3, 4, 5, TLS, 10, 13))
        section = chance.choice((0, TEXT, TEXT, 2, ABS, 0xFFF2, 0xFF00, 6))
        name = chance.choice(("", f"n{number}", f"func_0x{number:x}"))
        elf.add(name, chance.randrange(0x900), chance.randrange(9), kind, LOCAL, section)
    table = elf.table()
    found = sorted((symbol.name, symbol.address) for symbol in table)
    expected = [
        (name, offset if section == ABS or kind == TLS else BASE + offset)
        for name, offset, _, kind, _, section in elf.rows
        if name and section and kind in (NOTYPE, OBJECT, FUNC, 5, TLS, 10)
    ]
    assert found == sorted(expected)
    for low in range(BASE, BASE + 0x900, 0x35):
        high = low + 0x80
        every, stored = table.starts(low, high)
        inside = [symbol for symbol in table if low <= symbol.address < high]
        assert every == sorted({symbol.address for symbol in inside})
        named = (s.address for s in inside if not s.name.startswith("func_0x"))
        assert stored == sorted(set(named))


@pytest.mark.parametrize("end", [b"\0", b"x"])
def test_names_outside_of_the_string_table(end: bytes) -> None:
    strings = b"\0one\0\0two" + end
    names = [0, 1, 4, 5, 6, 8, len(strings) - 1, len(strings), 1 << 30]
    last = strings.rfind(b"\0")
    naive = bytes(0 < name < last and strings[name] != 0 for name in names)
    assert named_rows(names, strings) == naive
    assert named_rows(names[:5], strings) == naive[:5]


@pytest.mark.parametrize("guest", ["x86_64/structs", "aarch64/jumps", "riscv64/words"])
def test_spans_of_one_answer(guest: str) -> None:
    table = SymbolTable(ElfImage.open(SAMPLES / guest))
    text = table.image.section(".text")
    assert text is not None
    for address in range(text.addr - 8, text.addr + text.size + 8):
        symbol, low, high = table.span(address)
        assert low <= address < high
        assert symbol == table.at(address) == table.at(low) == table.at(high - 1)


def test_names_that_are_tails_of_others() -> None:
    elf = Elf().add("__read", 0x10, 4)
    image_table = elf.add("read", 0x10, 4).table()
    assert [s.name for s in image_table.find_all("read")] == ["read"]
    assert image_table.find("ead") is None
    assert image_table.complete("r", 5) == ["read"]


def test_completion_is_sorted_and_bounded() -> None:
    elf = Elf()
    for number in range(20):
        elf.add(f"name_{number:02}", number, 1).add(
            f"name_{number:02}", 64 + number, 1, FUNC, LOCAL
        )
    table = elf.add("other", 0x800, 1).table()
    assert table.complete("name_1", 3) == ["name_10", "name_11", "name_12"]
    assert table.complete("name_19", 3) == ["name_19"]
    assert table.complete("zebra", 3) == []
    assert table.complete("n", 0) == table.complete("n", -1) == []
    assert len(table.complete("", 1000)) == 21


MANGLED = {
    "_ZN2ns3BoxIiE4pushERKi": ["ns::Box<int>::push(int const&)", "ns::Box<int>::push"],
    "_Z3fooi": ["foo(int)", "foo"],
    "_Z1fIiEvT_": ["void f<int>(int)", "f<int>(int)", "f<int>", "f"],
    "_ZN3FooC1Ei": ["Foo::Foo(int)", "Foo::Foo"],
    "_ZNK3FooplERKS_": ["Foo::operator+(Foo const&) const", "Foo::operator+"],
    "_Znwm": ["operator new(unsigned long)"],
    "_ZNKSs4sizeEv": ["std::string::size() const", "std::string::size"],
    "_ZTV3Foo": ["vtable for Foo"],
    "_RNvNtCs1234_7mycrate3foo3bar": ["mycrate::foo::bar"],
    "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE": ["core::fmt::Formatter::pad"],
    "$s4main3fooyyF": ["main.foo() -> ()"],
}


@pytest.mark.parametrize("mangled", MANGLED)
def test_demangled_names_find_their_symbol(mangled: str) -> None:
    table = Elf().add("noise", 0, 4).add(mangled, 0x10, 4).add("_ZN5other3barEv", 0x20, 4).table()
    for name in MANGLED[mangled]:
        found = table.find(name)
        assert found is not None, name
        assert (found.name, found.demangled) == (mangled, MANGLED[mangled][0])
    assert table.find("nothing::like::it") is None


def test_a_real_name_goes_before_a_demangled_one() -> None:
    table = Elf().add("_Z3foov", 0, 4).add("foo", 0x10, 4).table()
    assert [s.name for s in table.find_all("foo")] == ["foo"]


def test_demangling_cannot_blow_up() -> None:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    name = "_Z1f1AIiiE"
    for level in range(25):  # each level doubles the text: 2 GiB in the end
        seq = 2 * level
        back = digits[seq // 36] * (seq >= 36) + digits[seq % 36]
        name += f"1AIS{back}_S{back}_E"
    assert demangle(name) == name
    assert demangle("main") == "main"
    assert demangle("_ZN3FooC1Ei@plt") == "Foo::Foo(int)@plt"


def test_words_and_spellings() -> None:
    assert identifier("ns::Box<int>::push(int const&)") == "push"
    assert identifier("operator new(unsigned long)") == ""
    assert "f (.cold)" not in spellings("f() (.cold)")
    assert spellings("f() (.cold)") == {"f() (.cold)"}
    nested = spellings("int ns::f<A<B<int> > >(A<B<int> >)")
    assert {"ns::f<A<B<int> > >", "ns::f<A<B<int>>>", "ns::f<A<B<int>>>(A<B<int>>)"} <= nested
    assert "operator>>" not in spellings("operator> >(A)")


def test_queries_that_are_no_names() -> None:
    table = Elf().add("f", 0, 4).table()
    for name in ("", "a\0b", "\udc80", "func_0xzz", "func_0x", "f" * 100_000, "((((", "<<<<"):
        assert table.find(name) is None


def test_the_offset_of_a_nul_is_no_name() -> None:
    image = Elf().add("f", 0, 4).add("g", 0x10, 4).image()
    data = bytearray(image.data(0, image.size))
    section = image.section(".symtab")
    assert section is not None
    struct.pack_into("<I", data, section.offset + 2 * 24, 2)  # behind "f"
    table = SymbolTable(ElfImage.from_bytes(bytes(data), "damaged"))
    assert [symbol.name for symbol in table] == ["f"]
    assert table.find("") is None


def test_data_beside_the_program_has_no_addresses() -> None:
    """As the linker's warnings in libc's debug file, which all begin at 0."""
    beside = 5  # .dynsym, which is plain data here, and not loaded
    table = Elf().add("f", 0, 4).add("__warning", 0x100, 45, 1, section=beside).table()
    assert (at(table, 2), at(table, 0x110)) == ("f", None)
    assert table.find("__warning") is None
    assert [symbol.name for symbol in table] == ["f"]


@pytest.mark.parametrize(("offset", "value"), [(24, 0x7FFFFFFF), (32, 1 << 60), (40, 99)])
def test_damaged_tables_are_a_problem_not_an_error(offset: int, value: int) -> None:
    image = Elf().add("f", 0, 4).image()
    data = bytearray(image.data(0, image.size))
    header = image.size - 9 * 64 + 3 * 64  # section 3 is .symtab
    struct.pack_into("<Q" if offset < 40 else "<I", data, header + offset, value)
    table = SymbolTable(ElfImage.from_bytes(bytes(data), "damaged"))
    assert table.find("f") is None
    assert len(table) == 0
    assert "section .symtab" in table.image.damage.found()[0]


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_stripped_programs_have_the_functions_of_their_unwind_table(
    guests: Path, arch: str
) -> None:
    named = SymbolTable(ElfImage.open(guests / arch / "unw-O2"))
    stripped = SymbolTable(ElfImage.open(guests / arch / "unw-O2strip"))
    ranges = [(s.address, s.size) for s in named.functions() if s.size]
    assert [(s.address, s.size) for s in stripped.functions()] == ranges
    for address, size in ranges:
        symbol = stripped.at(address + size - 1)
        assert symbol is not None
        assert symbol.name == f"func_{address:#x}"
        assert stripped.find(symbol.name) == symbol
        assert stripped.find(f"func_{address + 1:#x}") is None
    assert stripped.complete("func_", 3) == [f"func_{a:#x}" for a, _ in ranges[:3]]


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_stubs_of_a_static_program_are_named_after_their_resolvers(
    guests: Path, arch: str
) -> None:
    table = SymbolTable(ElfImage.open(guests / arch / "guests-static"))
    assert table.find("no_such_name@plt") is None
    assert "_stubs" not in vars(table)  # no table has such a string
    stub = table.find("memchr@plt")
    assert stub is not None
    assert stub.size in (8, 16, 24)
    assert table.at(stub.address + stub.size - 1) == stub
    assert stub not in list(table.functions())


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("_ZL4workRSt6vectorI4NodeSaIS0_EEi+0xf", "work+0xf"),
        ("_ZN3geo6Circle4areaEv", "geo::Circle::area"),
        ("main+0x4", "main+0x4"),
        ("shop.cc:24", "shop.cc:24"),
        ("0x401000", "0x401000"),
    ],
)
def test_places_are_shown_by_their_names_in_the_source(place: str, shown: str) -> None:
    assert shown_place(place) == shown
