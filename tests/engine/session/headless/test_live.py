"""Requests to a running kernel, as far as they are understood before it is asked."""

import io
import os

import pytest
from kernelimages import AMD64_61, image_path
from livekit import PROGRAM

from engine.errors import CommandError
from engine.session.headless import live as requests
from engine.session.headless.live import LiveRun, opened_tracing, running_image
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.requests import LiveRequest, ProbeRequest, TraceOptions


def request(guest: str, line: str, *, starts: bool = True) -> LiveRequest:
    """To record the processes of this one, with a GUEST on the command line."""
    probes = ProbeRequest(definitions=(line,))
    return LiveRequest(
        GuestConfig(guest),
        probes,
        TraceOptions(),
        (),
        (),
        starts,
        (os.getpid(),),
        None,
        4096,
        False,
    )


def understood(asked: LiveRequest) -> LiveRun:
    with opened_tracing(asked.config) as tracing:
        return LiveRun(tracing, asked, io.BytesIO())


def test_a_program_is_started_or_runs() -> None:
    with pytest.raises(CommandError, match="GUEST and --pid: one of them"):
        understood(request(str(PROGRAM), "p:a deposit"))
    understood(request(str(PROGRAM), "p:a deposit", starts=False))


def test_kprobes_on_behalf_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    image = str(image_path(AMD64_61))
    with pytest.raises(CommandError, match="is not the kernel that runs: its build-id is"):
        understood(request(image, "p:a vfs_read"))
    monkeypatch.setattr(requests, "check_running", lambda kernel: None)
    understood(request(image, "p:a vfs_read"))


def test_the_image_of_the_running_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_IMAGES", ("/nowhere/vmlinuz-{}",))
    with pytest.raises(CommandError, match=f"not there .*{os.uname().release}.: give it as GUEST"):
        running_image()
    monkeypatch.setattr(requests, "_IMAGES", ("/nowhere/{}", f"{os.devnull}"))
    assert running_image() == os.devnull
