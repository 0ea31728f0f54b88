"""A trace of one session: definitions, deletion, listing, output, and what is said at the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sessionkit import SAMPLES, events, heads, loaded

from engine.arch.plan import Mode
from engine.errors import CommandError, ProbeError, ProbeSyntaxError
from engine.probes.kprobe import Kprobe
from engine.probes.regs import PtRegs
from engine.session.guest.wanted_probes import Wanted
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.listing import TraceListing
from engine.session.tracing.tracing import Tracing
from engine.trace.rows import count_rows

RECURSION = SAMPLES / "x86_64" / "recursion"
CALLS = 987
"""Of fibonacci; those of factorial became a loop."""


def arguments(n: int) -> Iterator[int]:
    """Of all calls of fibonacci(n); the second of the two recursions became a loop."""
    yield n
    while n >= 2:
        yield from arguments(n - 1)
        n -= 2


def test_events_stand_in_the_order_of_definition_with_their_probes() -> None:
    with loaded(RECURSION) as guest:
        tracing = guest.tracing()
        for line in ("p:a/one fibonacci n=%di:u32", "", "# remark", "p:b/two main", "p factorial"):
            tracing.definitions.define(line)

        assert list(tracing.events) == [("a", "one"), ("b", "two"), ("kprobes", "p_factorial_0")]
        assert list(TraceListing(tracing).lines("kernel")) == [
            "p:a/one fibonacci n=%di:u32",
            "p:b/two main",
            "p:kprobes/p_factorial_0 factorial",
        ]
        reports = guest.run(tracing)
        counts = [event.probes[0].hits for event in tracing.events.values()]
        assert counts == [CALLS, 1, 1]
        names = [row.partition(":")[0] for row in guest.events]
        assert [names.count(name) for name in ("one", "two", "p_factorial_0")] == counts
        assert (names[0], reports.exit_code, heads(reports)) == ("two", 0, [])


def test_siblings_share_an_event() -> None:
    with loaded(RECURSION) as guest:
        tracing = guest.tracing()
        tracing.definitions.define("p:g/e fibonacci n=%di:u32")
        tracing.definitions.define("p:g/e factorial n=%di:u32")
        for line, text in (
            ("p:g/e main n=%di:u64", "type or name is different"),
            ("p:g/e fibonacci n=%di:u32", "already the exact same"),
        ):
            with pytest.raises(ProbeSyntaxError, match=text):
                tracing.definitions.define(line)

        assert len(tracing.events["g", "e"].probes) == 2
        guest.run(tracing)
        assert len(guest.events) == CALLS + 1


def test_a_deletion_takes_out_what_it_names_and_nothing_else() -> None:
    with loaded(RECURSION) as guest:
        tracing = guest.tracing()
        manager = guest.session.probes().manager
        for line in ("p:g/a fibonacci", "p:g/b fibonacci", "p:h/a main", "p:g/a factorial"):
            tracing.definitions.define(line)
        assert len(manager.points) == 3

        tracing.definitions.define("-:g/a factorial")  # one of two siblings
        assert list(TraceListing(tracing).lines("kernel")) == [
            "p:g/a fibonacci",
            "p:g/b fibonacci",
            "p:h/a main",
        ]
        tracing.definitions.define("-:g/a")
        assert list(tracing.events) == [("g", "b"), ("h", "a")]
        assert len(manager.points) == 2  # b is left at fibonacci
        with pytest.raises(ProbeError, match="no such event"):
            tracing.definitions.define("-:g/a")
        tracing.definitions.define(
            "p:g/a factorial n=%di:u32"
        )  # the name is free again, for another event
        tracing.definitions.define("-:g/b")
        guest.run(tracing)

        assert {row.partition(":")[0] for row in guest.events} == {"a"}
        assert [row.partition(")")[2] for row in guest.events] == ["", " n=20"]


def test_a_deleted_probe_leaves_the_code_as_it_was() -> None:
    with loaded(RECURSION) as guest:
        memory = guest.session.memory
        tracing = guest.tracing()
        done = tracing.definitions.define("p:x fibonacci")
        assert done is not None
        address = done.probes[0].addr
        assert address is not None
        assert memory.read(address, 1) == b"\xcc"
        tracing.definitions.define("-:x")
        assert memory.read(address, 1) == guest.session.image.read_vaddr(address, 1)
        guest.run(tracing)
        assert guest.events == []


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_buffer_keeps_so_many(overwrite: bool) -> None:
    with loaded(RECURSION) as guest:
        tracing = guest.tracing(TraceOptions(buffer=5, overwrite=overwrite))
        tracing.definitions.define("p:x fibonacci n=%di:u32")
        guest.run(tracing)

        kept = [int(row.rpartition("=")[2]) for row in guest.events]
        known = list(arguments(15))
        assert len(known) == CALLS
        assert kept == (known[-5:] if overwrite else known[:5])
        assert "# entries-in-buffer/entries-written: 5/" in guest.text
        assert guest.text.count(f"CPU:0 [LOST {CALLS - 5} EVENTS]") == 1


def test_rows_go_to_a_consumer_as_they_are() -> None:
    rows: list[bytes] = []
    with loaded(RECURSION) as guest:
        tracing = Tracing(guest.session, TraceOptions(), consumer=rows.append)
        tracing.definitions.define("p:x fibonacci n=%di:u32")
        guest.run(tracing)

    assert count_rows(b"".join(rows)) == CALLS


def test_a_file_takes_the_trace_and_its_buffer_goes(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with loaded(RECURSION) as guest:
        tracing = guest.tracing(TraceOptions(output=str(path)))
        tracing.definitions.define("p:x fibonacci n=%di:u32")
        guest.run(tracing)

        assert guest.text == ""
    values = [int(row.rpartition("=")[2]) for row in events(path.read_text())]
    assert values == list(arguments(15))
    assert [item.name for item in tmp_path.iterdir()] == ["trace"]


def test_a_full_disk_is_reported_with_what_was_lost() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with loaded(RECURSION) as guest:
        tracing = guest.tracing(TraceOptions(output="/dev/full", buffer=500))
        tracing.definitions.define("p:x fibonacci")
        reports = guest.run(tracing)

        assert heads(reports) == ["/dev/full: No space left on device; 500 events lost"]
        assert guest.out.endswith("ackermann(2, 3) = 9\n")


def test_what_cannot_be_set_up() -> None:
    with loaded(RECURSION) as guest:
        with pytest.raises(CommandError, match="-o /no/such/file: No such file"):
            guest.tracing(TraceOptions(output="/no/such/file"))
        with pytest.raises(CommandError, match="--format nonsense: there is ftrace"):
            guest.tracing(TraceOptions(format="nonsense"))


def test_missed_hits_are_reported() -> None:
    """A hit of one probe while the handler of another runs."""
    with loaded(RECURSION) as guest:
        tracing = guest.tracing()
        tracing.definitions.define("p:g/x factorial n=%di:u32")
        probing = guest.session.probes()
        seen: list[int] = []

        def inside(probe: Kprobe, regs: PtRegs) -> None:
            point = probing.manager.points[tracing.events["g", "x"].probes[0].addr or 0]
            probing.manager.hits.enter_again(point)
            probing.manager.hits.current.end()
            seen.append(regs.ip)

        place = probing.verdicts.places.resolve("main")[0]
        probing.place([Wanted(place, Kprobe(pre_handler=inside))])
        reports = guest.run(tracing)

        assert len(seen) == 1
        assert heads(reports) == ["missed hits:\ng/x: 1 of 2 hits missed"]
        assert len(guest.events) == 1


@pytest.mark.parametrize("mode", list(Mode))
def test_the_value_of_ip(mode: Mode) -> None:
    with loaded(RECURSION) as guest:
        tracing = guest.tracing(TraceOptions(mode=mode))
        done = tracing.definitions.define("p:x main ip=%ip")
        assert done is not None
        guest.run(tracing)

        address = done.probes[0].addr
        assert address is not None
        behind = {Mode.STRICT: 0, Mode.KERNEL: 1}[mode]
        assert guest.events[0].endswith(f" ip={address + behind:#x}")


def test_functions_by_pattern() -> None:
    with loaded(RECURSION) as guest:
        tracing = guest.tracing(TraceOptions(output="/dev/null"))
        tracing.definitions.on_entries("f[ai]*")
        tracing.definitions.on_bodies("ackermann")
        with pytest.raises(ProbeError, match=r"-f nosuch\*: no function matches"):
            tracing.definitions.on_entries("nosuch*")
        guest.run(tracing)

        hits = {name: event.probes[0].hits for (_, name), event in tracing.events.items()}
        assert (hits["p_factorial_0"], hits["p_fibonacci_0"]) == (1, CALLS)
        assert sum(name.startswith("p_ackermann_") for name in hits) > 10
        assert guest.text == ""
