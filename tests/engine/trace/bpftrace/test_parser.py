"""Scripts and the trees that they are, and what is said about wrong ones."""

import random
import subprocess
from pathlib import Path
from typing import Final

import pytest
from compiled import build
from scripttrees import body, read, refusal, shape, value

from engine.trace.bpftrace import tree
from engine.trace.bpftrace.c_constants import constant, expression_of
from engine.trace.bpftrace.text import ScriptText, Span, WrongScriptError

VALUES: Final = {
    "1 + 2 * 3 - 4": "(- (+ 1 (* 2 3)) 4)",
    "(1 + 2) * 3": "(* (+ 1 2) 3)",
    "1 << 2 + 3 == 4 & 5": "(& (== (<< 1 (+ 2 3)) 4) 5)",
    "$a || $b && !$c": "(|| $a (&& $b (! $c)))",
    "-$x - -1": "(- (- $x) (- 1))",
    "$a ? 1 : $b ? 2 : 3": "(? $a 1 (? $b 2 3))",
    "$a ?: 3": "(? $a $a 3)",
    "~*$p++": "(~ (* ($p++)))",
    "++@x[1, 2]": "(++@x[(tuple 1 2)])",
    "@x[(1, 2)]": "@x[(tuple 1 2)]",
    "@[(1,)]": "@[(tuple 1)]",
    "&$x": "&$x",
    "& @x": "&@x",
    "args.a->b.c": "args.a.b.c",
    "$t.0.1[2]": "$t.0.1[2]",
    "()": "(tuple)",
    "(1, 2,)": "(tuple 1 2)",
    "(a=1, b=(2, 3))": "(record a=1 b=(tuple 2 3))",
    "(uint8)-1": "(cast <uint8> (- 1))",
    "(struct a *)arg0": "(cast <struct a*> arg0)",
    "(union u)$x": "(cast <union u> $x)",
    "(uint8[4])$x": "(cast <uint8[4]> $x)",
    "(int8 *[2])$x": "(cast <int8*[2]> $x)",
    "(size_t)5": "(cast <size_t> 5)",
    "(size_t)&$x": "(cast <size_t> &$x)",
    "(unsigned long *)5": "(cast <unsigned long*> 5)",
    "(const char *)5": "(cast <char*> 5)",
    "(typeof($x))5": "(cast (typeof $x) 5)",
    "(typeof(struct s *))5": "(cast (typeof <struct s*>) 5)",
    "(pid) - 1": "(- pid 1)",
    "(retval) * 2": "(* retval 2)",
    "(comm)": "comm",
    "(a * b)": "(* a b)",
    "((struct a)*$p).b": "(cast <struct a> (* $p)).b",
    "((struct a *)$p).b": "(cast <struct a*> $p).b",
    "sizeof(uint64)": "(sizeof <uint64>)",
    "sizeof(struct s[3])": "(sizeof <struct s[3]>)",
    "sizeof(a * b)": "(sizeof (* a b))",
    "sizeof(name)": "(sizeof name)",
    "offsetof(struct s, a.b)": "(offsetof <struct s> a b)",
    "typeinfo($x)": "(typeinfo $x)",
    "f(typeof(uint8), 2)": "(f() (typeof <uint8>) 2)",
    "f!($x)": "(f() $x)",
    "comptime 1 + 2": "(+ (comptime 1) 2)",
    "$1 + $#": "(+ $1 $#)",
    "true == false": "(== True False)",
    "{ $y = 1; $y }": "{(= $y 1); => $y}",
    "if ($a) { 1 } else { 2 }": "(if $a {=> 1} {=> 2})",
    "1 /* a */ + // b\n 2": "(+ 1 2)",
    "6 / 2": "(/ 6 2)",
}
BODIES: Final = {
    "": "{}",
    ";": None,
    "@ = 1; @x[1] += 2; $y <<= 3": "{(= @ 1); (+= @x[1] 2); (<<= $y 3)}",
    "$x++; --@y; @z[1]--;": "{($x++); (--@y); (@z[1]--)}",
    "print(1)": "{(print() 1)}",
    "let $a; let $b: uint8; let $c = 3; let $d: typeof($c) = 4;": "{(let $a - -);"
    " (let $b <uint8> -); (let $c - 3); (let $d (typeof $c) 4)}",
    "_ = f();": "{(_ = (f()))}",
    "if (1) { @ = 1 } else if (2) { @ = 2 } else { @ = 3 }": "{(if 1 {(= @ 1)}"
    " (if 2 {(= @ 2)} {(= @ 3)}))}",
    "if comptime (1 == 2) { f() }": "{(if comptime (== 1 2) {(f())} -)}",
    "if (1) { } ++$x;": "{(if 1 {} -); (++$x)}",
    "if (1) { } { } if (2) { }": "{(if 1 {} -); {}; (if 2 {} -)}",
    "$a == 1 ? f() : g();": "{(? (== $a 1) (f()) (g()))}",
    "@x[1] == 2 && f()": "{(&& (== @x[1] 2) (f()))}",
    "while ($i < 5) { $i++; break; continue }": "{(while (< $i 5) {($i++); break; continue})}",
    "unroll (5) { @ = 1 } unroll $1 { }": "{(unroll 5 {(= @ 1)}); (unroll $1 {})}",
    "for ($kv : @x) { print($kv.0); }": "{(for $kv @x {(print() $kv.0)})}",
    "for $i : 0..10 { return; }": "{(for $i 0..10 {return})}",
    "for ($i : $a..(1 + 2)) { return 1 }": "{(for $i $a..(+ 1 2) {(return 1)})}",
    "{ 1 }": "{{1}}",
    "{ { 1; 2 } }": "{{{1; 2}}}",
    "if (1) { 2 }": "{(if 1 {2} -)}",
    "$x = { 1 };": "{(= $x {=> 1})}",
    "args->x": "{args.x}",
    "_x = 1;": None,
}
REFUSALS: Final = {
    "begin": "1:6-6: ERROR: syntax: expected '{'",
    "begin { 1 + }": "1:13-14: ERROR: syntax: expected expression",
    "begin { f(1, }": "1:14-15: ERROR: syntax: expected expression",
    "begin { f(1 2) }": "1:13-14: ERROR: syntax: expected ')'",
    "begin { f(1) g(2) }": "1:14-15: ERROR: syntax: expected ';'",
    "begin { $x = 1 $y = 2 }": "1:16-18: ERROR: syntax: expected ';'",
    "begin { @x[1 }": "1:14-15: ERROR: syntax: expected ']'",
    "begin { 1++ }": "1:10-12: ERROR: syntax: increment/decrement requires a variable or map",
    "begin { ++f() }": "1:11-14: ERROR: syntax: increment/decrement requires a variable or map",
    "begin { &f() }": "1:10-11: ERROR: syntax: address-of operator (&) can only be used on a map"
    " or variable",
    "begin { $x = 1; $x.a = 2; }": "1:17-25: ERROR: syntax: Tuples and records are immutable once"
    " created. Consider creating a new value and assigning it instead.",
    "begin { $x[1] = 2; }": "1:9-18: ERROR: syntax: invalid assignment target",
    "begin { let x = 1; }": "1:13-14: ERROR: syntax: expected variable after 'let'",
    "begin { for (x : @a) {} }": "1:14-15: ERROR: syntax: expected variable in for loop",
    "begin { for ($x : @a[1]) {} }": "1:26-27: ERROR: syntax: expected map or range in for loop",
    "begin { if (1) {} else 2 }": "1:24-25: ERROR: syntax: expected '{' or 'if' after 'else'",
    "begin { (a=1, a=2) }": "1:15-18: ERROR: syntax: Named argument list already contains name: a",
    "begin { $x. }": "1:13-14: ERROR: syntax: expected field name after '.'",
    "begin { $x->1 }": "1:13-14: ERROR: syntax: expected field name after '->'",
    "begin { print($0) }": "1:15-17: ERROR: syntax: param $0 is out of integer range [1,"
    " 9223372036854775807]",
    "begin { $ = 1 }": "1:9-10: ERROR: syntax: expected identifier after '$'",
    "begin { let $x: 5 }": "1:17-18: ERROR: syntax: expected type name",
    "begin { let $x: struct 5 }": "1:24-25: ERROR: syntax: expected identifier",
    "begin { let $x: int8[y] = 1 }": "1:22-23: ERROR: syntax: expected ']'",
    'begin { "a\\\nb" }': "1:12-12: ERROR: syntax: unterminated string",
    "begin { f('a') }": "1:11-12: ERROR: syntax: expected expression",
    "kprobe:f/pid == 1/ { }": "1:1-13: ERROR: a predicate needs a space in front of it",
    "begin /1 {}": "1:10-11: ERROR: syntax: expected '/' to close predicate",
    "begin { import 5; }": "1:16-17: ERROR: syntax: expected string after 'import'",
    'import "a" begin {}': "1:12-17: ERROR: syntax: expected ';' after import",
    "config = { a 1 }": "1:14-15: ERROR: syntax: expected '='",
    "config = { 1 = 1 }": "1:12-13: ERROR: syntax: expected config key",
    "config = { a = ( }": "1:16-17: ERROR: syntax: expected string, int, boolean, or ident",
    "config = {} config = {} begin {}": "1:13-19: ERROR: syntax: duplicate config block",
    "begin {} config = {}": "1:10-16: ERROR: syntax: config must appear before probes and"
    " functions",
    'begin {} import "a";': "1:10-16: ERROR: syntax: root imports must appear before probes and"
    " functions",
    "begin {} struct a { int b; };": "1:10-29: ERROR: syntax: C definitions must appear before"
    " probes and functions",
    "begin {}\n#define A\nend {}": "2:1-10: ERROR: syntax: C definitions must appear before"
    " probes and functions",
    "let @a = hash(x);": "1:15-16: ERROR: syntax: expected positive integer for map declaration"
    " max entries",
    "let $a = 1;": "1:1-4: ERROR: syntax: root-level let statements need to be map declarations,"
    " e.g. let @a = hash(2);",
    "macro (a) {}": "1:7-8: ERROR: syntax: expected macro name",
    "macro m(1) {}": "1:9-10: ERROR: syntax: expected macro argument ($var, @map, or identifier)",
    "macro m(pid) {}": "1:9-12: ERROR: syntax: builtin 'pid' can't be used as a macro argument",
    'import "a.bt"; begin {}': "1:1-14: ERROR: files cannot be imported here",
    'begin { import "a.bt"; }': "1:9-22: ERROR: import it in front of all probes",
    "fn f() : void {}": "1:1-3: ERROR: syntax: functions of a script's own are not supported:"
    " write a macro instead",
    "struct a { int b; } __attribute__(packed)": "1:34-35: ERROR: syntax: __attribute__ syntax"
    " error, expected '(('",
    "struct a { int b; } __attribute__((packed)": "1:34-35: ERROR: syntax: __attribute__ syntax"
    " error, mismatched '(' and ')'",
    "\u00a7": "1:2-2: ERROR: syntax: expected '{'",
    "begin { \u00a7 }": "1:9-10: ERROR: syntax: expected expression",
}


