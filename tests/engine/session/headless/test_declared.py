"""Values that trampolines replace, and others."""

import struct

from engine.session.headless.declared import DeclaredChanges

REAL, TRAMPOLINE = 0x0040_1234, 0x7FFF_F000_1000
STACK = 0x7000_0000, 0x7010_0000


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def test_only_the_value_that_was_replaced_is_the_same() -> None:
    declared = DeclaredChanges({(REAL, TRAMPOLINE)})
    assert declared.same(REAL, REAL)
    assert declared.same(REAL, TRAMPOLINE)
    assert not declared.same(TRAMPOLINE, REAL)
    assert not declared.same(REAL + 1, TRAMPOLINE)
    assert not declared.same(REAL, REAL - 256)


def test_addresses_of_a_lowered_stack() -> None:
    start, end = STACK
    declared = DeclaredChanges(lowered=256, stacks={STACK: end - 64})
    assert declared.same(end - 128, end - 128 - 3 * 256)
    assert not declared.same(end - 128, end - 128 + 256)
    assert not declared.same(end - 128, end - 128 - 8)
    assert not declared.same(start - 256, start - 512)
    assert not DeclaredChanges(stacks={STACK: end}).same(end - 128, end - 128 - 256)


def test_the_first_word_that_differs() -> None:
    declared = DeclaredChanges({(REAL, TRAMPOLINE)})
    plain, probed = words(1, REAL, 2, 3), words(1, TRAMPOLINE, 2, 3)
    assert declared.difference(0x1000, plain, probed) is None
    assert declared.difference(0x1000, plain, words(1, TRAMPOLINE, 2, 4)) == 0x1018
    assert DeclaredChanges().difference(0x1000, plain, probed) == 0x1008


def test_a_stale_value_that_is_written_over_in_part() -> None:
    declared = DeclaredChanges({(REAL, TRAMPOLINE)})
    low = 0xFFFF
    plain, probed = (value & ~low | 0x4142 for value in (REAL, TRAMPOLINE))
    assert declared.difference(0, words(plain), words(probed)) is None
    assert declared.difference(0, words(plain), words(probed ^ 1)) == 0
    assert not declared.same(plain, probed)


def test_a_lowered_stack_is_not_compared_below_its_calls() -> None:
    start, end = STACK
    declared = DeclaredChanges(lowered=256, stacks={STACK: end - 64})
    assert declared.difference(end - 72, words(1, 2), words(7, 2)) is None
    assert declared.difference(end - 72, words(1, 2), words(7, 8)) == end - 64
    assert declared.difference(start - 8, words(1), words(2)) == start - 8
