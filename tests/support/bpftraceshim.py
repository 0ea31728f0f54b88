"""Stands in for `bpftrace` in the command lines of its runtime tests: calls `kprobe-tui bpftrace`.

Run by path, with Python's `-P`. What differs between the two command lines is put right: the guest
comes from the environment or from `-c`; what it writes is no output of the script.

Environment:
    RUNTIME_TEST_GUEST: the words of the guest, as JSON.
    RUNTIME_TEST_OPTIONS: options for `kprobe-tui bpftrace`, as JSON.
"""

import json
import os
import shlex
import sys

ATTACHED = "__BPFTRACE_NOTIFY_PROBES_ATTACHED\n"
"""A line of bpftrace's own that some of its runtime tests count."""
_LONG = {
    "--pid": "-p",
    "--cmd": "-c",
    "--list": "-l",
    "--verbose": "-v",
    "--quiet": "-q",
    "--format": "-f",
    "--output": "-o",
}
_WITH_VALUE = ("-p", "-c", "-f", "-o", "-e")
_WITHOUT_EFFECT = ("--usdt-file-activation",)  # semaphores are raised wherever a probe is
_FLAGS = ("-l", "-v", "-q", "--dry-run")
_OF_THE_SCRIPT = 3
"""The descriptor that the script prints to: stdout, where the guest's goes nowhere."""


class _Asked:
    """A command line of bpftrace, taken apart."""

    def __init__(self, words: list[str]) -> None:
        self.options: list[str] = []
        self.script: list[str] = []
        self.rest: list[str] = []
        self.behind: list[str] = []
        self.guest: list[str] | None = None
        self.lists = False
        self.has_file = self.of_process = False
        while words:
            word = words.pop(0)
            if word == "--":
                self.behind = words
                break
            if word.startswith("-") and len(word) > 1:
                self._option(word, words)
            else:
                self.rest.append(word)

    def _option(self, word: str, words: list[str]) -> None:
        name, sign, value = word.partition("=")
        if name.startswith("--") and name in _LONG:
            word = _LONG[name]
            if sign:
                words.insert(0, value)
        elif not word.startswith("--") and len(word) > 2:  # letters of several options together
            words.insert(0, f"-{word[2:]}" if word[:2] not in _WITH_VALUE else word[2:])
            word = word[:2]
        if word in _FLAGS:
            self.options.append(word)
            self.lists |= word == "-l"
        elif word in _WITHOUT_EFFECT:
            return
        elif word not in _WITH_VALUE:
            raise SystemExit(f"bpftrace: {word}: an option that the tests are not run with")
        elif word != "-p":
            self._valued(word, words.pop(0))
        else:
            words.pop(0)  # the process is the guest's first
            self.of_process = True

    def _valued(self, word: str, value: str) -> None:
        if word == "-c":
            self.guest = shlex.split(value)
        elif word == "-e":
            self.script += [word, value]
        else:
            self.options += [word, value]
            self.has_file |= word == "-o"


def _main() -> None:
    asked = _Asked(sys.argv[1:])
    if not asked.lists and "-v" in asked.options:
        asked.options.remove("-v")  # it only has bpftrace tell more of its own work
    options = [*json.loads(os.environ["RUNTIME_TEST_OPTIONS"]), *asked.options]
    if asked.of_process and not asked.lists:
        options += ["--follow", "no"]
    if not asked.lists:
        os.write(1, ATTACHED.encode())
    if asked.guest is None and not asked.lists and not asked.has_file:
        os.dup2(1, _OF_THE_SCRIPT)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        options += ["-o", f"/dev/fd/{_OF_THE_SCRIPT}"]
    if asked.guest and "exit(" not in " ".join(asked.script):
        asked.guest = ["/usr/bin/timeout", "2", *asked.guest]
    guest = asked.guest or json.loads(os.environ["RUNTIME_TEST_GUEST"])
    behind = ["--", *asked.behind] if asked.behind else []
    words = ["bpftrace", *options, *asked.script, *asked.rest, *behind, "--", *guest]
    os.execv(sys.executable, [sys.executable, "-m", "tui", *words])


if __name__ == "__main__":
    _main()
