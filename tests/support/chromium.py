"""A headless Chromium that tests drive by its DevTools protocol."""

import asyncio
import base64
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import pytest

PROGRAM = shutil.which("chromium")
PATIENCE = 120.0
"""Seconds; a busy machine starts a browser slowly."""
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-sync", "--disable-background-networking", "--disable-component-update"),
    *("--remote-debugging-port=0", "--window-size=1200,800"),
)
_LOOKS = re.compile(r"\x1b\[[0-9;]*m")


class Page:
    """The one page of a browser.

    Attributes:
        said: what the page has logged, and what it was kept from.
    """

    def __init__(self, link: aiohttp.ClientWebSocketResponse) -> None:
        self._link = link
        self._number = 0
        self._received: list[bytes] = []
        self.said: list[str] = []

    async def call(self, method: str, **values: Any) -> Any:
        """Carry out a command of the protocol."""
        self._number += 1
        await self._link.send_json({"id": self._number, "method": method, "params": values})
        while True:
            answer = await self._link.receive_json(timeout=PATIENCE)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._hear(answer["method"], answer["params"])

    def _hear(self, method: str, values: dict[str, Any]) -> None:
        if method == "Network.webSocketFrameReceived" and values["response"]["opcode"] == 2:
            self._received.append(base64.b64decode(values["response"]["payloadData"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.said.append(values["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.said.append(str(values))

    async def value(self, expression: str) -> Any:
        """What an expression of the page's is worth."""
        return (await self.call("Runtime.evaluate", expression=expression))["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until it is true."""
        await self._wait(expression, lambda: self.value(expression))

    async def until_shown(self, text: str) -> None:
        """Wait until the terminal of the page has been sent a text."""

        async def seen() -> bool:
            await self.value("0")  # hears what has come
            return text in _LOOKS.sub("", b"".join(self._received).decode("utf-8", "replace"))

        await self._wait(text, seen)

    async def _wait(self, what: str, seen: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        end = time.monotonic() + PATIENCE
        while not await seen():
            assert time.monotonic() < end, f"never: {what}"
            await asyncio.sleep(0.1)

    async def type(self, text: str) -> None:
        """Press keys; a newline is Enter."""
        for letter in text:
            key = "Enter" if letter == "\n" else letter
            code = {"windowsVirtualKeyCode": 13} if letter == "\n" else {}
            down = letter.replace("\n", "\r")
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=down, **code)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)


def browse(folder: Path, url: str, drive: Callable[[Page], Coroutine[Any, Any, None]]) -> None:
    """Open an address, and drive its page.

    Args:
        folder: an empty one, for the browser's own files.
        url: what to open.
        drive: does something with the page; the browser ends with it.
    """
    if PROGRAM is None:
        pytest.skip("chromium is not installed")
    browser = subprocess.Popen(
        [PROGRAM, *_OPTIONS, f"--user-data-dir={folder}", "about:blank"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        asyncio.run(_browse(folder / "DevToolsActivePort", url, drive))
    finally:
        browser.kill()
        browser.wait()


async def _browse(
    told: Path, url: str, drive: Callable[[Page], Coroutine[Any, Any, None]]
) -> None:
    end = time.monotonic() + PATIENCE
    async with aiohttp.ClientSession() as session:
        while True:
            assert time.monotonic() < end, "the browser does not come up"
            await asyncio.sleep(0.1)
            if not told.exists() or "\n" not in (text := told.read_text()):
                continue
            async with session.get(f"http://127.0.0.1:{text.split()[0]}/json") as answer:
                pages = [each for each in await answer.json() if each["type"] == "page"]
            if pages:
                break
        where = pages[0]["webSocketDebuggerUrl"]
        async with session.ws_connect(where, max_msg_size=0, timeout=_CLOSING) as link:
            page = Page(link)
            for domain in ("Page", "Network", "Runtime", "Log"):
                await page.call(f"{domain}.enable")
            # It is in front, as far as it knows: it has the keys.
            await page.call("Emulation.setFocusEmulationEnabled", enabled=True)
            await page.call("Page.navigate", url=url)
            await drive(page)


_CLOSING = aiohttp.ClientWSTimeout(ws_close=1)
