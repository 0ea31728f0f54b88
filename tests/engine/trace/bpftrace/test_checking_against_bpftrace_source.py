"""What is checked, against the semantic tests of bpftrace's own checker.

Only if KPROBE_TUI_BPFTRACE_SOURCE names a checkout of it (0.26). Run with -s to see the figures.
"""

import os
import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from scriptkit import PlainSurroundings, checked, definitions
from semanticcases import declared_types, literal, semantic_cases

from engine.trace.bpftrace.text import WrongScriptError
from engine.trace.bpftrace.tree import Assignment

SOURCE: Final = "KPROBE_TUI_BPFTRACE_SOURCE"

pytestmark = pytest.mark.skipif(not os.environ.get(SOURCE), reason=f"{SOURCE} is not set")

FUNCTIONS: Final = {
    "func_1": {
        "a": "int",
        "foo1": "struct Foo1 *",
        "foo2": "struct Foo2 *",
        "foo3": "struct Foo3 *",
        "foo4": "struct Foo4 *",
    },
    "func_2": {"a": "int", "b": "int *", "foo1": "struct Foo1 *"},
    "func_3": {"a": "int", "b": "int *", "foo1": "struct Foo1 *"},
    "tcp_shutdown": {"sk": "struct sock *", "how": "int"},
    "func_arrays": {"arr": "struct Arrays *"},
    "func_array_with_compound_data": {"arr": "struct ArrayWithCompoundData *"},
    "func_anon_struct": {
        "AnonStruct": "struct anon_structs *",
        "AnonTypedef": "AnonStructTypedef *",
    },
}
"""Functions of tests/data/data_source.c."""

ELSEWHERE: Final = re.compile(
    r"\bctx\b|\bsystem\(|\bdebugf\(|\boverride\(|\bskboutput\(|\bsocket_cookie\(|percpu_kaddr"
    r"|^\s*fn |\bfn \w+\(|&[$@]|__builtin_uaddr|\bfoo\(|\bbar\("
)
"""What is refused on purpose: BPF's own, functions of a script's own, addresses of variables."""


def test_semantic_tests() -> None:
    source = Path(os.environ[SOURCE])
    members = {
        "rawtracepoint:event_rt": {"first_real_arg": "long"},
        "tracepoint:sched:sched_one": {"common_field": "uint64"},
    }
    for provider in ("fentry", "fexit"):
        for name, arguments in FUNCTIONS.items():
            members[f"{provider}:{name}"] = members[f"{provider}:vmlinux:{name}"] = arguments
    surroundings = PlainSurroundings(
        definitions(declared_types(source)),
        members=members,
        results={"fexit:func_1": "struct Foo3 *", "fentry:func_1": "struct Foo3 *"},
    )
    environment = {"BPFTRACE_UNSTABLE_TYPEINFO": "enable", "BPFTRACE_UNSTABLE_TSERIES": "enable"}
    figures: Counter[str] = Counter()
    for case in semantic_cases(source):
        kind = "right" if case.error is None else "wrong"
        if ELSEWHERE.search(case.script) or case.flags & {"NoFeatures", "Types"}:
            figures["refused on purpose or asked of BPF"] += 1
            continue
        figures[kind] += 1
        try:
            words = ("123", "hello", "0x123") if "Mock" in case.flags else ()
            found = checked(
                case.script, *words, surroundings=surroundings, environment=environment
            )
        except WrongScriptError as error:
            if case.error is not None:
                figures["wrong, refused"] += 1
                text = case.error.strip("\n")
                if text:
                    first = text.splitlines()[0].rpartition("ERROR: ")[2]
                    figures["texts"] += 1
                    figures["texts equal"] += first in str(error)
                    figures["texts with places equal"] += text.rstrip() in str(error)
            else:
                print(f"refused: {case.script}\n{error}")
            continue
        if case.error is None:
            figures["right, accepted"] += 1
        else:
            print(f"accepted: {case.script}\n{case.error}")
        said = "\n".join(remark.text for remark in found.warnings)
        if case.warning is not None:
            figures["warnings"] += 1
            figures["warnings equal"] += case.warning.strip().partition("\n")[0] in "\n".join(
                "\n".join(remark.lines()) for remark in found.warnings
            )
        if case.no_warning:
            assert case.no_warning not in said, case.script
    print(dict(figures))
    assert figures["right, accepted"] >= 0.98 * figures["right"]
    assert figures["wrong, refused"] >= 0.95 * figures["wrong"]
    assert figures["texts equal"] >= 0.95 * figures["texts"]
    assert figures["warnings equal"] >= 0.95 * figures["warnings"]


def test_literals_are_folded_alike() -> None:
    text = (Path(os.environ[SOURCE]) / "tests" / "fold_literals.cpp").read_text()
    count = 0
    for match in re.finditer(r"\btest\(", text):
        expression, at = literal(text, match.end())
        value = re.match(
            r",\s*(Integer|NegativeInteger|Boolean)\((-?\w+?)(?:UL|ULL|LL)?\)\)", text[at:]
        )
        if expression is None or value is None or "{" in expression or "$" in expression:
            continue
        script = checked(f"begin {{ @ = {expression}; }}")
        (assigned,) = script.probes[0].body.statements
        assert isinstance(assigned, Assignment)
        wanted = value[2] == "true" if value[1] == "Boolean" else _number(value[2])
        if wanted is None:
            continue
        found = script.constants.get(assigned.value)
        assert (found, type(found)) == (wanted, type(wanted)), expression
        count += 1
    print(f"{count} literals")
    assert count > 150


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None  # a name of C++: its limits
