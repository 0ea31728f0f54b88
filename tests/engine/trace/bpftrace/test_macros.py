"""Macros are put in, hygienically and within bounds."""

import pytest
from scriptkit import checked

from engine.trace.bpftrace.checked import CheckedScript
from engine.trace.bpftrace.text import WrongScriptError
from engine.trace.bpftrace.type_rules import type_name


def variables(script: CheckedScript) -> dict[str, str]:
    return {name: type_name(kind) for name, kind in script.variable_types[0].items()}


def test_a_macro_stands_for_its_body() -> None:
    script = checked("macro add(x, y) { x + y } begin { @ = add(1, add(2, 3)); }")
    assert 6 in script.constants.values()


def test_names_without_brackets() -> None:
    script = checked("macro two() { 2 } begin { @ = two + two(); }")
    assert 4 in script.constants.values()


def test_own_variables_are_hidden() -> None:
    script = checked('macro own() { $x = "abc"; $x } begin { $x = 1; $y = own(); $z = own(); }')
    assert variables(script)["x"] == "int8"
    assert variables(script)["y"] == variables(script)["z"] == "string[4]"


def test_variables_and_maps_that_are_given_are_the_callers() -> None:
    script = checked(
        "macro up($v, @m, by) { $v += by; @m[$v] = count(); } begin { $n = 1; up($n, @calls, 2); }"
    )
    assert variables(script) == {"n": "int64"}
    assert list(script.maps) == ["calls"]


def test_an_expression_is_not_written_through() -> None:
    script = checked("macro inc(x) { x + 1 } begin { $n = 1; @ = inc($n); }")
    assert variables(script) == {"n": "int8"}


def test_kinds_of_arguments_choose_a_macro() -> None:
    text = (
        'macro kind($v) { "variable" } macro kind(@m) { "map" } macro kind(e) { "expression" } '
        "begin { $v = 1; @m = 1; @a = kind($v); @b = kind(@m); @c = kind(2); }"
    )
    script = checked(text)
    assert [type_name(script.maps[name].value) for name in "abc"] == [
        "string[9]",
        "string[4]",
        "string[11]",
    ]


def test_a_macro_of_the_script_wins_over_a_function() -> None:
    script = checked('macro strlen(x) { "mine" } begin { @ = strlen("abc"); @n = strlen("a"); }')
    assert type_name(script.maps[""].value) == "string[5]"
    script = checked("macro len(a, b) { a + b } begin { @m[1] = 1; @ = len(1, 2); @n = len(@m); }")
    assert type_name(script.maps["n"].value) == "int64"


def test_types_are_arguments() -> None:
    script = checked(
        "macro wide(t) { sizeof(t) } macro at(t, p) { (t *)p } macro off(t, f) { offsetof(t, f) } "
        "kprobe:f { @a = wide(typeof(uint16)); @b = at(typeof(struct task_struct), arg0);"
        " @c = off(typeof(struct task_struct), pgid);"
        " @d = container_of(arg0, typeof(struct task_struct), pgid); }"
    )
    assert {name: type_name(each.value) for name, each in script.maps.items()} == {
        "a": "int8",
        "b": "struct task_struct *",
        "c": "int8",
        "d": "struct task_struct *",
    }
    assert {2, 4} <= set(script.constants.values())


def test_aggregates_come_out_of_macros() -> None:
    script = checked(
        "macro times() { count() } macro all(x) { let $v = x; sum($v) } "
        "begin { @a = times(); @b[pid] = all(5); }"
    )
    assert type_name(script.maps["a"].value) == "count_t"
    assert type_name(script.maps["b"].value) == "sum_t"


def test_exit_may_stand_in_a_macro_and_so_may_loops() -> None:
    script = checked(
        "macro stop() { exit(); } macro few() { for ($i : 0..9) { if ($i > 2) { break; } } } "
        "begin { few(); stop(); }"
    )
    assert len(script.probes) == 1


@pytest.mark.slow
def test_macros_that_grow_are_stopped() -> None:
    doubled = " ".join([f"macro m{i}(x) {{ m{i + 1}(x) + m{i + 1}(x) }}" for i in range(40)])
    chained = " ".join([f"macro m{i}(x) {{ m{i + 1}(x) }}" for i in range(200)])
    with pytest.raises(WrongScriptError, match=r"The script nests too deeply \(over 180 levels\)"):
        checked(f"{chained} macro m200(x) {{ x }} begin {{ print(m0(1)); }}")
    with pytest.raises(WrongScriptError, match=r"The script is too large") as raised:
        checked(f"{doubled} macro m40(x) {{ x }} begin {{ print(m0(1)); }}")
    assert len(raised.value.remarks) == 1


def test_an_error_in_a_macro_tells_where_that_is_used() -> None:
    with pytest.raises(WrongScriptError) as raised:
        checked(
            "macro set($x) { $x = 1; }\nmacro twice($x) { set($x); }\n"
            'begin { $a = "b";\n  twice($a); }'
        )
    (remark,) = raised.value.remarks
    assert remark.text.startswith("Type mismatch for $a")
    assert (remark.span.start, remark.hint) == (16, "The macro is used at stdin:4:3.")


def test_calls_know_where_their_macros_are_used() -> None:
    text = 'macro a() { errorf("bad"); } macro b() { a(); } begin { b(); }'
    script = checked(text)
    assert [[text[span.start : span.end] for span in spans] for spans in script.uses.values()] == [
        ["a()", "b()"]
    ]
