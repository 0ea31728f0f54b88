"""Watches beside probes, and in the processes of a guest."""

import os

import archkit
import pytest
from cguest import compiled_from
from sessionkit import loaded
from sysroot import CHECKOUT

from engine.guest.watched import WatchedRange
from engine.session.guest.watchpoints import Watch, WatchEvent
from engine.session.protocol.requests import ProbeRequest

SOURCES = CHECKOUT / "tests" / "data" / "watch"
IA64 = CHECKOUT / "samples" / "bin" / "ia64"


def told(
    program: os.PathLike[str],
    symbol: str,
    size: int,
    *args: str,
    request: ProbeRequest | None = None,
    reads: bool = False,
    **config: object,
) -> tuple[list[WatchEvent], str]:
    """What happens to a variable while probes stand in the program, and what is printed."""
    seen: list[WatchEvent] = []
    with loaded(os.fspath(program), *args, **config) as guest:
        tracing = guest.tracing()
        if request is not None:
            tracing.definitions.place(request)
        module = guest.session.modules.main
        assert module is not None
        at = module.symbols.find_all(symbol)[0].address + module.bias
        guest.session.watchpoints.add([Watch(seen.append, [WatchedRange(at, size, reads)])])
        guest.run(tracing)
    return seen, guest.out


def facts(seen: list[WatchEvent]) -> list[object]:
    """All of some events that does not depend on the run's machinery."""
    return [(one.pc, one.by, one.hit.old, one.hit.new, one.hit.written) for one in seen]


@pytest.mark.parametrize("technique", ["auto", "breakpoint"])
@pytest.mark.parametrize("arch", archkit.FIRST_COMPILED)
def test_probes_on_every_instruction_change_nothing_in_what_is_told(
    arch: str, technique: str
) -> None:
    program = compiled_from(SOURCES / "words.c", arch)
    plain, out = told(program, "words", 8 * 4096, "40")
    probed, also = told(
        program,
        "words",
        8 * 4096,
        "40",
        request=ProbeRequest(bodies=("main", "*read")),
        technique=technique,
    )
    assert also == out
    assert facts(probed) == facts(plain)
    assert len(plain) > 30


def test_probes_on_every_instruction_of_ia64() -> None:
    program = IA64 / "syscalls"
    plain, out = told(program, "word", 8, reads=True)
    probed, also = told(
        program, "word", 8, reads=True, request=ProbeRequest(bodies=("transfer", "sys_*"))
    )
    assert also == out
    assert facts(probed) == facts(plain)
    assert len(plain) == 200


@pytest.mark.parametrize("follow", [True, False])
def test_a_new_process_has_the_watches_of_its_parent_where_probes_follow(follow: bool) -> None:
    program = compiled_from(SOURCES / "pages.c", "x86_64")
    seen, _ = told(program, "page", 8, follow=follow)
    stores = [int.from_bytes(one.hit.new, "little") for one in seen]
    assert stores == [7, 8, 9, 10] if follow else [7, 8, 9]
    pids = {one.thread.pid for one in seen}
    assert len(pids) == 1 + follow


def test_a_watch_may_move_and_go() -> None:
    seen: list[WatchEvent] = []
    with loaded(compiled_from(SOURCES / "pages.c", "x86_64")) as guest:
        session = guest.session
        module = session.modules.main
        assert module is not None
        at = module.symbols.find_all("page")[0].address
        one, other = (Watch(seen.append, [WatchedRange(at + off, 8)]) for off in (0, 512))
        session.watchpoints.add([one, other])
        session.watchpoints.move(other, [WatchedRange(at, 4)])
        session.watchpoints.remove([one])
        guest.run()
    assert [each.hit.range.size for each in seen] == [4] * 4
    assert not session.memory.watched or session.memory.bytes.watcher is not None