def test_expressions() -> None:
    for text, tree_text in VALUES.items():
        assert value(text) == tree_text, text


def test_statements() -> None:
    for text, tree_text in BODIES.items():
        if tree_text is None:
            assert refusal(f"begin {{ {text} }}"), text
        else:
            assert body(text) == tree_text, text


def test_wrong_scripts_have_one_error_at_its_place() -> None:
    for text, fault in REFUSALS.items():
        assert refusal(text) == fault, text
        with pytest.raises(WrongScriptError) as caught:
            read(text)
        assert len(caught.value.remarks) == 1, text


def test_the_place_is_marked_under_the_line() -> None:
    with pytest.raises(WrongScriptError) as caught:
        read("begin {\n\tprint(1;\n}")
    assert str(caught.value) == (
        "stdin:2:9-10: ERROR: syntax: expected ')'\n    print(1;\n           ~"
    )


def test_what_other_languages_have_is_told() -> None:
    with pytest.raises(WrongScriptError, match="HINT: strings stand between double quotes"):
        read("begin { printf('a') }")
    with pytest.raises(WrongScriptError, match="HINT: comments begin with //"):
        read("begin {\n# a comment\n}")


def test_spans_are_those_of_bpftrace() -> None:
    text = "begin { $x = f(1) + @y[2] * 3; print($x.a); }"
    statements = read(text).probes[0].body.statements
    assignment, call = statements
    assert isinstance(assignment, tree.Assignment)
    assert isinstance(assignment.value, tree.Binary)
    assert _cut(text, assignment.span) == "$x = f(1) + @y[2] * 3"
    assert _cut(text, assignment.value.span) == "f(1) + @y[2] * 3"
    assert _cut(text, assignment.value.right.span) == "@y[2] * 3"
    assert isinstance(call, tree.ExpressionStatement)
    assert _cut(text, call.expression.span) == "print($x.a)"


