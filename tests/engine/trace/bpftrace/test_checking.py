"""What checking finds out: types, conversions, constants, groups of places, warnings."""

from collections.abc import Iterator

import pytest
from scriptkit import PlainSurroundings, checked, definitions

from engine.trace.bpftrace.checked import CheckedScript
from engine.trace.bpftrace.macros import parts
from engine.trace.bpftrace.text import WrongScriptError
from engine.trace.bpftrace.tree import (
    Binary,
    CallExpression,
    FieldAccess,
    IntegerLiteral,
    MapAccess,
    MapName,
    Name,
    RecordLiteral,
    ScriptNode,
    StringLiteral,
    Unary,
)
from engine.trace.bpftrace.type_rules import type_name
from engine.trace.bpftrace.types import BOOL, INT64, UINT64, Integer


def nodes(script: CheckedScript) -> Iterator[ScriptNode]:
    waiting: list[ScriptNode] = [each.body for each in reversed(script.probes)]
    waiting += [each.predicate for each in script.probes if each.predicate is not None]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(parts(node))


def map_types(script: CheckedScript) -> dict[str, str]:
    return {
        name: f"{type_name(each.key) if each.key else '-'} {type_name(each.value)}"
        for name, each in script.maps.items()
    }


def test_types_of_maps() -> None:
    for script, expected in (
        ("begin { @x = 1; }", {"x": "- int8"}),
        ("begin { @x = 1; @x = 300; }", {"x": "- int16"}),
        ("begin { @x = 1; @x = (uint32)2; }", {"x": "- uint32"}),
        ("begin { @x = (uint32)1; @x = (int32)2; }", {"x": "- int64"}),
        ('begin { @x["a", 1] = 1; @x["abc", -300] = 2; }', {"x": "(string[4],int16) int8"}),
        ("begin { @x++; }", {"x": "- int64"}),
        ("begin { @x += 1; }", {"x": "- int64"}),
        ("begin { @x = (uint64)0; @x += (uint64)1; }", {"x": "- uint64"}),
        ("begin { @x[pid] = count(); }", {"x": "uint32 count_t"}),
        ("begin { @x = sum(-1); @y = sum((uint8)1); }", {"x": "- sum_t", "y": "- usum_t"}),
        ("begin { @x = hist(1, 3); }", {"x": "- hist_t"}),
        ("begin { @x = count(); @y = (int64)@x; }", {"x": "- count_t", "y": "- int64"}),
        ("begin { @x = count(); $y = @x; @z = $y; }", {"x": "- count_t", "z": "- uint64"}),
        ("begin { print(@x[1]); } end { @x[300] = (1, comm); }", {"x": "int16 (int8,string[16])"}),
        ("begin { @x[comm, kstack(perf, 3)] = 1; }", {"x": "(string[16],kstack_perf_3) int8"}),
        ('begin { @x = (a=1, b="c"); }', {"x": "- record { .a = int8, .b = string[2] }"}),
        ("begin { @x = nsecs; @y = ntop(1); }", {"x": "- uint64", "y": "- inet[24]"}),
        ("begin { $x = 1; @x = $x; $x = 70000; }", {"x": "- int32"}),
        ("begin { @x[(int8)3, 4] = 1; delete(@x, (1, 2)); }", {"x": "(int8,int8) int8"}),
    ):
        assert map_types(checked(script)) == expected, script


def test_conversions_are_where_values_stand() -> None:
    script = checked("begin { @c = count(); $big = (uint32)5; @x = (int64)1; @x = $big; }")
    found = [type_name(kind) for kind in script.conversions.values()]
    assert found == ["int64"]
    script = checked("begin { @c = count(); if (@c > 5) { } print((1, @c)); }")
    read = [node for node in script.conversions if isinstance(node, MapName)]
    assert len(read) == 2
    assert [script.conversions[node] for node in read] == [UINT64, UINT64]


def test_all_expressions_of_an_action_have_types() -> None:
    script = checked(
        "uprobe:/bin/app:work / args.count > 2 / { $x = args.name; @[str($x)] = hist(nsecs / 2);"
        ' if (pid == 1 && comm == "a") { printf("%d %s", arg0 + 1, func); } }'
    )
    for node in nodes(script):
        if isinstance(
            node, Binary | CallExpression | FieldAccess | StringLiteral | IntegerLiteral | Name
        ):
            inside = isinstance(node, Name) and node.name == "args"
            assert inside or node in script.types, node


def test_constants_are_literals() -> None:
    script = checked(
        "begin { print(sizeof(uint32)); print(offsetof(struct task_struct, pgid)); print($1 + 2);"
        ' print(str($2)); print($#); print(-5); print(getopt("n", 7)); print(comptime 3 * 4);'
        " print(probetype); print(1 < 2); }",
        "40",
        "word",
        "--n=8",
    )
    values = [
        script.constants[argument]
        for node in nodes(script)
        if isinstance(node, CallExpression) and node.name == "print"
        for argument in node.arguments
    ]
    assert values == [4, 4, 42, b"word", 2, -5, 8, 12, b"special", True]


