"""The array of trace events, found without symbols."""

import pytest
from kernelimages import AMD64_61, ARM64_61, SLOW_612, kernel_image

from engine.image.kernel.eventarray import find_event_array
from engine.image.kernel.events import OwnEvents


@pytest.mark.slow
@pytest.mark.parametrize("name", [AMD64_61, SLOW_612])
def test_it_is_where_the_symbols_are(name: str) -> None:
    image = kernel_image(name)
    symbols = image.symbol("__start_ftrace_events"), image.symbol("__stop_ftrace_events")
    assert find_event_array(image) == symbols


@pytest.mark.slow
def test_kernels_without_symbols_of_data_have_events() -> None:
    image = kernel_image(ARM64_61)
    assert image.symbol("__start_ftrace_events") is None
    events = OwnEvents(image, lambda: find_event_array(image))
    assert events.has("sched", "sched_switch")
    assert events.has("syscalls", "sys_enter_openat")
    assert events.has("ftrace", "function")
    assert not events.has("kprobes", "sched_switch")
    assert OwnEvents(image).groups == {}
