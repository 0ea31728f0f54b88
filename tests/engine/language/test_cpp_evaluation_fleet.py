"""Expressions as a user types them over one program of C++, against what gdb 13 has answered.

The files `fleet.gdb` and `fleet_llvm.gdb` have gdb's answers, addresses blanked, to what both
answer alike: values with formats, casts, pointers to members, types, methods, print settings and
mistakes. The programs were built with g++ 12, with libstdc++ and with libc++ 14.
"""

from functools import cache
from pathlib import Path

import pytest
from cppkit import answers, built_for, golden
from runfolder import run_folder

pytestmark = pytest.mark.slow  # a program with many templates is compiled twice
START = ("break look", "run", "up")
GOLDEN = {"libstdc++": "fleet", "libc++": "fleet_llvm"}
OWN = {  # gdb has errors for these, shows what classes are made of, or reads the wrong bytes
    "p joined.same": "20",
    "p secret": "99",
    "p fleet::release": "22",
    "p fd::twice(2)": "4",
    "p grid(1, 2)": "(int &) @ADDRESS: 5",
    "p (double)price": "12.550000000000001",
    "p (int)price": "12",
    "p Money(5)": "{cents = 5}",
    "p Money{5}.cents": "5",
    "p Money(5) + tax": "{cents = 9505}",
    "p fleet::Truck(3, 4).axles": "4",
    "p fleet::Truck(3, 4).wheels()": "8",
    "p fleet::Truck(3, 4).name()": 'ADDRESS "truck"',
    "p big + 1": "1267650600228229401496703205377",
    "p/x rref": "(int &&) @ADDRESS: ADDRESS",
    "p np": "(std::nullptr_t) ADDRESS",
    "p np == 0": "true",
    "p sizeof(np)": "8",
    "p fun": "std::function<int(int)> = {target = ADDRESS <increment(int)>}",
    "p funl": "std::function<int(int, int)> containing main(int, char**)::<lambda(int, int)> ="
    " {target = {<No data fields>}}",
    "p ms": "std::chrono::duration = { 1500ms }",
    "p mins": "std::chrono::duration = { 3min }",
    'p s == "text"': "true",
    "p *v.begin()": "(int &) @ADDRESS: 5",
    "p v.end() - v.begin()": "3",
    'p mp["one"]': "std::vector of length 1, capacity 1 = {1}",
    'p mp["zzz"]': "There is no such key in the map.",
    "p mp.begin()->first": '"one"',
    'p um["k"]': "1",
    "p op->x": "7",
    "p *nop": "The optional holds no value.",
    "p (bool)op": "true",
    "p !nop": "true",
    "p (bool)ut": "true",
    "p !sp": "false",
    "p ut && 1": "true",
    "p std::get<0>(tp)": "1",
    "p std::get<1>(tp)": '"t"',
    "p std::get<5>(tp)": "std::get<5>: std::tuple<int, std::string> has 2 parts.",
    "p std::get<std::string>(tp)": '"t"',
    "p std::get<0>(pr)": "1",
    "p std::get<1>(ar)": "{x = 3, y = 4}",
    "p std::get<1>(var)": '"v"',
    "p std::get<0>(var)": "The variant holds its alternative 1.",
    "p std::get<std::string>(var)": '"v"',
    "p std::get<int>(var)": "It holds a value of type std::string.",
    "p std::any_cast<int>(any)": "5",
    "p std::any_cast<long>(any)": "It holds a value of type int.",
    "p fun(2)": "3",
    "p funl(2, 3)": "5",
    "p *vit": "(int &) @ADDRESS: 6",
    "p mit->second[0]": "1",
    "p uit->second": "1",
    "p vit - v.begin()": "1",
    "p span[1]": "6",
    "p mm[1][2].y": "4",
    "p sp.use_count()": "1",
    "p add(1, 2)": "3",
    "p adder(3)": "12",
    "p generic(1.5, 2.0)": "3.5",
    "p adder.cap": "6",
    "p adder.p.x": "3",
    "whatis Grid<int>": "type = Grid<int, 3>",
    "p sizeof(Grid<int>)": "40",
    "whatis Tank<fleet::Fuel::diesel>": "type = Tank<(fleet::Fuel)3>",
    "p sizeof(std::vector<int>)": "24",
    "p dynamic_cast<fleet::Truck &>(*vehicle).axles": "3",
    "p &fleet::Truck::wheels": "&virtual fleet::Truck::wheels() const",
    "p typeid(truck).name()": 'ADDRESS <typeinfo name for fleet::Truck> "N5fleet5TruckE"',
    "p maximum(3, 4)": "4",
    "p maximum(1.5, 2)": "2",
    "p kind_of('c')": "1",
    "p sum_all(1, 2, 3)": "1",
    "p fref(3)": "4",
    "p int(3.7)": "3",
}
ON_COPY = "set calls-on-copy on"
"""Calls change nothing that later ones see."""
LLVM_ONLY = {  # functions of iterators that libc++ has no code for in the program
    "p *v.begin()": "Cannot evaluate function -- may be inlined",
    "p v.end() - v.begin()": "Cannot evaluate function -- may be inlined",
    "p mp.begin()->first": "Cannot evaluate function -- may be inlined",
    "p vit - v.begin()": "Cannot evaluate function -- may be inlined",
}


@cache
def fleet(library: str) -> str:
    folder = run_folder("fleet") / library
    folder.mkdir(exist_ok=True)
    return built_for(library, "fleet", Path(folder))


@pytest.mark.parametrize("library", GOLDEN)
def test_expressions_read_as_in_gdb(library: str) -> None:
    wanted = golden(GOLDEN[library])
    found = answers(fleet(library), START, list(wanted))
    assert {key: (found[key], text) for key, text in wanted.items() if found[key] != text} == {}


@pytest.mark.parametrize("library", GOLDEN)
def test_what_gdb_does_not_answer(library: str) -> None:
    wanted = OWN | (LLVM_ONLY if library == "libc++" else {})
    assert answers(fleet(library), (*START, ON_COPY), list(wanted)) == wanted


INSIDE = {
    "p seen": "100",
    "p depth": "100",
    "p local": "{a = 2, b = 0.5}",
    "p times": "7",
    "p fleet::Inspector::made": "15",
    "p main::truck.axles": "3",
    "p 'main'::arr[2]": "3",
    "p fleet::Inspector::inspect::times": "7",
    "p main::nosuch": 'No symbol "nosuch" in specified context.',
    "p increment::n": "No frame is currently executing in block increment.",
}


def test_variables_of_other_functions_are_those_of_their_calls() -> None:
    start = ("break look", "run", "continue", "up")
    assert answers(fleet("libstdc++"), start, list(INSIDE)) == INSIDE


def test_lambdas_have_frames_of_their_own_name() -> None:
    start = ("break look", "run", "continue", "continue")
    found = answers(fleet("libstdc++"), start, ["bt 4"])["bt 4"].splitlines()
    inspect = "fleet::Inspector::inspect(fleet::Vehicle const&, int)::{lambda(int)#1}"
    assert inspect + "::operator()(int) const (__closure=" in found[2]
    assert inspect + "::operator()(int) const::{lambda()#1}::operator()() const (" in found[1]
