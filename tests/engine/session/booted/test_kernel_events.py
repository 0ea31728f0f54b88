"""The events of a kernel's image: which there are, their fields and texts, what enables them."""

import pytest
from kernelimages import AMD64_61, image_path

from engine.errors import ProbeError
from engine.session.booted.kernel_events import EventCatalog, enabling_words, selected
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.kernels import KernelChoice
from engine.trace.printfmt.text import print_text
from engine.trace.printfmt.tokens import UnprintableError
from engine.trace.rows import EventInfo


@pytest.fixture(scope="module")
def events() -> EventCatalog:
    return EventCatalog(OpenedKernel.open(image_path(AMD64_61), KernelChoice()))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("sched:sched_switch", ("sched", "sched_switch")),
        (" sys*/sys_enter_[op]* ", ("sys*", "sys_enter_[op]*")),
        ("p:read", None),
        ("r3:group/read", None),
        ("-:sched/x", None),
        ("p vfs_read", None),
        ("/bin/busybox:0x10", None),
        ("sched:x y", None),
    ],
)
def test_one_word_selects_events(line: str, found: tuple[str, str] | None) -> None:
    assert selected(line) == found


def test_events_are_chosen_by_patterns_and_calls_by_their_names(events: EventCatalog) -> None:
    both = [("syscalls", "sys_enter_newstat"), ("syscalls", "sys_exit_newstat")]
    assert events.chosen("syscalls", "stat") == both
    assert events.chosen("syscalls", "sys_exit_open*") == [
        ("syscalls", "sys_exit_open"),
        ("syscalls", "sys_exit_open_by_handle_at"),
        ("syscalls", "sys_exit_open_tree"),
        ("syscalls", "sys_exit_openat"),
        ("syscalls", "sys_exit_openat2"),
    ]
    assert ("irq", "softirq_raise") in events.chosen("*", "*irq*")
    assert len(events.known) > 1300


@pytest.mark.parametrize(
    ("group", "name", "said"),
    [
        ("sched", "no_such", "sched:no_such: this kernel has no such event; sched has: sched_k"),
        ("schd", "*", "this kernel has no group of events schd; groups with names like it: sched"),
        ("no*", "such", "no*:such: this kernel has no such event"),
        ("ftrace", "function", "this kernel has no group of events ftrace"),
        ("syscalls", "opnat", "syscalls:opnat: this kernel has no such event; syscalls has: "),
    ],
)
def test_a_name_that_is_none_is_told(
    events: EventCatalog, group: str, name: str, said: str
) -> None:
    with pytest.raises(ProbeError) as failure:
        events.chosen(group, name)
    assert said in str(failure.value)


def test_a_kernel_is_told_to_enable_what_only_it_can_tell(events: EventCatalog) -> None:
    def words(*lines: str, given: str = "") -> str:
        return enabling_words(events.of_lines(lines), given, lambda: events.groups)

    assert words("syscalls:*", "raw_syscalls:*", "p vfs_read", given="a=b") == "a=b"
    assert words("sched:sched_switch", "irq:*", "sched:sched_switch") == (
        "trace_event=sched:sched_switch,irq:*"
    )
    told = words("sched:sched_switch", given="trace_event=block:* quiet trace_event=irq:*")
    assert told == "quiet trace_event=sched:sched_switch,irq:*"
    with pytest.raises(ProbeError, match="events do not fit into the kernel's command line"):
        words("*:[a-z]*s*")


def test_an_event_is_described_as_its_format_file_describes_it(events: EventCatalog) -> None:
    info = events.info(7, "sched", "sched_switch", strings=True)
    record = info.record
    assert record is not None
    assert [column.name for column in info.columns][:3] == ["prev_comm", "prev_pid", "prev_prio"]
    assert record.offsets == (8, 24, 28, 32, 40, 56, 60)
    assert record.sizes == (16, 4, 4, 8, 16, 4, 4)
    assert EventInfo.from_json(info.to_json()) == info
    values = {
        "prev_comm": b"cat", "prev_pid": 96, "prev_prio": 120, "prev_state": 0x102,
        "next_comm": b"init", "next_pid": 1, "next_prio": 120,
    }  # fmt: skip
    text = print_text(record.expression, info.columns)
    assert text(values, lambda address: b"") == (
        b"prev_comm=cat prev_pid=96 prev_prio=120 prev_state=D+ ==> "
        b"next_comm=init next_pid=1 next_prio=120"
    )
    softirq = events.info(7, "irq", "softirq_entry", strings=True)
    assert softirq.record is not None
    text = print_text(softirq.record.expression, softirq.columns)
    assert text({"vec": 9}, lambda address: b"") == b"vec=9 [action=RCU]"


def test_calls_have_texts_in_their_rows_where_no_kernel_is_followed(events: EventCatalog) -> None:
    enter = events.info(7, "syscalls", "sys_enter_openat", strings=True)
    assert [column.name for column in enter.columns][-1] == "__filename_val"
    plain = events.info(7, "syscalls", "sys_enter_openat", strings=False)
    assert plain.record is not None
    assert plain.record.offsets == (8, 16, 24, 32, 40)


@pytest.mark.slow
def test_nearly_all_events_have_their_own_texts(events: EventCatalog) -> None:
    """The others call functions of the kernel's."""
    without = []
    for group, name in events.known:
        info = events.info(7, group, name, strings=False)
        if group == "syscalls":
            continue
        assert info.record is not None
        try:
            print_text(info.record.expression, info.columns)
        except UnprintableError:
            without.append(f"{group}:{name}")
    assert len(without) == 15
    assert {name.partition(":")[0] for name in without} == {
        *("intel_iommu", "ras", "writeback", "xen"),
    }
