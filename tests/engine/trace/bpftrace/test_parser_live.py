"""Trees of expressions against those of the machine's own bpftrace (0.17; its option -d).

Only if KPROBE_TUI_LIVE_KERNEL is set, where there is a bpftrace; it needs root.
"""

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Final

import pytest
from scripttrees import read

from engine.trace.bpftrace import tree

LIVE: Final = "KPROBE_TUI_LIVE_KERNEL"
SIGNS: Final = (*"+-*/%&|^<>", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||")
LEAVES: Final = ("1", "0x1f", "1e3", "$x", "$y", "@y", "@z[1]", '@w["a", 2]', "pid", "arg0", '"s"')
MEMBERS: Final = ("args.a", "$x.b.c", "@y.d", "((struct foo *)$x).q", "$x[1]", "$x[2][3]")
STEPS: Final = ("$x++", "++$x", "@y--", "--@z[1]")
TYPES: Final = ("uint8", "int64", "struct foo", "struct foo *", "uint64 *")

pytestmark = pytest.mark.skipif(
    not os.environ.get(LIVE) or shutil.which("bpftrace") is None,
    reason=f"{LIVE} is not set, or there is no bpftrace",
)


def test_trees_are_those_of_bpftrace() -> None:
    choice = random.Random(3)
    compared = 0
    for _ in range(60):
        texts = [_expression(choice, choice.randrange(1, 5)) for _ in range(4)]
        native = _native(texts)
        if native is None:  # one of them is too much for it
            continue
        for text, expected in zip(texts, native, strict=True):
            (statement,) = read(f"BEGIN {{ $v = {text}; }}").probes[0].body.statements
            assert isinstance(statement, tree.Assignment)
            assert list(_lines(statement.value, 3)) == expected, text
            compared += 1
    assert compared > 100


def _expression(choice: random.Random, depth: int) -> str:
    def inner() -> str:
        return _expression(choice, depth - 1)

    kind = choice.random() if depth else 0.0
    if kind < 0.15:
        return choice.choice((*LEAVES, *MEMBERS, *STEPS))
    if kind < 0.6:
        return f"{inner()} {choice.choice(SIGNS)} {inner()}"
    if kind < 0.7:
        return f"({inner()})"
    if kind < 0.78:
        return f"{choice.choice('!~*')} ({inner()})"
    if kind < 0.85:
        return f"{inner()} ? {inner()} : {inner()}"
    if kind < 0.92:
        return f"({choice.choice(TYPES)})({inner()})"
    return f"ksym({', '.join(inner() for _ in range(choice.randrange(3)))})"


def _native(texts: list[str]) -> list[list[str]] | None:
    """Lines of the tree of each expression."""
    script = " ".join(f"$v{at} = {text};" for at, text in enumerate(texts))
    done = subprocess.run(
        ["bpftrace", "-d", "-e", f"BEGIN {{ {script} }}"],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    _, found, whole = done.stdout.partition("AST after: parser\n")
    if not found:
        return None
    whole = re.sub(r" :: .*", "", whole.partition("\n\n")[0])
    parts = re.split(r"^  =\n   variable: \$v\d+\n", whole, flags=re.MULTILINE)[1:]
    return [part.rstrip("\n").split("\n") for part in parts] if len(parts) == len(texts) else None


def _lines(node: object, depth: int) -> Iterator[str]:
    """A tree as bpftrace 0.17 prints it."""
    name, below, behind = _shown(node)
    if isinstance(node, tree.Increment) and not node.before:
        yield from _lines(node.target, depth)
        yield f"{' ' * (depth + 1)}{node.operator}"
        return
    yield " " * depth + name
    for one in below:
        yield from _lines(one, depth + 1)
    if behind:
        yield f"{' ' * (depth + 1)}{behind}"


def _shown(node: object) -> tuple[str, tuple[object, ...], str]:
    match node:
        case tree.IntegerLiteral():
            return f"int: {node.value}", (), ""
        case tree.StringLiteral():
            return f"string: {node.value.decode()}", (), ""
        case tree.Name():
            return f"builtin: {node.name}", (), ""
        case tree.ScratchName():
            return f"variable: ${node.name}", (), ""
        case tree.MapName():
            return f"map: @{node.name}", (), ""
        case tree.MapAccess():
            key = node.key
            keys = key.elements if isinstance(key, tree.TupleLiteral) else (key,)
            return f"map: @{node.map.name}", keys, ""
        case tree.Unary():
            return node.operator.replace("*", "dereference"), (node.operand,), ""
        case tree.Increment():
            return node.operator, (node.target,), ""
        case tree.Binary():
            return node.operator, (node.left, node.right), ""
        case tree.Conditional():
            return "?:", (node.condition, node.then, node.otherwise), ""
        case tree.Cast() if isinstance(node.type, tree.WrittenType):
            return f"({node.type.name}{'*' * len(node.type.suffixes)})", (node.operand,), ""
        case tree.FieldAccess():
            return ".", (node.of,), node.name
        case tree.Index():
            return "[]", (node.of, node.index), ""
        case tree.CallExpression():
            return f"call: {node.name}", node.arguments, ""
    raise AssertionError(node)