def test_functions_have_one_spelling() -> None:
    script = checked(
        "begin { @x[1] = 1; delete(@x[1]); delete(@x, 1); @s = 1; delete(@s); @a = pid();"
        " @b = kstack(perf, 3); @c = __builtin_cpu; print(@x, 5, 2); print(@x[1]); }"
    )
    calls = [node for node in nodes(script) if isinstance(node, CallExpression)]
    deletes = [[type(each) for each in call.arguments] for call in calls if call.name == "delete"]
    assert deletes == [[MapName, IntegerLiteral]] * 2 + [[MapName]]
    prints = [[type(each) for each in call.arguments] for call in calls if call.name == "print"]
    assert prints == [[MapName, IntegerLiteral, IntegerLiteral], [MapAccess]]
    names = [node.name for node in nodes(script) if isinstance(node, Name)]
    assert names == ["pid", "perf", "cpu"]


def test_args_as_a_whole_is_a_record() -> None:
    script = checked("uprobe:/bin/app:work { print(args); print((*args).count); }")
    (record,) = [node for node in nodes(script) if isinstance(node, RecordLiteral)]
    assert [name for name, _ in record.fields] == ["count", "name"]
    fields = [node for node in nodes(script) if isinstance(node, FieldAccess)]
    assert [(type(field.of), field.name) for field in fields] == [
        (Name, "count"),
        (Name, "name"),
        (Name, "count"),
    ]


def test_a_negative_constant_is_a_sign_and_a_number() -> None:
    script = checked("begin { @x = 2 - 5; }")
    (negative,) = [node for node in nodes(script) if isinstance(node, Unary)]
    assert script.constants[negative] == -3
    assert script.types[negative] == Integer(8, signed=True)


def test_comptime_is_decided_once_types_are_known() -> None:
    script = checked(
        "begin { $x = comm; if comptime (is_str($x)) { print(1); } else { print($x + 1); } }"
    )
    assert [node.name for node in nodes(script) if isinstance(node, CallExpression)] == ["print"]
    script = checked('begin { @m[1] = 2; if comptime is_scalar(@m) { fail("no"); } print(1); }')
    assert [node.name for node in nodes(script) if isinstance(node, CallExpression)] == ["print"]


def test_a_type_that_was_asked_for_cannot_change() -> None:
    with pytest.raises(WrongScriptError, match=r"this type has been locked"):
        checked("begin { $x = 1; if comptime (sizeof($x) == 1) { $x = 300; } }")


def test_places_whose_args_differ_are_probes_of_their_own() -> None:
    surroundings = PlainSurroundings(
        definitions(),
        globs={"tracepoint:g:*": ["tracepoint:g:a", "tracepoint:g:b", "tracepoint:g:c"]},
        members={
            "tracepoint:g:a": {"x": "int"},
            "tracepoint:g:b": {"x": "char *"},
            "tracepoint:g:c": {"x": "int"},
        },
    )
    script = checked("tracepoint:g:* { print(args.x); }", surroundings=surroundings)
    assert [[point.text for point in probe.points] for probe in script.probes] == [
        ["tracepoint:g:a", "tracepoint:g:c"],
        ["tracepoint:g:b"],
    ]
    kinds = [
        type_name(script.types[node]) for node in nodes(script) if isinstance(node, FieldAccess)
    ]
    assert kinds == ["int32", "int8 *"]


def test_what_is_not_offered_is_refused_at_its_place() -> None:
    surroundings = PlainSurroundings(definitions(), refused={"hardware": "no counters here"})
    with pytest.raises(WrongScriptError, match=r"1:1-30: ERROR: no counters here"):
        checked("hardware:cache-misses:1000000 { }", surroundings=surroundings)


def test_declared_maps() -> None:
    script = checked("let @x = lruhash(10); let @y = hash(5); begin { @x[1] = 1; }")
    assert (script.maps["x"].kind, script.maps["x"].entries) == ("lruhash", 10)
    assert [remark.text for remark in script.warnings] == ["Unused map: @y"]


def test_variables_of_two_blocks_are_two() -> None:
    script = checked('begin { if (1) { $x = 1; } else { $x = "a"; } }')
    assert sorted(map(type_name, script.variable_types[0].values())) == ["int8", "string[2]"]
    assert len(set(script.variables.values())) == 2


