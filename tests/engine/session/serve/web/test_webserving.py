"""The interface in a browser: by Chromium, by a client that is none, and by garbage."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cguest import CHECKOUT
from guestrun import run

aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")

from chromium import Page, browse  # noqa: E402

SAMPLE = str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs")
PATIENCE = 60.0


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
        assert server.interfaces() == []
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(PATIENCE) == 0


async def _talk(server: Serving, said: list[str], until: bytes) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{server.url}ws?width=100&height=30") as link,
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
        for garbage in ("{", "[]", "1", '["stdin", 5]', '["resize", {}]', "\u00e9" * 1000):
            asyncio.run(_talk(server, [garbage], b""))
        until(lambda: not server.interfaces())
        assert server.status(server.url)[0] == 200
        server.process.send_signal(signal.SIGTERM)
        _, told = server.process.communicate(timeout=PATIENCE)
        assert server.process.returncode == 0
        assert "Traceback" not in told
        assert told.count("what is no message") == 6


@pytest.mark.slow
def test_an_interface_does_not_outlive_a_server_that_was_killed(tmp_path: Path) -> None:
    async def killed(server: Serving) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{server.url}ws") as link,
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
