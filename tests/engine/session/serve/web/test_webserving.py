"""The interface in a browser: by Chromium, by a client that is none, and by garbage."""

import asyncio
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import WSCloseCode
from aiohttp.test_utils import TestClient, TestServer
from cguest import CHECKOUT
from chromium import Page, browse
from guestrun import run
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from engine.session.serve.web import webserving

SAMPLE = str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs")
PATIENCE = 240.0


class Serving:
    """A server, and where it listens."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.fullmatch(
            r"kprobe-tui: open (http://127\.0\.0\.1:\d+/[\w-]{20,}/) in a browser; .*\n", line
        )
        assert found is not None, line
        self.url = found[1]
        self.origin = "/".join(self.url.split("/")[:3])

    def status(self, url: str) -> tuple[int, dict[str, str]]:
        """How it answers a request, and the headers."""
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return answer.status, dict(answer.headers)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers)

    def interfaces(self) -> list[int]:
        """Processes of interfaces that it has started."""
        own = self.process.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text()
        return [int(word) for word in children.split()]


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[Serving]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", "serve", "--web", "127.0.0.1:0", *words],
        cwd=CHECKOUT,
        env={**os.environ, "XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Serving(process)
    finally:
        process.kill()
        process.communicate()


def until(seen: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_who_does_not_know_the_word_is_answered_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, SAMPLE) as server:
        base = "/".join(server.url.split("/")[:3])
        for path in ("/", "/ws", "/static/js/textual.js", "/x/", "/%2e%2e/", "/\u00e9"):
            assert server.status(base + urllib.parse.quote(path))[0] == 403
        assert server.status(server.url[:-2] + "/")[0] == 403
        code, headers = server.status(server.url)
        assert code == 200
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert server.status(server.url + "static/js/textual.js")[0] == 200
        assert server.status(server.url + "nothing")[0] == 404
        for line in (b"OPTIONS *", b"CONNECT a:1", b"GET /\xff", b"\0"):
            assert _answer(server, line).split()[1] in (b"400", b"421")
        assert server.interfaces() == []
        server.process.send_signal(signal.SIGINT)
        _, told = server.process.communicate(timeout=PATIENCE)
        assert server.process.returncode == 0
        assert told == ""


def _answer(server: Serving, line: bytes) -> bytes:
    """To a request that is none of a browser's."""
    where = urllib.parse.urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port), PATIENCE) as link:
        link.sendall(line + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        return link.recv(1 << 16)


class Shown:
    """A page that is gone, or not."""

    def __init__(self, *, gone: bool) -> None:
        self.gone, self.closed = gone, False

    async def send_bytes(self, data: bytes) -> None:
        if self.gone:
            raise ConnectionResetError

    send_str = send_bytes

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("gone", "does"),
    [
        (False, "sleep 1000"),  # does not listen
        (False, "cat /dev/zero"),  # says empty packets without end
        (True, "printf 'D\\0\\0\\0\\1x'; cat /dev/zero"),
    ],
)
def test_an_interface_that_does_not_end_is_ended(
    monkeypatch: pytest.MonkeyPatch, gone: bool, does: str
) -> None:
    monkeypatch.setattr(webserving, "_PATIENCE", 0.1)

    async def stopped() -> int | None:
        script = f"echo __GANGLION__; {does}"
        page: Any = Shown(gone=gone)
        process = webserving.InterfaceProcess(
            f"exec sh -c {shlex.quote(script)}", page, DownloadManager(), told.append
        )
        await process.start(80, 24)
        await asyncio.wait_for(process.stop(), PATIENCE)
        assert process._process is not None
        return process._process.returncode

    told: list[str] = []
    assert asyncio.run(stopped()) == -signal.SIGKILL
    assert told == []


def test_a_page_is_closed_when_its_interface_has_ended_in_any_way() -> None:
    async def seen() -> None:
        page: Any = Shown(gone=False)
        process = webserving.InterfaceProcess(
            "echo __GANGLION__; kill -9 $$", page, DownloadManager(), lambda text: None
        )
        await process.start(80, 24)
        while not page.closed:
            await asyncio.sleep(0.01)
        await process.stop()

    asyncio.run(asyncio.wait_for(seen(), PATIENCE))


