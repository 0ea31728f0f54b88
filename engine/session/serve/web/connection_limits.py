"""Connections to the web server: how many there may be, and how long one may say nothing.

Every process of this machine can connect to a loopback address. One that opens a thousand
connections, or is slow to say what it wants, keeps nobody else out: who has not made a request
with the secret makes room for the next one, and has little time.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from aiohttp import web

_MOST: Final = 200
"""Connections at a time."""
_TO_ASK: Final = 10.0
"""Seconds to make a request with the secret."""


class Door:
    """A factory of protocols for asyncio's `create_server`.

    Attributes:
        strangers: connections that have not shown the secret, the oldest first.
    """

    def __init__(self, accept: Callable[[], web.RequestHandler], count: Callable[[], int]) -> None:
        """Start without connections.

        Args:
            accept: makes the protocol of a connection.
            count: how many connections there are.
        """
        self.strangers: dict[web.RequestHandler, None] = {}
        self._accept = accept
        self._count = count

    def __call__(self) -> asyncio.BaseProtocol:
        """A connection has come."""
        handler = self._accept()
        if self._count() >= _MOST:
            if not self.strangers:
                return _NoRoom()
            self._close(next(iter(self.strangers)))
        self.strangers[handler] = None
        asyncio.get_running_loop().call_later(_TO_ASK, self._close, handler)
        return handler

    def welcome(self, handler: web.RequestHandler) -> None:
        """A connection has shown the secret: it may stay."""
        self.strangers.pop(handler, None)

    def _close(self, handler: web.RequestHandler) -> None:
        if handler in self.strangers:
            del self.strangers[handler]
            handler.force_close()


class _NoRoom(asyncio.Protocol):
    """A connection for which there is no room."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()