def _cut(text: str, span: Span) -> str:
    return text[span.start : span.end]


def test_everything_at_the_top() -> None:
    script = read(
        "#!/usr/bin/env bpftrace\n"
        "// a comment\n"
        "#include <linux/sched.h>\n"
        "#define A 1 \\\n + 2\n"
        "struct s { int a; /* } */ char c[2]; };\n"
        "typedef struct { int b; } t;\n"
        'config = { max_map_keys = 10; stack_mode = perf; a = "b"; c = true }\n'
        'import "stdlib";\n'
        "let @m = lruhash(1e2)\n"
        "macro add(a, $b, @c) { a + $b }\n"
        "begin, end { $x = A; }\n"
        "uprobe:/bin/sh:main / pid == 1 / { }\n"
    )
    assert [one.text for one in script.definitions] == [
        "#include <linux/sched.h>",
        "#define A 1 \\\n + 2",
        "struct s { int a; /* } */ char c[2]; }",
        "typedef struct { int b; } t",
    ]
    settings = [(one.name, one.value) for one in script.settings]
    assert settings == [("max_map_keys", 10), ("stack_mode", "perf"), ("a", "b"), ("c", True)]
    assert [one.value for one in script.imports] == [b"stdlib"]
    assert [(one.map.name, one.kind, one.entries) for one in script.maps] == [
        ("m", "lruhash", 100)
    ]
    macro = script.macros[0]
    assert (macro.name, [shape(one) for one in macro.parameters]) == ("add", ["a", "$b", "@c"])
    assert shape(macro.body) == "{=> (+ a $b)}"
    assert [one.provider for one in script.probes[0].points] == ["begin", "end"]
    assert shape(script.probes[0].body) == "{(= $x (+ 1 2))}"
    assert shape(script.probes[1].predicate) == "(== pid 1)"