@pytest.mark.parametrize(
    "garbage",
    [
        *("{", "[]", "1", "{}", "[" * 100_000, '["stdin", 5]', '["stdin", "\\ud800"]'),
        *('["resize", {}]', '["resize", {"width": "a", "height": 1}]'),
        *('["resize", {"width": 1.5, "height": NaN}]', '["resize", {"width": true, "height": 1}]'),
    ],
)
def test_what_is_no_message_closes_a_page(monkeypatch: pytest.MonkeyPatch, garbage: str) -> None:
    monkeypatch.setattr(webserving, "_PATIENCE", 0.1)
    told = asyncio.run(_said(garbage))
    assert len(told) == 1
    assert re.fullmatch(r"a page said what is no message \(.{1,210}\): it is closed", told[0])


async def _said(garbage: str) -> list[str]:
    told: list[str] = []
    async with _pages(told) as opened, opened() as page:
        await page.send_str(garbage)
        assert (await page.receive(PATIENCE)).type is aiohttp.WSMsgType.CLOSE
    return told


@asynccontextmanager
async def _pages(told: list[str]) -> AsyncIterator[Callable[[], Any]]:
    """Opens pages of a server, whose interfaces give back what is typed."""
    command = ["sh", "-c", "echo __GANGLION__; exec cat"]
    server = webserving.WebServer(command, "x", "127.0.0.1:1", told.append)
    path = urllib.parse.urlsplit(server.url).path
    async with TestClient(TestServer(await server.application())) as client:
        host = "127.0.0.1:1"
        yield lambda: client.ws_connect(
            f"{path}ws", headers={"Host": host}, origin=f"http://{host}"
        )


def test_what_is_typed_at_once_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webserving, "_PATIENCE", 0.1)

    async def seen(told: list[str]) -> list[bytes]:
        async with _pages(told) as opened, opened() as page:
            for text in ("x" * (webserving._TYPED_MOST + 1), "y" * webserving._TYPED_MOST, "z"):
                await page.send_json(["stdin", text])
            return [await page.receive_bytes(timeout=PATIENCE) for _ in range(2)]

    told: list[str] = []
    assert asyncio.run(seen(told)) == [b"y" * webserving._TYPED_MOST, b"z"]
    assert told == ["a page typed 65537 bytes at once, of 65536: they are dropped"]


def test_no_more_pages_than_a_machine_can_bear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webserving, "_PAGES_MOST", 2)
    monkeypatch.setattr(webserving, "_PATIENCE", 0.1)

    async def seen(told: list[str]) -> None:
        async with _pages(told) as opened, opened() as first:
            async with opened(), opened() as third:
                assert (await third.receive(PATIENCE)).data == WSCloseCode.TRY_AGAIN_LATER
            await first.send_json(["stdin", "x"])
            assert await first.receive_bytes(timeout=PATIENCE) == b"x"

    told: list[str] = []
    asyncio.run(seen(told))
    assert told == ["2 pages are open: another one is not shown"]


@pytest.mark.parametrize(
    ("said", "taken"),
    [((120, 40), (120, 40)), ((0, -5), (1, 1)), ((10**9, 10**30), (1000, 1000))],
)
def test_sizes_are_bounded(
    monkeypatch: pytest.MonkeyPatch, said: tuple[int, int], taken: tuple[int, int]
) -> None:
    async def sent(_: AppService, data: dict[str, Any]) -> bool:
        assert (data["width"], data["height"]) == taken
        return True

    monkeypatch.setattr(AppService, "send_meta", sent)
    page: Any = Shown(gone=False)
    process = webserving.InterfaceProcess("", page, DownloadManager(), lambda text: None)
    asyncio.run(process.set_terminal_size(*said))


async def _talk(server: Serving, said: list[str], until: bytes) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{server.url}ws?width=100&height=30", origin=server.origin) as link,
    ):
        for line in said:
            await link.send_str(line)
        seen = b""
        while until not in seen:
            message = await link.receive(timeout=PATIENCE)
            if message.type is not aiohttp.WSMsgType.BINARY:
                break
            seen += message.data
        assert until in seen or not until


@pytest.mark.slow
def test_a_page_has_a_guest_of_its_own_which_ends_with_it(tmp_path: Path) -> None:
    with serving(tmp_path, "--fresh", "--ascii", SAMPLE) as server:
        asyncio.run(_talk(server, ['["resize", {"width": 120, "height": 40}]'], b"_start"))
        until(lambda: not server.interfaces())
        asyncio.run(_talk(server, ["{"], b""))
        until(lambda: not server.interfaces())
        assert server.status(server.url)[0] == 200
        server.process.send_signal(signal.SIGTERM)
        _, told = server.process.communicate(timeout=PATIENCE)
        assert server.process.returncode == 0
        assert "Traceback" not in told
        assert told.count("what is no message") == 1


