"""Drivers for two apps, one after the other, in one page of `serve --web`.

Textual's own driver tells the server at its start that an app begins, and at its end that the page
is to be closed: once each.
"""

import os
from functools import partial
from typing import Any, Final

from textual.drivers.web_driver import WebDriver

_BEGIN: Final = b"__GANGLION__\n"


class FirstDriver(WebDriver):
    """Leaves the page open; the server closes it if nothing follows."""

    def stop_application_mode(self) -> None:
        """Read no more: what is typed from now on is the next app's."""
        self.exit_event.set()
        self._input_reader.close()
        self._key_thread.join()


class NextDriver(WebDriver):
    """Goes on in a page that is open."""

    def __init__(self, *words: Any, **options: Any) -> None:
        """As the driver is made that it takes the place of."""
        super().__init__(*words, **options)
        self._write = partial(_written, self.fileno)


def _written(descriptor: int, data: bytes) -> int:
    return len(data) if data == _BEGIN else os.write(descriptor, data)