def test_predicates_and_paths_with_slashes() -> None:
    for text, predicate, points in (
        ("begin /1/ { }", "1", ["begin"]),
        ("begin/1/{ }", "1", ["begin"]),
        ("uprobe:/a/b:c /1 / 2/ { }", "(/ 1 2)", ["uprobe:/a/b:c"]),
        ("uprobe:/a/b:c,\nuprobe:/a/d:e,\n/@x[1] == 2/\n{ }", "(== @x[1] 2)",
         ["uprobe:/a/b:c", "uprobe:/a/d:e"]),
        ('uprobe:"/a b/c":d // x\n{ }', "-", ["uprobe:/a b/c:d"]),
        ("BEGIN { } ", "-", ["begin"]),
        ("kprobe: f,kprobe:\tg { }", "-", ["kprobe:f", "kprobe:g"]),
    ):  # fmt: skip
        probe = read(text).probes[0]
        assert shape(probe.predicate) == predicate, text
        assert [point.text for point in probe.points] == points, text


def test_arguments_of_macros_are_values_in_brackets() -> None:
    macro = read("macro m(x) { (x) - 1 } begin { m(2) }").macros[0]
    assert shape(macro.body) == "{=> (- x 1)}"
    assert shape(read("begin { (x) - 1 }").probes[0].body) == "{(cast <x> (- 1))}"
    script = read("enum { x = 5, y };\nbegin { (y) - 1 }")
    assert shape(script.probes[0].body) == "{(- y 1)}"


def test_operators_bind_as_in_c(tmp_path: Path) -> None:
    choice = random.Random(7)
    texts = [_random_expression(choice, 4) for _ in range(150)]
    lines = "\n".join(f'printf("%lld\\n", (long long)({text}));' for text in texts)
    source = f"#include <stdio.h>\nint main(void) {{\n{lines}\nreturn 0; }}\n"
    program = build(tmp_path, "values", source, "-w", "-fwrapv")
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    script = ScriptText("stdin", "")
    for text, expected in zip(texts, output.split(), strict=True):
        found = constant(expression_of(script, text, Span(0, 0)), script)
        assert found == int(expected), text


def _random_expression(choice: random.Random, depth: int) -> str:
    if not depth or choice.random() < 0.15:
        return choice.choice(("", "", "-", "~", "!")) + f"{choice.randrange(1, 9)}LL"
    signs = ["+", "-", "*", "&", "|", "^", "==", "!=", "<", ">", "<=", ">=", "&&", "||"]
    parts = [_random_expression(choice, depth - 1) for _ in range(choice.randrange(2, 4))]
    text = parts[0]
    for part in parts[1:]:
        text += f" {choice.choice(signs)} {part}"
    return f"({text})" if choice.random() < 0.3 else text