@pytest.mark.slow
def test_a_sample_is_picked_in_a_page(tmp_path: Path) -> None:
    async def picked(server: Serving) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(
                f"{server.url}ws?width=100&height=30", origin=server.origin
            ) as page,
        ):
            await _until_shown(page, b"Enter opens one")
            await page.send_str('["stdin", "\\r"]')
            await _until_shown(page, b"_start")
            await page.send_str('["stdin", "q"]')
            await _until_shown(page, None)

    async def left(server: Serving) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{server.url}ws", origin=server.origin) as page,
        ):
            await _until_shown(page, b"Enter opens one")
            await page.send_str('["stdin", "q"]')
            await _until_shown(page, None)

    with serving(tmp_path, "--fresh") as server:
        asyncio.run(picked(server))
        asyncio.run(left(server))
        until(lambda: not server.interfaces())


async def _until_shown(page: Any, text: bytes | None) -> None:
    """Read on until something is shown; None: until the page is closed."""
    seen = b""
    async with asyncio.timeout(4 * PATIENCE):  # a page may be painted again and again
        while text is None or text not in seen:
            message = await page.receive(timeout=PATIENCE)
            if message.type is not aiohttp.WSMsgType.BINARY:
                assert text is None, seen
                return
            seen += message.data


@pytest.mark.slow
def test_an_interface_does_not_outlive_a_server_that_was_killed(tmp_path: Path) -> None:
    async def killed(server: Serving) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{server.url}ws", origin=server.origin) as link,
        ):
            await link.receive(timeout=PATIENCE)
            (interface,) = server.interfaces()
            server.process.kill()
            until(lambda: not _lives(interface))

    with serving(tmp_path, SAMPLE) as server:
        asyncio.run(killed(server))


def _lives(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["0.0.0.0:0", SAMPLE], "it listens on 127.0.0.1, [::1] or a socket file"),
        (["unix:/tmp/x", SAMPLE], "unix:/tmp/x: a browser needs an address of the form 127.0.0.1"),
        (["127.0.0.1:0", "pyproject.toml"], "not an ELF"),
        (["127.0.0.1:0", "--nothing", SAMPLE], "--nothing"),
        (["127.0.0.1:0", "--batch", SAMPLE], "--batch has no interface"),
    ],
)
def test_what_is_wrong_is_said_before_a_page_is_opened(words: list[str], error: str) -> None:
    outcome = run("serve", "--web", *words, cwd=CHECKOUT)
    assert outcome.code == 2
    assert error in outcome.err
    assert "Traceback" not in outcome.err


def test_its_option_comes_first() -> None:
    outcome = run("serve", "--record", "--web", "127.0.0.1:0", SAMPLE, cwd=CHECKOUT)
    assert outcome.code == 2
    assert "--web ADDR comes first" in outcome.err


@pytest.mark.slow
def test_a_probe_is_placed_in_chromium_and_its_events_are_seen(tmp_path: Path) -> None:
    async def drive(page: Page) -> None:
        await page.until("document.activeElement.className == 'xterm-helper-textarea'")
        await page.until_shown("_start+0x0")
        await page.type(":p:web/paid transfer payment=%di amount=+16(%di):s64\n")
        await page.until_shown("8 Probes 1")
        await page.type("c")
        await page.until_shown("exited with 2")
        await page.until_shown("paid(payment=0x401b80")
        assert page.said == []
        await page.type("q")
        await page.until_shown("y or n: 4 events are in no file")
        await page.type("y\n")
        await page.until("document.body.classList.contains('-closed')")

    folder = tmp_path / "browser"
    with serving(tmp_path, "--fresh", SAMPLE) as server:
        browse(folder, server.url, drive)
        until(lambda: not server.interfaces())


def _status(server: Serving, path: str, *headers: str, close: bool = True) -> int:
    """How a request is answered whose headers are these alone."""
    where = urllib.parse.urlsplit(server.url)
    lines = [f"GET {path} HTTP/1.1", *headers, "Connection: close" if close else "X: x", "", ""]
    with socket.create_connection((where.hostname, where.port), PATIENCE) as link:
        link.sendall("\r\n".join(lines).encode())
        return int(link.recv(1 << 16).split()[1])


