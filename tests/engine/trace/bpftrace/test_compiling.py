"""Actions as functions of Python: values, maps, memory, what is recorded and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scriptruns import LeftError, ScriptRunner, needs, outputs

from engine.trace.bpftrace.arithmetic import wrap
from engine.trace.bpftrace.text import WrongScriptError
from engine.trace.bpftrace.types import Integer

STRUCT = "struct node { int a; char b[10]; long c; struct node *next; short d[3]; int e:3; };\n"

VALUES = (
    ("print(1 + 2 * 3)", ["7"]),
    ('print((5, -3, "x", (uint8)300))', ["(5, -3, x, 44)"]),
    ("print((uint64)7 / 2)", ["3"]),
    ("print(7 % 4)", ["3"]),
    ("$x = (int64)-7; print($x >> 60)", ["15"]),
    ("print((int8)200)", ["-56"]),
    ("$x = 5; $y = $x++ + ++$x; print(($x, $y))", ["(7, 12)"]),
    ("$x = 1; $y = $x + { $x = 10; $x } + $x; print($y)", ["21"]),
    ("print(1 < 2 && 2 > 3 || !0)", ["true"]),
    ('print(2 > 1 ? "yes" : "no")', ["yes"]),
    ("if (3 > 4) { print(1) } else if (4 > 3) { print(2) } else { print(3) }", ["2"]),
    ("$i = 0; while ($i < 3) { $i++; if ($i == 2) { continue } print($i) }", ["1", "3"]),
    ("for ($i : 0..5) { if ($i == 3) { break } print($i) }", ["0", "1", "2"]),
    ('unroll(2) { printf("a") } print("")', ["aa"]),
    (
        "@m[1] = 10; @m[2] = 20; $t = (int64)0; for ($kv : @m) { $t += $kv.0 * $kv.1 } print($t)",
        ["50"],
    ),
    (
        '@m[1, "a"] = 5; print(@m[1, "a"]); print(has_key(@m, (1, "a"))); print(@m[2, "b"])',
        ["5", "true", "0"],
    ),
    ("@x = 5; @x += 2; @x <<= 1; print(@x)", ["@x: 14"]),
    ("@x[1]++; @x[1]++; --@x[1]; print(@x[1])", ["1"]),
    ('@c = count(); @c = count(); if (@c > 1) { print("two") }', ["two"]),
    ("@a = avg(4); @a = avg(7); print(@a)", ["@a: 5"]),
    ("@m = min(4); @m = min(-7); print(@m)", ["@m: -7"]),
    ("@s[1] = sum(4); delete(@s, 1); print(len(@s))", ["0"]),
    ('$r = (color="green", size=2); print($r.size)', ["2"]),
    ('$t = (1, ("two", 3)); print($t.1.0)', ["two"]),
    ('print(strcontains("hello", "ell")); print(strncmp("ab", "ac", 1))', ["true", "0"]),
    ('print("a" == "a"); print("a" != "ab")', ["true", "true"]),
    ("let $x: uint16 = 3; { let $y = 4; $x += $y } print($x)", ["7"]),
    ("$a = { let $b = 1; $b + 1 }; print($a)", ["2"]),
    (
        "print((pid, tid, comm, uid, gid, nsecs, elapsed, cpu))",
        ["(10, 11, task11, 1000, 2000, 1000, 900, 0)"],
    ),
    ("print(probe)", ["uprobe:/bin/app:work"]),
    ('printf("%d %5s|%-4d|%x %c\\n", -1, "ab", 7, 255, 65)', ["-1    ab|7   |ff A"]),
    ('print(ntop(0x0100007f)); print(pton("::1")[15])', ["127.0.0.1", "1"]),
    ("print(sizeof(uint32)); print(strerror(2))", ["4", "No such file or directory"]),
    ("print(((int8[4])0x01020304)[1])", ["3"]),
    ("print(ustack(build_id, 2))", ["", "ab 0x1000", "2000", ""]),
)


@pytest.mark.parametrize("body", range(len(VALUES)), ids=[text for text, _ in VALUES])
def test_values(body: int) -> None:
    text, wanted = VALUES[body]
    assert outputs(f"uprobe:/bin/app:work {{ {text} }}") == wanted


def test_a_division_by_zero_gives_one_and_is_told_once() -> None:
    runner = ScriptRunner("uprobe:/bin/app:work { print(arg0 / arg1); print(arg0 % arg1) }")
    runner.hit(arg0=7, arg1=0)
    runner.hit(arg0=7, arg1=0)
    runner.hit(arg0=7, arg1=2)
    assert runner.printed == b"1\n1\n1\n1\n3\n1\n"
    assert runner.said.count(b"Divide or modulo by 0") == 2


def test_a_predicate_keeps_the_action_from_running() -> None:
    text = "uprobe:/bin/app:work /arg0 > 3 && arg1 != 0/ { print(arg0) }"
    hits = [{"arg0": 2, "arg1": 1}, {"arg0": 4, "arg1": 1}, {"arg0": 5, "arg1": 0}]
    assert outputs(text, hits) == ["4"]


def test_what_is_known_at_the_hit_is_recorded() -> None:
    runner = ScriptRunner(
        STRUCT + "uprobe:/bin/app:work { $n = (struct node *)arg0; $m = $n.next;"
        " print($m.c); print(str($n.b)); print($n.next.d[1]); print(*(int16*)(arg1 + 6));"
        " print($m.next.e); print(str(arg2, 4)) }",
        {
            0x100: bytes.fromhex("05000000")
            + b"first\0"
            + bytes(14)
            + (0x200).to_bytes(8, "little"),
            0x200: bytes(4) + b"second\0" + bytes(13) + (0x100).to_bytes(8, "little") + bytes(12),
        },
    )
    probe = runner.probes[0]
    assert not probe.needs_memory
    assert ("argument", "0", (24, 16)) in needs(probe)
    assert ("argument", "1", (6,)) in needs(probe)
    assert ("argument", "2", (0,)) in needs(probe)


def test_structures_are_read_through_pointers() -> None:
    node = (
        (7).to_bytes(4, "little")
        + b"seven".ljust(10, b"\0")
        + bytes(2)
        + (-9).to_bytes(8, "little", signed=True)
        + (0x300).to_bytes(8, "little")
        + bytes([1, 0, 2, 0, 3, 0])
        + (0b101).to_bytes(2, "little")
    )
    other = (8).to_bytes(4, "little") + b"eight".ljust(10, b"\0") + bytes(40)
    hits = [{"arg0": 0x100}]
    text = (
        STRUCT
        + "uprobe:/bin/app:work { $n = (struct node *)arg0; print(($n.a, $n.b, $n.c, $n.d[2],"
        " $n.e)); print($n.next.b); print($n.next.next.a); $s = *$n; print($s.a); print($n.d) }"
    )
    wanted = ["(7, seven, -9, 3, 5)", "eight", "0", "7", "[1,2,3]"]
    assert outputs(text, hits, memory={0x100: node.ljust(64, b"\0"), 0x300: other}) == wanted


def test_strings_have_a_byte_less_than_the_room_that_is_given() -> None:
    memory = {0x100: b"abcdefgh\0", 0x200: b"wxyz\0"}
    text = (
        "uprobe:/bin/app:work { print(str(arg0, 5)); print(str(arg0, arg1)); print(str(arg0));"
        " print(str(arg2, 5)); print(str(arg2, 1)) }"
    )
    hits = [{"arg0": 0x100, "arg1": 4, "arg2": 0x200}]
    assert outputs(text, hits, memory=memory) == ["abcd", "abc", "abcdefgh", "wxyz", ""]
    cut = "config = { max_strlen = 6 } uprobe:/bin/app:work { print(str(arg0)); print(str(arg2)) }"
    assert outputs(cut, hits, memory=memory) == ["abcdef..", "wxyz"]


def test_an_address_from_a_map_needs_memory_at_the_hit() -> None:
    text = STRUCT + "uprobe:/bin/app:work { @p[tid] = arg0; print(str(@p[tid])) }"
    runner = ScriptRunner(text, {0x40: b"late\0"})
    assert runner.probes[0].needs_memory
    runner.hit(arg0=0x40)
    assert runner.printed == b"late\n"


def test_an_index_behind_an_array_gives_zero_and_is_told() -> None:
    text = STRUCT + "uprobe:/bin/app:work { $i = arg1; print(((struct node *)arg0).d[$i]) }"
    runner = ScriptRunner(text, {0x100: bytes(32) + bytes([1, 0, 2, 0, 3, 0]) + bytes(26)})
    runner.hit(arg0=0x100, arg1=2)
    runner.hit(arg0=0x100, arg1=3)
    assert runner.printed == b"3\n0\n"
    assert b"out of bounds" in runner.said


def test_a_full_map_loses_what_is_new() -> None:
    text = "config = { max_map_keys = 2 } uprobe:/bin/app:work { @[arg0] = count(); @v[arg0] = 1 }"
    runner = ScriptRunner(text)
    for value in (1, 2, 3, 1):
        runner.hit(arg0=value)
    assert runner.state.maps[""].entries == {1: 2, 2: 1}
    assert runner.state.maps["v"].entries == {1: 1, 2: 1}
    assert runner.said.count(b"Map full") == 2


def test_exit_ends_an_action_where_it_stands() -> None:
    runner = ScriptRunner("uprobe:/bin/app:work { print(1); exit(3); print(2) }")
    with pytest.raises(LeftError):
        runner.hit()
    assert (runner.printed, runner.run.code) == (b"1\n", 3)


def test_a_loop_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.trace.bpftrace.statement_code.MOST_ROUNDS", 1000)
    runner = ScriptRunner("uprobe:/bin/app:work { $i = (uint64)0; while (1) { $i++ } print($i) }")
    runner.hit()
    assert runner.printed == b"1000\n"
    assert b"A loop was ended" in runner.said


def test_blocks_in_too_many_blocks_are_an_error() -> None:
    text = "uprobe:/bin/app:work { " + "if (arg0) { " * 80 + "print(1)" + " }" * 80 + " }"
    with pytest.raises(WrongScriptError, match="nested too deeply"):
        ScriptRunner(text)


_KINDS = [Integer(bits, signed) for bits in (8, 16, 32, 64) for signed in (False, True)]
_OPERATORS = ("+", "-", "*", "&", "|", "^", "<", ">", "==", "!=", "<=", ">=", "/", "%", "<<", ">>")


def _oracle(operator: str, left: int, right: int) -> int:
    """What the BPF of bpftrace's code generator computes: operands are widened to 64 bits first.

    Sources: cast_creator.cpp, visit(Binop &), and codegen_llvm.cpp, binop_int.
    """
    mask = (1 << 64) - 1
    one, other = left & mask, right & mask
    if operator in ("<", ">", "<=", ">=", "==", "!="):
        return int(eval(f"{left} {operator} {right}"))
    if operator in ("/", "%"):
        return int(eval(f"{one} {'//' if operator == '/' else '%'} {other}")) if other else 1
    if operator == "<<":
        return one << other & mask
    if operator == ">>":
        return one >> other
    return int(eval(f"{one} {operator} {other}")) & mask


@given(
    operator=st.sampled_from(_OPERATORS),
    kind=st.sampled_from(_KINDS),
    values=st.tuples(*[st.integers(0, 2**64 - 1) | st.integers(-3, 70)] * 2),
)
def test_arithmetic_is_that_of_bpf(operator: str, kind: Integer, values: tuple[int, int]) -> None:
    left, right = (wrap(value, kind) for value in values)
    if operator in ("<<", ">>"):
        right &= 7
    name = f"{'' if kind.signed else 'u'}int{kind.bits}"
    body = f"(({name})arg0 {operator} ({name})arg1)"
    runner = ScriptRunner(f"uprobe:/bin/app:work {{ @ = (uint64){body} }}")
    runner.hit(arg0=left, arg1=right)
    assert runner.state.maps[""].entries[0] == _oracle(operator, left, right)
