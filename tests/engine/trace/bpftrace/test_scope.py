"""Scratch variables live in blocks."""

import pytest
from scriptkit import checked

from engine.trace.bpftrace.text import WrongScriptError

SHADOWING = r"Variable \$x was already declared. Variable shadowing is not allowed."


def test_a_variable_ends_with_its_block() -> None:
    for script in (
        "begin { if (1) { $x = 1; } print($x); }",
        "begin { { let $x = 1; } print($x); }",
        "begin { for ($i : 0..3) { $x = $i; } print($x); }",
        "begin { print($x); $x = 1; }",
        "begin { $x += 1; }",
        "begin { $x++; }",
        "begin { $x = $x; }",
        "begin / $x / { $x = 1; }",
    ):
        with pytest.raises(WrongScriptError, match=r"Undefined or undeclared variable: \$x"):
            checked(script)


def test_no_block_inside_has_another_of_its_name() -> None:
    for script in (
        "begin { let $x = 1; { let $x = 2; } }",
        "begin { $x = 1; let $x = 2; }",
        "begin { let $x; let $x; }",
    ):
        with pytest.raises(WrongScriptError, match=SHADOWING):
            checked(script)


def test_blocks_beside_each_other_and_probes_have_their_own() -> None:
    script = checked(
        'begin { { let $x = 1; } { let $x = "a"; } if (1) { $x = 2; } } end { $x = "b"; }'
    )
    assert [sorted(each) for each in script.variable_types] == [["x", "x.1", "x.2"], ["x"]]


def test_an_assignment_inside_is_to_the_variable_outside() -> None:
    script = checked("begin { $x = 1; if (1) { $x = 300; } print($x); }")
    assert {name: kind.bits for name, kind in script.variable_types[0].items()} == {"x": 16}  # type: ignore[union-attr]


def test_find_assigns() -> None:
    script = checked("begin { @m[1] = 5; let $v; if (find(@m, 1, $v)) { print($v); } }")
    assert not script.warnings
