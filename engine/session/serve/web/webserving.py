"""Shows the terminal interface in a browser: `serve --web`, by textual-serve.

Each page that is opened starts an interface of its own, as a process beside this one, with a guest
of its own; both end with the page. The address has a random word in its path, without which
nothing is answered: who may connect to a loopback address is not always who may use the guest.
Pages of other hosts get nothing even with it, whatever their names have come to mean meanwhile
(DNS rebinding): a request has to name this server, a websocket to come from one of its pages.
"""

import asyncio
import contextlib
import logging
import secrets
import shlex
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from engine.errors import CommandError
from engine.session.control.control import Control
from engine.session.protocol.config import GuestConfig
from engine.session.serve.address import listening

try:
    from aiohttp import WSCloseCode, web
    from aiohttp.http_exceptions import HttpProcessingError
    from textual_serve.app_service import AppService
    from textual_serve.server import Server

    from engine.session.serve.web.connection_limits import Door
except ImportError as _missing:
    raise CommandError(
        "--web needs the package textual-serve: pip install 'kprobe-tui[web]'"
    ) from _missing

_PATIENCE: Final = 5.0
"""Seconds that an interface has to end by itself when its page is gone."""
_LOOK: Final = 0.01
"""Seconds between two looks at a process that was killed."""
_SIZE: Final = range(1, 1001)
"""Columns, and rows, that a page may ask for."""
_TYPED_MOST: Final = 1 << 16
"""Bytes that a page may type, or paste, at once."""
_ERROR_MOST: Final = 200
"""Characters that are told of an error: some hold what was said."""
_PAGES_MOST: Final = 32
"""Pages at a time: each is a process, with a guest."""
_SHOWN: Final = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " font-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
"""The rules for a page: it loads nothing from other hosts."""
_HEADERS: Final = {
    "Content-Security-Policy": _SHOWN,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_KEPT: Final = 15.0
"""Seconds that a connection is kept for another request."""

_NO_MESSAGE: Final = (
    *(ValueError, TypeError, LookupError, AttributeError, AssertionError),
    RecursionError,
)

Tell = Callable[[str], object]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class InterfaceProcess(AppService):
    """The process of an interface that a page shows."""

    def __init__(
        self, command: str, page: web.WebSocketResponse, downloads: Any, tell: Tell
    ) -> None:
        """Nothing is started yet.

        Args:
            command: starts it.
            page: shows it.
            downloads: see `AppService`.
            tell: takes what the user should know.
        """

        async def close() -> None:
            await page.close()

        super().__init__(
            command,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=close,
            download_manager=downloads,
        )
        self._tell = tell
        self._stops = False

    async def run(self) -> None:
        """Pass on what it says; when it has ended, however that was, the page is closed."""
        with contextlib.suppress(asyncio.CancelledError):  # so ends what has ended at once, too
            await super().run()
        if not self._stops:
            await self.remote_close()

    async def send_bytes(self, data: bytes) -> bool:
        """Type something; False if it is too much, or nobody reads it."""
        if len(data) > _TYPED_MOST:
            self._tell(
                f"a page typed {len(data)} bytes at once, of {_TYPED_MOST}: they are dropped"
            )
            return False
        return await super().send_bytes(data)

    async def set_terminal_size(self, width: int, height: int) -> None:
        """The page has another size.

        Raises:
            TypeError: it is no number of columns, or of rows.
        """
        if type(width) is not int or type(height) is not int:
            raise TypeError("a size is two numbers")
        await super().set_terminal_size(_bounded(width), _bounded(height))

    async def stop(self) -> None:
        """Ask it to end, and end it if it does not."""
        process = self._process
        if process is None:
            return
        self._stops = True
        ending = asyncio.ensure_future(self._end(process))
        try:
            await asyncio.wait({ending}, timeout=_PATIENCE)
        finally:  # even if nobody waits for it any more
            ending.cancel()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            # Closing polls the process, and would take its end from who waits for it.
            while process.returncode is None:
                await asyncio.sleep(_LOOK)
            # The pipes go, too, whatever is left in them; asyncio has no public word for that.
            vars(process)["_transport"].close()
            await process.wait()
        (error,) = await asyncio.gather(ending, return_exceptions=True)
        if isinstance(error, Exception) and not isinstance(error, ConnectionError):
            self._tell(f"an interface said what cannot be shown: {_clipped(error)}")

    async def _end(self, process: Process) -> None:
        await super().stop()
        assert process.stdout is not None
        while await process.stdout.read(_TYPED_MOST):  # it does not end while it waits to write
            pass
        await process.wait()


class WebServer(Server):
    """Pages below one secret path.

    Attributes:
        url: of the first page.
        door: is told of connections that have shown the secret; None: nobody is.
    """

    def __init__(self, command: Sequence[str], title: str, address: str, tell: Tell) -> None:
        """Make the secret; nothing listens yet.

        Args:
            command: starts the interface.
            title: of a page.
            address: HOST:PORT as a browser writes it.
            tell: takes what the user should know.
        """
        self._secret = secrets.token_urlsafe(16)
        shown = address.lower().removesuffix(":80")  # as browsers do it
        # `exec`: what is ended is to be the interface, not a shell in front of it.
        super().__init__(
            f"exec {shlex.join(command)}",
            title=title,
            public_url=f"http://{shown}",
            templates_path=Path(__file__).parent,
        )
        self.url = f"{self.public_url}/{self._secret}/"
        self.door: Door | None = None
        self._hosts = ([shown], [address.lower()])
        self._tell = tell
        self._pages: set[web.WebSocketResponse] = set()

    async def application(self) -> web.Application:
        """The application that answers requests."""
        answering = web.Application(middlewares=[self._guarded])
        answering.add_subapp(f"/{self._secret}/", await self._make_app())
        answering.on_shutdown.append(self._closed)
        return answering

    async def on_startup(self, app: web.Application) -> None:
        """Say nothing: the address is told before, in our own words."""

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Start an interface for a page, and pass on what both say, until one of them is gone."""
        page = web.WebSocketResponse(timeout=_PATIENCE, heartbeat=15)
        await page.prepare(request)
        if len(self._pages) >= _PAGES_MOST:
            self._tell(f"{_PAGES_MOST} pages are open: another one is not shown")
            await page.close(code=WSCloseCode.TRY_AGAIN_LATER)
            return page
        process = InterfaceProcess(self.command, page, self.download_manager, self._tell)
        self._pages.add(page)
        try:
            await process.start(_size(request, "width", 80), _size(request, "height", 24))
            await self._process_messages(page, process)
        except _NO_MESSAGE as error:
            self._tell(f"a page said what is no message ({_clipped(error)}): it is closed")
        except ConnectionError:  # it is gone
            pass
        except OSError as error:
            self._tell(f"an interface cannot be started: {error.strerror}")
        finally:
            try:
                await process.stop()
            finally:
                self._pages.discard(page)
            await page.close()
        return page

    async def handle_download(self, request: web.Request) -> web.StreamResponse:
        """Give no file: the interface hands none out."""
        raise web.HTTPNotFound

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer nobody who does not know the secret, and no page of another host."""
        refused = self._refusal(request)
        if refused is not None:
            refused.headers.update(_HEADERS)
            refused.force_close()
            return refused
        if self.door is not None:
            self.door.welcome(request.protocol)
        try:
            answer = await handler(request)
        except web.HTTPException as refusal:
            answer = refusal
        if not answer.prepared:
            answer.headers.update(_HEADERS)
        return answer

    def _refusal(self, request: web.Request) -> web.Response | None:
        """The answer to a request that is not to be carried out, None for one that is."""
        if [name.lower() for name in request.headers.getall("Host", [])] not in self._hosts:
            return web.Response(status=421, text="the request is for another host\n")
        # Or "*", or a host to connect to.
        first, _, rest = request.path.removeprefix("/").partition("/")
        if not secrets.compare_digest(first.encode(), self._secret.encode()):
            return web.Response(status=403, text="the address is not whole: a word is missing\n")
        origin = request.headers.get("Origin")  # of a websocket browsers always say it
        if origin != self.public_url and (origin is not None or rest.startswith("ws")):
            return web.Response(status=403, text="the request comes from another page\n")
        return None

    async def _closed(self, _: web.Application) -> None:
        closing = [
            asyncio.ensure_future(page.close(code=WSCloseCode.GOING_AWAY)) for page in self._pages
        ]
        if closing:  # a page that does not listen keeps nobody waiting
            await asyncio.wait(closing, timeout=_PATIENCE)


class _Told(logging.Handler):
    """Tells what aiohttp and textual-serve log, without the places in their code."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            return  # whoever it was was answered that it is no request
        why = "" if error is None else f": {_clipped(error)}"
        self._tell(f"{record.getMessage()}{why}")


def _clipped(error: BaseException) -> str:
    text = repr(error)
    return text if len(text) <= _ERROR_MOST else f"{text[:_ERROR_MOST]}..."


def _bounded(size: int) -> int:
    return min(max(size, _SIZE.start), _SIZE.stop - 1)


def _size(request: web.Request, name: str, otherwise: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 5 and int(text) in _SIZE else otherwise


def serve_web(command: Sequence[str], config: GuestConfig, address: str, tell: Tell) -> int:
    """Serve pages until a signal ends that; the exit code.

    Args:
        command: starts the interface.
        config: the guest that it opens; its name is "" where the user picks one there.
        address: HOST:PORT of this machine; port 0: any that is free.
        tell: takes what the user should know.

    Raises:
        KprobeTuiError: the guest cannot be opened, or nobody could reach the address.
    """
    if address.startswith("unix:"):
        raise CommandError(f"{address}: a browser needs an address of the form 127.0.0.1:PORT")
    if config.guest:
        Control(config, lambda event: None).close()  # whoever opens a page would not see why
    listener, where = listening(address)
    server = WebServer(command, config.guest or "kprobe-tui", where, tell)
    for name in ("textual-serve", "aiohttp.server"):
        log = logging.getLogger(name)
        log.propagate = False
        log.addHandler(_Told(tell))
    tell(f"open {server.url} in a browser; Ctrl-C ends this")
    asyncio.run(_served(server, listener))
    return 0


async def _served(server: WebServer, listener: socket.socket) -> None:
    """Answer requests until a signal ends that."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    runner = web.AppRunner(
        await server.application(),
        access_log=None,
        keepalive_timeout=_KEPT,
        shutdown_timeout=_PATIENCE,
    )
    await runner.setup()
    accept = runner.server
    assert accept is not None
    server.door = Door(accept, lambda: len(accept.connections))
    listening = await loop.create_server(server.door, sock=listener)
    try:
        await over.wait()
    finally:
        listening.close()
        await runner.cleanup()
