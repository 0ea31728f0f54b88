"""Unicorn's looks at its stop request: left out, and there where something stops in a block."""

import ctypes
from importlib.metadata import version

import pytest
from archkit import COMPILED, EMULATED
from sessionkit import SAMPLES

from engine.cpu import native, unicorn_checks
from engine.cpu.unicorn_checks import StopChecks
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session import GuestConfig, Session

KNOWN = "2.1.4"


@pytest.mark.parametrize("name", EMULATED)
def test_the_switch_of_the_known_version_is_found(name: str) -> None:
    if version("unicorn") != KNOWN or not native.possible():
        pytest.skip("another build of Unicorn, or no host code")
    engine = ctypes.create_string_buffer(1 << 14)
    assert StopChecks(ctypes.addressof(engine), name)._left_out is not None


def test_it_is_pressed_only_where_nothing_stops_in_a_block() -> None:
    engine = ctypes.create_string_buffer(1 << 14)
    checks = StopChecks(ctypes.addressof(engine), "x86_64")
    if checks._left_out is None:
        pytest.skip("another build of Unicorn, or no host code")
    checks.choose(needed=False)
    assert sum(engine.raw) == 1
    checks.choose(needed=True)
    assert sum(engine.raw) == 0
    with checks.kept():
        checks.choose(needed=False)
        assert sum(engine.raw) == 0
    checks.choose(needed=False)
    assert sum(engine.raw) == 1


def test_other_code_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ctypes.create_string_buffer(b"\xc3" * 64)

    class Library:
        check_exit_request_x86_64 = ctypes.c_void_p(ctypes.addressof(other))

    engine = ctypes.create_string_buffer(1 << 14)
    monkeypatch.setattr(unicorn_checks, "uclib", Library)
    checks = StopChecks(ctypes.addressof(engine), "x86_64")
    checks.choose(needed=False)
    assert checks._left_out is None
    assert not any(engine.raw)
    assert StopChecks(ctypes.addressof(engine), "m68k")._left_out is None


@pytest.mark.parametrize("arch", COMPILED)
def test_a_guest_runs_the_same_without_the_switch(
    arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    for known in (True, False):
        if not known:
            monkeypatch.setattr(unicorn_checks, "_switch", lambda engine, name: None)
        out = bytearray()
        sink = SinkStream(out.extend)
        path = SAMPLES / arch / "recursion"
        config = GuestConfig(str(path), isolated=True, count_blocks=True)
        session = Session(config, (FeedStream(ended=True), sink, sink))
        reports = session.run()
        seen.append((bytes(out), session.cpu.blocks(), reports))
        session.close()
    assert seen[0] == seen[1]
    assert seen[0][0]
