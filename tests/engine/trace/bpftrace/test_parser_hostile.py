"""Scripts of strangers: whatever they nest, repeat or leave open, one error comes, and soon."""

from typing import Final

import pytest
from scripttrees import read

from engine.trace.bpftrace import tree
from engine.trace.bpftrace.c_definitions import CDefinitions
from engine.trace.bpftrace.operator_chains import MAX_HEIGHT
from engine.trace.bpftrace.text import MAX_SCRIPT, ScriptText, WrongScriptError

MANY: Final = 100_000
DEEP: Final = {
    "brackets": "begin { f(" + "(" * MANY,
    "braces": "begin " + "{" * MANY,
    "signs": "begin { f(" + "-" * MANY + "1) }",
    "nots": "begin { f(" + "!" * MANY + "1) }",
    "sums": "begin { f(1" + "+1" * MANY + ") }",
    "conditions": "begin { f(1" + "?1:1" * MANY + ") }",
    "branches": "begin { if (1) {} " + "else if (1) {} " * 200 + "}",
    "ifs": "begin { " + "if (1) {" * MANY,
    "indexes": "begin { f($x" + "[0]" * MANY + ") }",
    "fields": "begin { f($x" + ".a" * MANY + ") }",
    "calls": "begin { " + "f(" * MANY,
    "keys": "begin { " + "@[" * MANY,
    "casts": "begin { f(" + "(int8)" * MANY + "1) }",
    "stars": "begin { f((int8" + "*" * MANY + ")1) }",
    "types of types": "begin { f(" + "(typeof(" * MANY + "1) }",
    "loops": "begin { " + "for ($i : 0..1) {" * MANY,
    "predicate": "begin /" + "1/" * MANY + "{}",
    "structures": "struct {" * MANY,
    "pointers": "struct a { int " + "*" * MANY + "b; }; begin {}",
    "dimensions": "struct a { int b" + "[2]" * MANY + "; }; begin {}",
    "declarators": "struct a { int " + "(" * MANY + "b; }; begin {}",
    "#if": "#if " + "(" * MANY + "\nbegin {}",
    "macros": "#define A0 1\n"
    + "".join(f"#define A{at} A{at - 1}+A{at - 1}\n" for at in range(1, 60))
    + "begin { f(A59) }",
    "calls of macros": "#define A0(x) x+x\n"
    + "".join(f"#define A{at}(x) A{at - 1}(A{at - 1}(x))\n" for at in range(1, 40))
    + "begin { f(A39(1)) }",
    "one macro often": f'#define A "{"a" * MANY}"\nbegin {{ {"f(A);" * 20} }}',
}
OPEN: Final = {
    "a string": 'begin { f("' + "a" * MANY,
    "escapes": 'begin { f("' + "\\" * MANY,
    "a quote of a point": 'uprobe:"' + "a" * MANY,
    "slashes": "begin /" + "/" * MANY,
    "a number": "begin { f(" + "9" * MANY + ") }",
    "a power": "begin { f(1e" + "9" * MANY + ") }",
    "a point": "uprobe:" + "a" * MANY + ":f {}",
    "colons": "uprobe" + ":" * MANY + " {}",
    "NULs": "\0" * MANY,
    "all characters": "".join(chr(at % 256) for at in range(MANY)),
    "too long": " " * (MAX_SCRIPT + 1),
}


@pytest.mark.parametrize("name", [*DEEP, *OPEN])
def test_one_error(name: str) -> None:
    text = {**DEEP, **OPEN}[name]
    with pytest.raises(WrongScriptError) as caught:
        CDefinitions.of(read(text).definitions, ScriptText("stdin", text))
    assert len(caught.value.remarks) == 1
    assert caught.value.remarks[0].text
    assert len(str(caught.value)) < 3000, "who reads more?"


def test_many_alternatives_make_a_flat_tree() -> None:
    text = " || ".join(f"pid == {at}" for at in range(2000))
    predicate = read(f"begin /{text}/ {{ }}").probes[0].predicate
    assert predicate is not None
    assert _height(predicate) < MAX_HEIGHT / 2
    assert _leaves(predicate) == list(range(2000))


def _height(node: tree.Expression) -> int:
    if not isinstance(node, tree.Binary):
        return 1
    return 1 + max(_height(node.left), _height(node.right))


def _leaves(node: tree.Expression) -> list[int]:
    if isinstance(node, tree.IntegerLiteral):
        return [node.value]
    if isinstance(node, tree.Binary):
        return [*_leaves(node.left), *_leaves(node.right)]
    return []


def test_a_cast_that_is_none_is_read_once() -> None:
    text = "1"
    for _ in range(14):
        text = f"(typeof({text}) + 1)"  # each would double the work if it were read twice
    read(f"begin {{ f({text}) }}")
