"""Messages of the host to a guest."""

import os
import threading

from engine.linux.host import HostEvents


def test_what_was_put_is_taken_in_order() -> None:
    events = HostEvents()
    events.put("signal", 2)
    events.put("blocks", 0)
    assert events.waiting()
    assert events.wait({}, 0)
    assert events.take() == [("signal", 2), ("blocks", 0)]
    assert not events.waiting()
    assert not events.wait({}, 0)
    events.close()


def test_a_thread_that_comes_late_disturbs_nobody() -> None:
    """The descriptor of the pipe may be another file's by then."""
    events = HostEvents()

    def put() -> None:
        for _ in range(20_000):
            events.put("attention", 0)

    late = threading.Thread(target=put)
    late.start()
    events.close()
    reading, writing = os.pipe()  # they get the numbers of the pipe that is gone
    late.join()
    events.put("attention", 0)
    os.close(writing)
    assert os.read(reading, 1) == b""
    os.close(reading)
