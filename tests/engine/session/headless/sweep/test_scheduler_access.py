"""Addresses of schedulers that are taken, and those that would open two machines."""

import re
from pathlib import Path

import pytest
from guestrun import run

from engine.errors import CommandError
from engine.session.headless.sweep.scheduler_access import scheduler_access

FILES = ("ca.pem", "client.pem", "client.key")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("127.0.0.1:8786", "tcp://127.0.0.1:8786"),
        ("tcp://127.9.9.9:1", "tcp://127.9.9.9:1"),
        ("localhost:8786", "tcp://localhost:8786"),
        ("[::1]:8786", "tcp://[::1]:8786"),
        ("tls://10.0.0.5:8786", "tls://10.0.0.5:8786"),  # files of Dask's configuration
    ],
)
def test_loopback_and_tls_are_taken(address: str, url: str) -> None:
    assert scheduler_access(address).url == url


@pytest.mark.parametrize(
    "address",
    [
        *("tcp://10.0.0.5:8786", "10.0.0.5:8786", "0.0.0.0:8786", "[::]:8786", "[fe80::1]:1"),
        *("example.org:8786", "localhost.example.org:1", "ucx://10.0.0.5:1", "ws://10.0.0.5:1"),
        *("TLS://10.0.0.5:1", "127.0.0.1@10.0.0.5:1", "2130706433:1", "", "::"),
    ],
)
def test_another_machine_in_the_clear_is_refused(address: str) -> None:
    with pytest.raises(CommandError, match=r"in the clear: .* can have .* execute anything\. Use"):
        scheduler_access(address)
    assert scheduler_access(address, insecure=True).url.endswith(address)


def test_certificates_mean_tls() -> None:
    access = scheduler_access("10.0.0.5:8786", *FILES)
    assert (access.url, access.is_encrypted) == ("tls://10.0.0.5:8786", True)
    assert scheduler_access("h:1", "ca.pem", "both.pem").key is None
    assert not scheduler_access("127.0.0.1:1").is_encrypted
    with pytest.raises(CommandError, match="certificates go with tls://"):
        scheduler_access("tcp://127.0.0.1:1", *FILES)
    for some in (("ca.pem", None, None), (None, "client.pem", "client.key"), (None, None, "k")):
        with pytest.raises(CommandError, match="--tls-ca-file and --tls-cert, both"):
            scheduler_access("h:1", *some)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--scheduler", "tcp://10.0.0.5:8786"], "it is not of this machine, and in the clear"),
        (["--scheduler", "tls://127.0.0.1:1"], "TLS takes certificates: --tls-ca-file"),
        (
            ["--scheduler", "127.0.0.1:1", "--tls-ca-file", "none", "--tls-cert", "s.toml"],
            r"its certificates \(none, s\.toml\) cannot be used: No such file",
        ),
        (["--insecure"], "--insecure: for --scheduler"),
        (["--tls-key", "k"], "--insecure: for --scheduler"),
    ],
)
def test_the_command_says_what_is_missing(tmp_path: Path, words: list[str], told: str) -> None:
    (tmp_path / "s.toml").write_text("[matrix]\nguest = '/bin/true'\n[options]\nf = '*'\n")
    outcome = run("sweep", *words, "s.toml", cwd=tmp_path)
    assert outcome.code == 2
    assert re.search(told, outcome.err), outcome.err
    assert "Traceback" not in outcome.err
    assert not list(tmp_path.glob("s.sweep/results/*"))
