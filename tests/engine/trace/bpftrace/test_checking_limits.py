"""Hostile scripts do not make checking run long."""

import time

import pytest
from scriptkit import checked

from engine.trace.bpftrace.text import WrongScriptError

LIMIT = 5.0
"""Seconds that none of them takes, on a machine that is busy with other tests."""


def test_each_ends_soon() -> None:
    pairs = " ".join([f"$a{index + 1} = ($a{index}, $a{index});" for index in range(60)])
    chain = " ".join([f"@m{index} = @m{index + 1};" for index in range(120)])
    for script, text in (
        (f"begin {{ $a0 = (1, 1); {pairs} }}", "The value has too many parts (over 1000)"),
        (f"begin {{ {chain} @m120 = 1; }}", "Type resolution exceeded maximum iterations"),
        ("begin { print(1 << 100000000000); }", "unable to fold literals"),
        ("begin { let $x: uint8[1000000000000]; }", "The array is too large"),
        (f"begin {{ let $x: uint8{'[1000]' * 20}; }}", "The array is too large"),
        (f'begin {{ print("{"a" * 100_000}"); }}', "String is too long (over 1024 bytes): aaa"),
        (
            f'macro d(x) {{ x + x }} begin {{ print({"d(" * 12}"{"a" * 1000}"{")" * 12}); }}',
            "a string of literals is too long",
        ),
        (f"begin {{ {'print(foo); ' * 500}}}", "Unknown identifier: 'foo'"),
        (f"begin {{ {'unroll(100) { ' * 40}nosuch();{'}' * 40} }}", "Unknown function: 'nosuch'"),
        (f'begin {{ printf("{"%d" * 5000}"); }}', "not enough arguments for format string"),
    ):
        began = time.monotonic()
        with pytest.raises(WrongScriptError) as raised:
            checked(script)
        assert time.monotonic() - began < LIMIT, text
        assert text in raised.value.remarks[0].text


def test_a_large_script_is_checked_in_a_few_rounds() -> None:
    script = checked(f"begin {{ {'@x[pid] = 1; ' * 500} }}")
    assert len(script.probes[0].body.statements) == 500
