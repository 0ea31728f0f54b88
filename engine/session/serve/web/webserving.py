"""Shows the terminal interface in a browser: `serve --web`, by textual-serve.

Each page that is opened starts an interface of its own, as a process beside this one, with a guest
of its own; both end with the page. The address has a random word in its path, without which
nothing is answered: who may connect to a loopback address is not always who may use the guest.
"""

import asyncio
import contextlib
import logging
import secrets
import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from engine.errors import CommandError
from engine.session.control.control import Control
from engine.session.protocol.config import GuestConfig
from engine.session.serve.address import listening

try:
    from aiohttp import WSCloseCode, web
    from textual_serve.app_service import AppService
    from textual_serve.server import Server
except ImportError as _missing:
    raise CommandError(
        "--web needs the package textual-serve: pip install 'kprobe-tui[web]'"
    ) from _missing

_PATIENCE: Final = 5.0
"""Seconds that an interface has to end by itself when its page is gone."""
_SIZE: Final = range(1, 1001)
"""Columns, and rows, that a page may ask for."""
_SHOWN: Final = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " font-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
"""The rules for a page: it loads nothing from other hosts."""
_HEADERS: Final = {
    "Content-Security-Policy": _SHOWN,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Tell = Callable[[str], object]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class InterfaceProcess(AppService):
    """The process of an interface that a page shows."""

    async def stop(self) -> None:
        """Ask it to end, and end it if it does not."""
        try:
            await asyncio.wait_for(super().stop(), _PATIENCE)
        except TimeoutError:
            self._task = None
            if self._process is not None:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
        if self._process is not None:
            await self._process.wait()


class WebServer(Server):
    """Pages below one secret path."""

    def __init__(self, command: Sequence[str], title: str, address: str, tell: Tell) -> None:
        """Make the secret; nothing listens yet.

        Args:
            command: starts the interface.
            title: of a page.
            address: HOST:PORT as a browser writes it.
            tell: takes what the user should know.
        """
        self._secret = secrets.token_urlsafe(16)
        # `exec`: what is ended is to be the interface, not a shell in front of it.
        super().__init__(
            f"exec {shlex.join(command)}",
            title=title,
            public_url=f"http://{address}",
            templates_path=Path(__file__).parent,
        )
        self.url = f"{self.public_url}/{self._secret}/"
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
        page = web.WebSocketResponse(heartbeat=15)
        await page.prepare(request)

        async def close() -> None:
            await page.close()

        process = InterfaceProcess(
            self.command,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        self._pages.add(page)
        try:
            await process.start(_size(request, "width", 80), _size(request, "height", 24))
            await self._process_messages(page, process)
        except (ValueError, TypeError, LookupError, AttributeError, AssertionError) as error:
            self._tell(f"a page said what is no message ({error!r}): it is closed")
        finally:
            self._pages.discard(page)
            await process.stop()
            await page.close()
        return page

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer nobody who does not know the secret."""
        word = request.path.split("/", 2)[1]
        if not secrets.compare_digest(word.encode(), self._secret.encode()):
            return web.Response(status=403, text="the address is not whole: a word is missing\n")
        try:
            answer = await handler(request)
        except web.HTTPException as refusal:
            answer = refusal
        if not answer.prepared:
            answer.headers.update(_HEADERS)
        return answer

    async def _closed(self, _: web.Application) -> None:
        for page in tuple(self._pages):
            await page.close(code=WSCloseCode.GOING_AWAY)


class _Told(logging.Handler):
    """Tells what textual-serve logs, without the places in its code."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(record.getMessage())


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
    socket, where = listening(address)
    server = WebServer(command, config.guest or "kprobe-tui", where, tell)
    log = logging.getLogger("textual-serve")
    log.propagate = False
    log.addHandler(_Told(tell))
    tell(f"open {server.url} in a browser; Ctrl-C ends this")
    web.run_app(
        server.application(),
        sock=socket,
        shutdown_timeout=_PATIENCE,
        print=None,
        access_log=None,
    )
    return 0
