"""Runtime tests of bpftrace's own: the files below `tests/runtime` of a checkout, and their rules.

A test is a block of lines `DIRECTIVE TEXT`; a line that begins with white space continues the one
in front of it. What is expected is compared as bpftrace's own engine does (`engine/runner.py`).
"""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_CONTINUED: Final = ("PROG", "EXPECT", "EXPECT_REGEX")
_EXPECTATIONS: Final = re.compile(r"EXPECT(_NONE|_REGEX|_REGEX_NONE|_FILE|_JSON)?")
_DEFAULT_TIMEOUT: Final = 5
MACHINE: Final = "x86_64"


@dataclass
class RuntimeTest:
    """A test: its directives in their order, and the file that it is from."""

    suite: str
    lines: list[tuple[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The suite and the name, which need not be unique."""
        return f"{self.suite}.{self.first('NAME')}"

    def every(self, directive: str) -> list[str]:
        """The texts of a directive."""
        return [text for name, text in self.lines if name == directive]

    def first(self, directive: str) -> str:
        """The text of a directive; "" if the test does not have one."""
        return next(iter(self.every(directive)), "")

    def has(self, directive: str) -> bool:
        """True if a directive is there, perhaps without a text."""
        return any(name == directive for name, _ in self.lines)

    @property
    def seconds(self) -> int:
        """How long bpftrace runs at most; a test without a limit has that of bpftrace's engine."""
        return int(self.first("TIMEOUT") or _DEFAULT_TIMEOUT)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the test sets."""
        words = (word for text in self.every("ENV") for word in text.split())
        return dict(word.split("=", 1) for word in words)

    @property
    def command(self) -> str:
        """The command line for a shell, `{{BPFTRACE}}` in it."""
        if self.has("RUN"):
            return self.first("RUN")
        script = self.first("PROG").replace("'", "'\\''")
        expected = [name for name, _ in self.lines if _EXPECTATIONS.fullmatch(name)]
        as_json = "-q -f json " if expected[:1] == ["EXPECT_JSON"] else ""
        return f"{{{{BPFTRACE}}}} {as_json}-e '{script}'"

    @property
    def is_exact(self) -> bool:
        """True if the whole output is compared, but for lines in front of the run."""
        return self.has("EXPECT_FILE") or self.has("EXPECT_JSON")

    def fault(self, output: str, code: int, folder: Path, *, timed_out: bool) -> str:
        """What is not as expected; "" if all is.

        Args:
            output: everything that was printed.
            code: the exit code, which counts unless the time was over.
            folder: `tests` of the checkout, from which files are named.
            timed_out: the test was ended from outside.
        """
        for name, text in self.lines:
            if _EXPECTATIONS.fullmatch(name) and not self._is_met(name, text, output, folder):
                return f"{name} {text!r}"
        if timed_out:
            return ""
        if self.has("WILL_FAIL"):
            return "" if code else "it does not fail"
        wanted = int(self.first("RETURN_CODE") or 0)
        return "" if code == wanted else f"exit code {code}, not {wanted}"

    def _is_met(self, name: str, text: str, output: str, folder: Path) -> bool:
        line = rf"^\s*{re.escape(text)}\s*$"
        match name:
            case "EXPECT":
                return re.search(line, output, re.MULTILINE) is not None
            case "EXPECT_NONE":
                return re.search(line, output, re.MULTILINE) is None
            case "EXPECT_REGEX":
                return re.search(text, output, re.MULTILINE) is not None
            case "EXPECT_REGEX_NONE":
                return re.search(text, output, re.MULTILINE) is None
            case "EXPECT_FILE":
                return output.strip() == self._localized((folder / text).read_text().strip())
            case _:
                return _is_the_same_json((folder / text), output)

    def _localized(self, text: str) -> str:
        at = int(self.first("LOCALIZE_TIMESTAMPS") or -1)
        return text if at < 0 else time.strftime(text, time.localtime(at))


def _is_the_same_json(path: Path, output: str) -> bool:
    wanted = path.read_text().strip()
    pieces = wanted.splitlines() if path.suffix == ".ndjson" else [wanted]
    try:
        return [json.loads(piece) for piece in pieces] == [
            json.loads(line) for line in output.strip().splitlines()
        ]
    except ValueError:
        return False


def read_tests(folder: Path) -> Iterator[RuntimeTest]:
    """All tests of a checkout's folder `tests`, in the order of files and lines."""
    for path in sorted((folder / "runtime").iterdir()):
        if path.is_file() and not path.name.startswith("."):
            yield from _of_file(path)


def _of_file(path: Path) -> Iterator[RuntimeTest]:
    for block in re.split(r"\n[ \t]*\n", _without_comments(path.read_text())):
        test = RuntimeTest(path.name)
        for line in block.split("\n"):
            last = test.lines[-1][0] if test.lines else ""
            if last in _CONTINUED and line[: len(last) + 1].isspace():
                name, text = test.lines.pop()
                test.lines.append((name, f"{text}\n{line[len(last) + 1 :]}"))
            elif line.strip():
                name, _, text = line.strip().partition(" ")
                test.lines.append((name, text.strip()))
        if test.lines:
            yield test


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not line.startswith("#"))


def runs_here(test: RuntimeTest) -> bool:
    """Whether the test is one of this machine's architecture."""
    named = test.first("ARCH")
    return not named or MACHINE in [name.strip() for name in named.split("|")]