_UPGRADE = (
    *("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"),
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


def test_a_page_of_another_host_gets_nothing_even_with_the_word(tmp_path: Path) -> None:
    with serving(tmp_path, SAMPLE) as server:
        where = urllib.parse.urlsplit(server.url)
        host, port, home = where.netloc, where.port or 0, where.path
        paths = (home, f"{home}ws", f"{home}static/js/textual.js", f"{home}download/x")
        for path in paths:
            for name in (
                *(f"evil.example:{port}", "127.0.0.1", f"localhost:{port}", f"127.0.0.1.:{port}"),
                *("", f"[::1]:{port}", f"{host}.evil.example", f"evil@{host}"),
            ):
                assert _status(server, path, f"Host: {name}") == 421
            assert _status(server, path) in (400, 421)
            assert _status(server, path, f"Host: {host}", "Host: evil.example") in (400, 421)
            # The name in the request's first line is none: the header counts.
            assert _status(server, f"http://{host}{path}", "Host: evil.example") in (400, 421)
        for path in paths:
            for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port + 1}", ""):
                given = (f"Host: {host}", f"Origin: {origin}")
                assert _status(server, path, *given, *_UPGRADE, close=False) == 403
            assert _status(server, path, f"Host: {host}", f"Origin: https://{host}") == 403
        assert _status(server, f"{home}ws", f"Host: {host}", *_UPGRADE, close=False) == 403
        assert server.interfaces() == []
        assert _status(server, home, f"Host: {host.upper()}") == 200
        mine = (f"Host: {host}", f"Origin: {server.origin}")
        assert _status(server, f"{home}ws", *mine, *_UPGRADE, close=False) == 101


def test_no_answer_gives_anything_away(tmp_path: Path) -> None:
    """The word is in the address, which goes to nobody else, and in no process's words."""
    with serving(tmp_path, SAMPLE) as server:
        home = urllib.parse.urlsplit(server.url).path
        word = home.strip("/")
        for path in ("", "static/js/textual.js", "nothing", "download/x", "../x"):
            code, headers = server.status(server.url + path)
            assert (code == 200) == (path in ("", "static/js/textual.js"))
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cache-Control"] == "no-store"
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["X-Frame-Options"] == "DENY"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert "Set-Cookie" not in headers
        for path in ("..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/server.py", "/etc/passwd"):
            assert server.status(f"{server.url}static/{path}")[0] in (403, 404)
        asyncio.run(_talk(server, [], b""))
        for process in (server.process.pid, *server.interfaces()):
            for name in ("cmdline", "environ"):
                assert word.encode() not in Path(f"/proc/{process}/{name}").read_bytes()


@pytest.mark.slow
def test_who_says_nothing_makes_room(tmp_path: Path) -> None:
    """A thousand connections do not keep a browser out, or use the server's files up."""
    with serving(tmp_path, SAMPLE) as server:
        where = urllib.parse.urlsplit(server.url)
        own = Path(f"/proc/{server.process.pid}/fd")
        idle = []
        try:
            for number in range(1000):
                link = socket.create_connection((where.hostname, where.port), PATIENCE)
                link.sendall(b"" if number % 2 else b"GET / HTTP/1.1\r\nHost: ")
                idle.append(link)
            assert server.status(server.url)[0] == 200
            until(lambda: len(list(own.iterdir())) < 250)
            # Nobody needs their room: they are closed all the same.
            until(lambda: len(list(own.iterdir())) < 30)
        finally:
            for link in idle:
                link.close()
        server.process.send_signal(signal.SIGINT)
        _, told = server.process.communicate(timeout=PATIENCE)
        assert (server.process.returncode, told) == (0, "")


@pytest.mark.slow
def test_a_page_of_another_site_cannot_use_it_in_chromium(tmp_path: Path) -> None:
    """By its own websocket, in a frame, and under a name that means this machine."""
    opens = (
        "new Promise(r => {{ const s = new WebSocket('{}');"
        " s.onopen = () => r('open'); s.onerror = () => r('refused'); }})"
    )
    with serving(tmp_path, SAMPLE) as server:
        where = urllib.parse.urlsplit(server.url)
        socket_url = f"ws://{where.netloc}{where.path}ws"

        async def attack(page: Page) -> None:
            found = await page.call(
                "Runtime.evaluate", expression=opens.format(socket_url), awaitPromise=True
            )
            assert found["result"]["value"] == "refused"
            frame = f"document.body.innerHTML = '<iframe src=\"{server.url}\"></iframe>'"
            await page.value(frame)
            await page.until("frames.length == 1")
            await page.call("Page.navigate", url=f"http://evil.localhost:{where.port}{where.path}")
            await page.until("document.body.innerText.includes('for another host')")

        other = subprocess.Popen(
            [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "0"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            text=True,
        )
        try:
            assert other.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+/", other.stdout.readline())
            assert found is not None
            browse(tmp_path / "browser", found[0], attack)
            assert server.interfaces() == []
        finally:
            other.kill()
            other.communicate()
