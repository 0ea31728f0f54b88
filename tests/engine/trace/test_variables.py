"""Variables in definitions: the values of events against gdb's, and errors."""

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from archkit import COMPILED
from compiled import tool
from debugged import FUNCTIONS, PIE_BASE, ask_gdb, debugged, trace

from engine.arch.plan import Mode
from engine.errors import ProbeSyntaxError
from engine.fetch.variables import VariableError
from engine.image.datatypes import DataType, TypeKind
from engine.image.variables import Variable
from engine.session import GuestConfig
from engine.session.program.opening import OpenedProgram
from engine.session.program.verdicts import Verdicts
from engine.trace.definition import Definition, parse
from engine.trace.variables import ScopeVariables

_NUMBERS = (
    TypeKind.SIGNED,
    TypeKind.UNSIGNED,
    TypeKind.CHAR,
    TypeKind.UNSIGNED_CHAR,
    TypeKind.BOOL,
    TypeKind.ENUM,
)
_CHUNK = 100
_FIELD = re.compile(r' z(\d+)=("(?:[^"\\]|\\.)*"|\S+)')
_STACK = 0x7FF000000000


def verdicts_of(program: Path) -> Verdicts:
    """Judges places of the program."""
    opened = OpenedProgram.open(GuestConfig(guest=str(program)))
    return Verdicts(opened.arch, opened.inspected())


def parsed(program: Path, line: str, mode: Mode = Mode.STRICT) -> Definition:
    """One definition, read with the program's variables."""
    opened = OpenedProgram.open(GuestConfig(guest=str(program)))
    verdicts = Verdicts(opened.arch, opened.inspected(), mode)
    found = parse(line, opened.arch, mode=mode, lookup=verdicts.lookup)
    assert isinstance(found, Definition)
    return found


def expressions(name: str, kind: DataType, depth: int = 0) -> Iterator[str]:
    """Everything in a variable that is a number or a text; gdb reads the same words."""
    if kind.kind in _NUMBERS:
        yield name
    elif kind.kind is TypeKind.RECORD:
        for member in kind.member_names():
            found = kind.member(member)
            assert found is not None
            yield from expressions(f"{name}.{member}", found.type, depth + 1)
    elif kind.kind is TypeKind.POINTER:
        yield name
        if kind.target.kind in (TypeKind.CHAR, TypeKind.UNSIGNED_CHAR):
            yield f"{name}:string"
        elif kind.target.kind is TypeKind.RECORD and depth < 2:
            for text in expressions(name, kind.target, depth + 1):
                yield text.replace(f"{name}.", f"{name}->", 1)
    elif kind.kind is TypeKind.ARRAY and kind.count:
        if kind.element.kind in (TypeKind.CHAR, TypeKind.UNSIGNED_CHAR):
            yield f"{name}:string"
        else:
            yield from expressions(f"{name}[{kind.count - 1}]", kind.element, depth + 1)


def _agrees(shown: str, wanted: int | str) -> bool:
    if isinstance(wanted, str):
        return shown == f'"{wanted}"'
    value = int(shown, 0)
    # A signed bitfield is recorded without its sign, as the kernel does it.
    return any((value - wanted) % (1 << bits) == 0 for bits in (64, 32, 6))


