"""Fields of a kernel's own events, against the structures that its BTF has for their records."""

import pytest
from kernelimages import AMD64_61, SLOW_612, image_path

from engine.image.kernel.btftypes import BtfTypes
from engine.image.kernel.eventarray import find_event_array
from engine.image.kernel.eventfields import EventFields
from engine.image.kernel.opening import open_kernel


def fields_of(name: str) -> tuple[EventFields, BtfTypes]:
    image = open_kernel(image_path(name))
    assert image.btf is not None
    return EventFields(image, lambda: find_event_array(image)), BtfTypes(image.btf)


@pytest.mark.parametrize("kernel", [AMD64_61, SLOW_612])
def test_fields_lie_where_the_records_of_btf_have_them(kernel: str) -> None:
    """The kernel writes a record by its structure, and tells of it by its table of fields."""
    fields, types = fields_of(kernel)
    compared = 0
    for (_, name), call in fields.events.items():
        layout = types.layout(f"trace_event_raw_{name}")
        if layout is None:
            continue
        for field in fields.fields(call):
            written = "__data_loc_" if field.ctype.startswith("__data_loc") else ""
            offset, size = layout[f"{written}{field.name}"]
            assert (field.offset, field.size) == (offset, size), (name, field)
            compared += 1
    assert compared > 1000


def test_arguments_of_system_calls_have_the_names_and_types_of_the_source() -> None:
    fields, _ = fields_of(AMD64_61)
    wanted = (("int", "dfd"), ("const char *", "filename"), ("int", "flags"), ("umode_t", "mode"))
    for event in ("sys_enter_openat", "sys_exit_openat"):
        call = fields.events["syscalls", event]
        assert fields.arguments(call) == wanted
        assert fields.fields(call) == ()
    assert fields.arguments(fields.events["syscalls", "sys_enter_getpid"]) == ()
    recorder = fields.recorder(fields.events["sched", "sched_wakeup_new"])
    image = open_kernel(image_path(AMD64_61))
    found = image.names.at(recorder)
    assert found is not None
    assert found.name == "trace_event_raw_event_sched_wakeup_template"