def test_warnings() -> None:
    for script, text in (
        ("begin { $x = (uint64)1; $x = (int64)2; }", "being cast to type: int64"),
        ("begin { pid; }", "Return value discarded."),
        ("begin { return; print(1); }", "Unreachable statement."),
        ("begin { let $x; }", "Variable $x was never assigned to."),
        ("begin { let $x; print($x); $x = 1; }", "Variable used before it was assigned: $x"),
        ("begin { print($1); }", "Positional parameter $1 is empty or not provided."),
        ("begin { @x = tseries(1, 1s, 5); }", "Script is using an unstable feature: tseries."),
        ("begin { print((int64)(int64)1); }", "Unnecessary cast"),
        ("begin { print(str(0, 2000)); }", "is too long and will be shortened to 1024 bytes"),
    ):
        assert any(text in remark.text for remark in checked(script).warnings), script


def test_a_feature_that_may_change_is_told_once_and_without_a_place() -> None:
    (remark,) = checked("begin { @x = tseries(1, 1s, 5); @x = tseries(2, 1s, 5); }").warnings
    (line,) = remark.lines()
    assert line.startswith("WARNING: Script is using an unstable feature: tseries. ")


def test_an_option_that_nobody_asks_for() -> None:
    script = 'begin { print((getopt("n", 1), getopt("s", "x", "A text"))); }'
    for words, expected in (
        (
            ("--m=1", "--k"),
            "ERROR: unexpected program command line options: --m, --k\n"
            "HINT: expected program options: --n, --s",
        ),
        (("--help",), "HINT: expected program options:\n--n\n--s: A text"),
        (("--n=x",), "ERROR: program command line option --n invalid integer (value: x)"),
        (("--s",), "ERROR: program command line option --s expects a string (value: true)"),
    ):
        with pytest.raises(WrongScriptError) as error:
            checked(script, *words)
        assert str(error.value) == expected


def test_predicates_and_truth() -> None:
    script = checked("begin / pid / { @ = !pid; }")
    assert script.maps[""].value == BOOL
    assert script.probes[0].predicate is not None


def test_loops_give_types_to_their_variables() -> None:
    script = checked(
        "begin { @x[1, comm] = count(); for ($kv : @x) { $k = $kv.0; $v = $kv.1; }"
        " for ($i : 0..300) { $j = $i; } }"
    )
    kinds = {name: type_name(kind) for name, kind in script.variable_types[0].items()}
    assert kinds == {
        "kv": "((int8,string[16]),uint64)",
        "k": "(int8,string[16])",
        "v": "uint64",
        "i": "int16",
        "j": "int16",
    }


def test_pointers() -> None:
    script = checked(
        "kprobe:f { $t = (struct task_struct *)arg0; @name = $t.comm; @parent = $t->real_parent;"
        " @pid = $t.real_parent.pid; @next = $t + 1; @same = $t == 0; @first = *(int32 *)arg1; }"
    )
    assert {name: type_name(each.value) for name, each in script.maps.items()} == {
        "name": "string[17]",
        "parent": "struct task_struct *",
        "pid": "int32",
        "next": "struct task_struct *",
        "same": "bool",
        "first": "int32",
    }


def test_members_of_tasks_have_functions() -> None:
    script = checked("kprobe:f { @a = ppid(curtask); @b = pcomm((struct task_struct *)arg0); }")
    assert map_types(script) == {"a": "- int32", "b": "- string[17]"}


def test_definitions_of_the_script_come_first() -> None:
    script = checked(
        "struct task_struct { long pid; }; enum kind { ONE = 1, TWO };\n"
        "begin { @x = ((struct task_struct *)0).pid; @y = TWO; @z = RED; }"
    )
    assert map_types(script) == {"x": "- int64", "y": "- enum kind", "z": "- enum colour"}
    assert script.maps["x"].value == INT64


def test_places_are_counted() -> None:
    surroundings = PlainSurroundings(
        definitions(), globs={"kprobe:f*": [f"kprobe:f{index}" for index in range(20)]}
    )
    assert len(checked("kprobe:f* { }", surroundings=surroundings).probes[0].points) == 20
    with pytest.raises(WrongScriptError, match=r"Can't attach to 21 probes because it exceeds"):
        checked("config = { max_probes = 20 } begin { } kprobe:f* { }", surroundings=surroundings)


def test_what_is_at_the_address_of_a_variable_is_the_variable() -> None:
    script = checked('begin { $a = (1, "b"); @ = *(&$a); }')
    assert type_name(script.maps[""].value) == "(int8,string[2])"
    assert not [node for node in nodes(script) if isinstance(node, Unary)]


def test_a_member_is_behind_any_number_of_pointers() -> None:
    script = checked("kprobe:f { $p = (struct task_struct ***)arg0; @ = $p.pid; }")
    kinds = [type_name(script.types[node]) for node in nodes(script) if isinstance(node, Unary)]
    assert kinds == [
        "struct task_struct *",
        "struct task_struct * *",
    ]
    assert type_name(script.maps[""].value) == "int32"