@pytest.mark.parametrize(
    ("flags", "step"),
    [
        (("-O2",), 1),
        pytest.param(("-O0",), 3, marks=pytest.mark.slow),
        pytest.param(("-O2", "-gdwarf-4"), 2, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_events_show_what_gdb_prints(tmp_path: Path, flags: tuple[str, ...], step: int) -> None:
    """At instructions of three functions (each `step`th), all variables and what they lead to."""
    program = debugged("x86_64", *flags)
    verdicts = verdicts_of(program)
    asked: dict[int, list[str]] = {}
    events: list[tuple[int, list[str]]] = []
    for function in FUNCTIONS:
        (entry,) = verdicts.places.resolve(function)
        for place in list(verdicts.instructions(entry))[::step]:
            known = verdicts.lookup.scope_at(place)
            texts = [
                text
                for variable in _visible(known)
                for text in expressions(variable.name, variable.type)
            ]
            good = [text for text in texts if _is_known(known, text)]
            # At -O0 gdb does not know that the prologue has not stored the parameters.
            if "-O0" in flags and place.link == entry.link:
                good = []
            asked[place.link] = good
            events += [(place.link, good[at : at + _CHUNK]) for at in range(0, len(good), _CHUNK)]
    lines = [
        f"p:g/d{number} {link:#x} " + " ".join(f"z{i}={text}" for i, text in enumerate(texts))
        for number, (link, texts) in enumerate(events)
    ]
    (tmp_path / "definitions").write_text("\n".join(lines))
    shown: dict[tuple[int, str], list[str]] = defaultdict(list)
    for line in trace(program, "-e", f"@{tmp_path / 'definitions'}").splitlines():
        if match := re.search(r": d(\d+): \(", line):
            link, texts = events[int(match[1])]
            for index, value in _FIELD.findall(line):
                shown[link, texts[int(index)]].append(value)
    told = ask_gdb(program, {"places": asked, "bias": PIE_BASE})
    wrong, right = [], 0
    hits: dict[int, int] = defaultdict(int)
    for address, values in told:
        hit, hits[address] = hits[address], hits[address] + 1
        for text, wanted in values.items():
            if wanted is None or (isinstance(wanted, int) and wanted > _STACK):
                continue  # gdb knows less of inlined functions' surroundings; stacks differ
            value = shown[address, text][hit]
            if _agrees(value, wanted):
                right += 1
            elif text not in _UNSET:
                wrong.append((hex(address), hit, text, wanted, value))
    assert not wrong[:5]
    assert right > 300


_UNSET = ("local", "w")
"""What unoptimised code has not set yet is what the stack holds by chance."""


def _visible(known: ScopeVariables) -> tuple[Variable, ...]:
    try:
        return known.visible()
    except VariableError:
        return ()


def _is_known(known: ScopeVariables, text: str) -> bool:
    try:
        known.resolve(text.removesuffix(":string"))
    except VariableError:
        return False
    return True


# -- what the program is known to compute, on both architectures -------------------------

WORK = (
    ("n->id", "s32", ["1", "2", "4"]),
    ("n->flags", "", ["5"] * 3),
    ("n->mode", "", ["17"] * 3),
    ("n->name", "string", ['"first"'] * 3),
    ("n->in.a", "", ["-2"] * 3),
    ("n->in.b", "", ["200"] * 3),
    ("n->next->name", "", ['"second"'] * 3),
    ("n->color", "", ["5"] * 3),
    ("n->arr", "", ["{10,-20,30,40}"] * 3),
    ("n->arr[1]", "", ["-20"] * 3),
    ("*n->next->arr", "", ["4"] * 3),
    ("n->label", "string", ['"label1"'] * 3),
    ("n->big", "", [str(0x123456789A)] * 3),
    ("n->u_i", "", ["42"] * 3),
    ("n->weight", "", ["1.5"] * 3),
    ("n->weight", "x64", ["0x3ff8000000000000"] * 3),
    ("k", "", ["1", "4", "7"]),
    ("k", "x8", ["0x1", "0x4", "0x7"]),
    ("msg", "string", ['"hello"'] * 3),
    ("c", "", ["250", "251", "252"]),
    ("z", "", ["0", "-5", "-10"]),
)


@pytest.mark.parametrize("flags", ["-O0", "-O2"])
@pytest.mark.parametrize("arch", COMPILED)
def test_entries_show_the_known_values(arch: str, flags: str) -> None:
    program = debugged(arch, flags)
    args = [
        f"z{number}={text}{':' if kind else ''}{kind}"
        for number, (text, kind, _) in enumerate(WORK)
    ]
    text = trace(
        program,
        *("-e", "p:g/work work " + " ".join(args)),
        *("-e", "p:g/byval byval a=i.a b=i.b q"),
        *("-e", "p:g/many many $arg*"),
        *("-e", "p:g/arg many g=$arg7 h=+0($arg8):string f=$arg6:s32"),
    )
    values = defaultdict(list)
    for line in text.splitlines():
        for index, value in _FIELD.findall(line):
            values[int(index)].append(value)
    assert [values[number] for number in range(len(WORK))] == [row[2] for row in WORK]
    assert re.search(r" byval: .* a=-2 b=200 q=5$", text, re.MULTILINE)
    assert re.search(r" many: .* a=1 b=2 c=3 d=4 e=5 f=6 g=-7 h=0x", text)
    assert re.search(r' arg: .* g=0x[0-9a-f]*fff9 h="zed" f=6$', text, re.MULTILINE)


def test_returns_have_the_entrys_arguments() -> None:
    text = trace(
        debugged("x86_64", "-O2"), "-e", "r:g/r work n->arr[1] k msg:string z $retval:s32"
    )
    found = re.findall(r' k=(\d+) msg="(\w+)" z=(-?\d+)', text)
    assert found == [("1", "hello", "0"), ("4", "hello", "-5"), ("7", "hello", "-10")]
    assert text.count("arg1=-20 ") == 3


def test_an_inlined_function_is_probed_at_all_its_copies() -> None:
    text = trace(debugged("x86_64", "-O0"), "-e", "p:g/t twice v counter")
    found = re.findall(r" v=(\d+) counter=(\d+)", text)
    assert found == [("1", "7"), ("1", "9"), ("4", "13"), ("2", "21"), ("7", "29"), ("4", "43")]


def test_star_is_every_parameter_that_can_be_recorded() -> None:
    program = debugged("x86_64", "-O0")
    assert [a.name for a in parsed(program, "p:g/e work $arg*").args] == [
        "n",
        "k",
        "msg",
        "c",
        "d",
        "z",
    ]
    assert [a.name for a in parsed(program, "p:g/e byval $arg* i.a").args] == ["q", "arg2"]


CPLUSPLUS = """
#include <cstdio>
#include <string>
struct Base { int kind; virtual ~Base() {} };
struct Item : Base {
  long price; bool sold; char tag; Item *next;
  Item(int k, long p) : price(p), sold(true), tag('q'), next(nullptr) { kind = k; }
  __attribute__((noinline)) long cost(int n, const std::string &s) const;
};
long Item::cost(int n, const std::string &s) const { return price * n + (long)s.size(); }
struct Pt { int x, y; };
struct Big { long a[4]; int z; };
enum class Mode : unsigned char { Off, On = 3 };
extern "C" __attribute__((noinline)) Big make(int seed, Pt p, Mode m, Big b, std::string s,
                                              double d, float f, int last) {
  b.z = seed + p.x * p.y + (int)m + last + (int)s.size() + (int)d;
  return b;
}
int main() {
  Item it(4, 1000), jt(5, -7);
  it.next = &jt;
  Big b{{1, 2, 3, 4}, 5};
  auto r = make(9, {3, -2}, Mode::On, b, "hello", 1.5, 2.5f, 77);
  printf("%ld %d", it.cost(6, "abc"), r.z);
}
"""


def test_objects_of_cplusplus(tmp_path: Path) -> None:
    """`this`, base classes, what is passed by a hidden reference, results in memory."""
    compiler = tool("g++")
    program = tmp_path / "objects"
    (tmp_path / "objects.cc").write_text(CPLUSPLUS)
    command: list[str | Path] = [compiler, "-g", "-O0", "-o", program, tmp_path / "objects.cc"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"g++ cannot build: {done.stderr[-200:]}")
    text = trace(
        program,
        *("-e", "p:g/c Item::cost this->kind this->price this->sold this->tag:char n"),
        *("-e", "p:g/n Item::cost this->next->kind a=this->next->price s->_M_string_length"),
        *("-e", "p:g/m make seed x=p.x m b.a[3] b.z last s._M_string_length"),
    )
    assert re.search(r" c: .* arg1=4 arg2=1000 arg3=1 arg4='q' n=6$", text, re.MULTILINE)
    assert re.search(r" n: .* arg1=5 a=-7 arg3=3$", text, re.MULTILINE)
    assert re.search(r" m: .* seed=9 x=3 m=3 arg4=4 arg5=5 last=77 arg7=5$", text, re.MULTILINE)


RUST = """
pub struct Point { x: i32, y: i32 }
pub struct Account { total: u64, flag: bool, at: Point, items: Vec<u32> }
#[no_mangle]
#[inline(never)]
pub fn add(account: &mut Account, n: u32, s: &str, b: bool) -> u64 {
    account.total += n as u64 + s.len() as u64;
    account.items.push(n);
    if b { account.at.x += 1; }
    account.total + account.at.y as u64
}
fn main() {
    let mut a = Account { total: 5, flag: true, at: Point { x: 1, y: 2 }, items: vec![7, 8] };
    let mut t = 0;
    for i in 0..3 { t += add(&mut a, i * 7, "text", i % 2 == 0); }
    println!("{} {}", t, a.flag);
}
"""


def test_values_of_rust(tmp_path: Path) -> None:
    """Unoptimised: references, slices and scalars in the order that C passes them too."""
    rustc = tool("rustc")
    (tmp_path / "guest.rs").write_text(RUST)
    command: list[str | Path] = [rustc, "-g", "-o", tmp_path / "guest", tmp_path / "guest.rs"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"rustc cannot build: {done.stderr[-200:]}")
    text = trace(
        tmp_path / "guest",
        *("-e", "p:g/e add account->total account->flag account->at.y account->items.len"),
        *("-e", "p:g/a add n s.length b"),
    )
    found = re.findall(r" e: .* arg1=(\d+) arg2=1 arg3=2 arg4=(\d+)", text)
    assert found == [("5", "2"), ("9", "3"), ("20", "4")]
    assert re.findall(r" n=(\d+) arg2=4 b=(\d)", text) == [("0", "1"), ("7", "0"), ("14", "1")]


# -- errors ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        ("work ^nobody", "NO_BTFARG", "known here: local, n, k, msg, c, d, z"),
        ("work a=^nobody->x", "NO_BTFARG", "known here"),
        ("work n->^nothing", "NO_BTF_FIELD", "id, flags, mode"),
        ("work n->next->^nothing:u8", "NO_BTF_FIELD", "struct node"),
        ("work k->^x", "NO_PTR_STRCT", "int is no pointer"),
        ("work n^-id", "BAD_HYPHEN", ""),
        ("work ^*n", "NOSUP_DAT_ARG", "name a member"),
        ("work ^k:string", "BAD_TYPE4STR", "char"),
        ("work ^local", "NO_BTFARG", "FILE:LINE"),
        ("many ^$arg99", "BAD_ARG_NUM", ""),
        ("work n->arr^[x]", "BAD_FETCH_ARG", "NUMBER"),
    ],
)
def test_errors_point_at_what_is_wrong(words: str, code: str, why: str) -> None:
    program = debugged("x86_64", "-O0")
    line = "p:g/e " + words
    if code == "BAD_ARG_NUM":
        line = line.replace("99", "0")
    with pytest.raises(ProbeSyntaxError) as caught:
        parsed(program, line.replace("^", "", 1))
    assert caught.value.code == code
    assert caught.value.column == line.index("^")
    assert why in caught.value.why


def test_without_debug_information_there_is_no_variable(tmp_path: Path) -> None:
    program = debugged("x86_64", "-O0", "-g0")
    with pytest.raises(ProbeSyntaxError) as caught:
        parsed(program, "p:g/e work n")
    assert caught.value.code == "NOSUP_BTFARG"
    assert "no debug information" in caught.value.why


def test_an_unknown_place_is_blamed_before_its_variables() -> None:
    with pytest.raises(ProbeSyntaxError) as caught:
        parsed(debugged("x86_64", "-O0"), "p:g/e wrok n")
    assert (caught.value.code, caught.value.column) == ("BAD_PROBE_ADDR", 6)


def test_uprobes_know_no_variables_in_kernel_mode() -> None:
    program = debugged("x86_64", "-O2")
    (place,) = verdicts_of(program).places.resolve("work")
    line = f"p:g/e {program}:{place.file_offset:#x} k"
    assert parsed(program, line).args[0].base.register == "rsi"
    with pytest.raises(ProbeSyntaxError) as caught:
        parsed(program, line, Mode.KERNEL)
    assert caught.value.code == "NOSUP_BTFARG"
