"""The handbook's lines for a Dask cluster, carried out: what listens where, and who is refused."""

import contextlib
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cguest import CHECKOUT
from guestrun import run

from engine.chapters import load_chapter

PATIENCE = 60.0
FILE = "[matrix]\nguest = 'race'\nseed = '0-3'\n[options]\nf = 'main'\n"
RACE = CHECKOUT / "samples" / "bin" / "x86_64" / "race"
_LISTENS = "0A"
"""State of a socket in /proc/net/tcp."""


def recipe(protocol: str) -> list[str]:
    """The chapter's lines with a scheduler of a protocol, all of them for this machine."""
    blocks = re.findall(r"```console\n(.*?)```", load_chapter("sweeps").text, re.DOTALL)
    (block,) = (each for each in blocks if re.search(rf"dask worker {protocol}://", each))
    lines = [line.removeprefix("$ ") for line in block.splitlines()]
    return [re.sub(r"10\.0\.0\.\d+", "127.0.0.1", line) for line in lines]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


def family(process: int) -> list[int]:
    """A process and all below it."""
    found = [process]
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():  # a thread of a nanny starts a worker
            children = (task / "children").read_text().split()
            found += [each for child in children for each in family(int(child))]
    return found


def listens(processes: list[int]) -> list[str]:
    """Addresses, in hexadecimal, that processes listen on by TCP; those of IPv6, too."""
    inodes = set()
    for process in processes:
        with contextlib.suppress(OSError):
            for each in os.listdir(f"/proc/{process}/fd"):
                with contextlib.suppress(OSError):
                    target = os.readlink(f"/proc/{process}/fd/{each}")
                    inodes.add(target.removeprefix("socket:[").removesuffix("]"))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENS and words[9] in inodes:
                found.append(words[1].partition(":")[0])
    return found


@contextlib.contextmanager
def started(
    lines: list[str], folder: Path, port: int
) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """The processes of the lines that end in `&`; ready when all workers are registered."""
    processes: list[subprocess.Popen[bytes]] = []
    log = folder / "log"
    background = [line.removesuffix("&") for line in lines if line.endswith("&")]
    assert all(line.startswith("dask ") for line in background)
    workers = sum(line.startswith("dask worker") for line in background)
    try:
        with log.open("wb") as out:
            for line in background:
                given = line.replace(":8786", f":{port}").replace("--port 8786", f"--port {port}")
                words = [sys.executable, "-m", *shlex.split(given.replace(":8787", ":0"))]
                processes.append(
                    subprocess.Popen(words, cwd=folder, stderr=out, start_new_session=True)
                )
        end = time.monotonic() + PATIENCE
        while log.read_text().count("Registered to:") < workers:
            assert time.monotonic() < end, log.read_text()
            assert all(process.poll() is None for process in processes), log.read_text()
            time.sleep(0.1)
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            process.kill()
            process.wait()


def in_folder(folder: Path) -> Path:
    (folder / "race").write_bytes(RACE.read_bytes())
    (folder / "race").chmod(0o755)
    (folder / "race.toml").write_text(FILE)
    return folder


def sweep(line: str, folder: Path, port: int, *more: str) -> tuple[int, str, str]:
    """Carry out a `kprobe-tui sweep` of the recipe."""
    words = shlex.split(line.replace(":8786", f":{port}"))
    assert words[:2] == ["kprobe-tui", "sweep"]
    done = run(*words[1:], *more, cwd=folder, deadline=2 * PATIENCE)
    return done.code, done.out, done.err


def check_loopback(processes: list["subprocess.Popen[bytes]"]) -> None:
    """Scheduler and dashboard; for each worker itself, its nanny and its dashboard."""
    for number, process in enumerate(processes):
        found = listens(family(process.pid))
        assert len(found) == (3 if number else 2)
        assert set(found) == {"0100007F"}, "not 127.0.0.1"


@pytest.mark.slow
def test_nothing_of_the_recipe_for_one_machine_listens_elsewhere(tmp_path: Path) -> None:
    lines, folder, port = recipe("tcp"), in_folder(tmp_path), free_port()
    assert len(lines) == 4
    with started(lines, folder, port) as processes:
        check_loopback(processes)
        code, out, err = sweep(lines[-1], folder, port)
        assert code == 0, err
        assert out == "4 cells: 4 passed\n"


@pytest.mark.slow
def test_the_recipe_for_several_machines_refuses_who_has_no_certificate(tmp_path: Path) -> None:
    lines, folder, port = recipe("tls"), in_folder(tmp_path), free_port()
    making = [line for line in lines if not line.startswith(("dask", "kprobe-tui"))]
    for who in (".", "other"):
        (folder / who).mkdir(exist_ok=True)
        subprocess.run(
            ["bash", "-ec", "\n".join(making)], cwd=folder / who, check=True, capture_output=True
        )
    for name in ("ca", "scheduler", "worker", "client"):
        assert (folder / f"{name}.key").stat().st_mode & 0o777 == 0o600
        if name != "ca":  # Python 3.13 looks as strictly
            subprocess.run(
                ["openssl", "verify", "-x509_strict", "-CAfile", "ca.pem", f"{name}.pem"],
                cwd=folder,
                check=True,
            )
    line = lines[-1]
    with started(lines, folder, port) as processes:
        check_loopback(processes)
        refused = "it cannot be reached"
        for mine, told in (
            (re.sub(r"--tls.* ", "", line), "TLS takes certificates"),
            (re.sub(r"--tls.* ", "", line).replace("tls://", "tcp://"), refused),
            (re.sub(r"client\.", "other/client.", line), refused),  # unknown to the scheduler
            (line.replace("ca.pem", "other/ca.pem"), refused),  # the scheduler is unknown to it
        ):
            code, _, err = sweep(mine, folder, port)
            assert (code, err.count("\n")) == (2, 1), err
            assert told in err
        code, out, err = sweep(line, folder, port)
        assert code == 0, err
        assert out == "4 cells: 4 passed\n"
