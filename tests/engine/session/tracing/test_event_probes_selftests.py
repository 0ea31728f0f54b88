"""Linux's own selftests of triggers, synthetic events and event probes: what they write.

They are those of Debian's sources of Linux 6.1; `KPROBE_TUI_FTRACE_SELFTESTS=1` runs them. Their
programs (ping, ls) are not: what is written to `synthetic_events`, `dynamic_events` and `trigger`
has to be accepted or refused as the scripts want it, with the caret where they have it, and the
lists have to have what they look for. Lines about events that no guest has are left out:
`ftrace/print`, `raw_syscalls`; kmem's stand on a probe of ours.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from kernelheaders import kernel_sources
from kernelimages import AMD64_61
from sessionkit import loaded

from engine.errors import KprobeTuiError, ProbeSyntaxError
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.listing import TraceListing
from engine.session.tracing.tracing import Tracing

WANTED: Final = "KPROBE_TUI_FTRACE_SELFTESTS"
TESTS: Final = "tools/testing/selftests/ftrace/test.d"
TARGET: Final = Path(__file__).parents[3] / "data" / "events" / "hist_target"
KMALLOC: Final = f"p:kmem/kmalloc {TARGET}:0x1000 call_site=%ip bytes_req=%di bytes_alloc=%si"
NOT_OURS: Final = ("events/ftrace/", "events/raw_syscalls/", "trace_marker")

UNKNOWN: Final = re.compile(r"\$\d")
"""A parameter of a function of the script."""
NOT_SO: Final = ("e:foo/bar syscalls/sys_enter_openat ^arg=$foo",)
"""Linux 6.12 has another column, which is ours."""
WRITE: Final = re.compile(
    r"""(!?)\s*(?:echo|printf)\s+(?:-n\s+)?((?:'[^']*'|"(?:[^"\\]|\\.)*")*)\s*(>>?)\s*(\S+)(.*)"""
)
PART: Final = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)\"""")
GREP: Final = re.compile(r"""(!?)\s*grep (?:-q )?"((?:[^"\\]|\\.)*)" (\w+_events)$""")
FOLDER: Final = re.compile(r"(!?)\s*test -d events/(\S+)$|if \[ (! )?-d events/(\S+) \]; then$")
ERROR: Final = re.compile(r"check(_dyn)?_error '([^']*)'")


class Script:
    """One script, as far as it is understood here."""

    def __init__(self, path: Path, tracing: Tracing) -> None:
        self.tracing = tracing
        self.words: dict[str, str] = {}
        self.lines = path.read_text().splitlines()
        found = re.search(r"ftrace_errlog_check '[^']*' \"\$1\" '([^']*)'", path.read_text())
        self.log = found[1] if found else ""
        self.done: Counter[str] = Counter()
        self.unlike: list[str] = []

    def expanded(self, text: str) -> str:
        """A word with variables, between double quotes or without any."""
        text = re.sub(r"(?<!\\)\$(\w+)", lambda m: self.words.get(m[1], m[0]), text)
        return re.sub(r"\\([$`\"\\])", r"\1", text)

    def texts(self, words: str) -> str:
        """A word of several parts between quotes."""
        return "".join(
            self.expanded(part[2]) if part[2] is not None else part[1]
            for part in PART.finditer(words)
        )

    def run(self) -> None:
        for line in map(str.strip, self.lines):
            if found := re.fullmatch(r"(\w+)=\"?([^\"`]*)\"?", line):
                self.words[found[1]] = self.expanded(found[2])
            elif line in ("do_reset", "reset_trigger"):
                self.clear_triggers()
            elif line == "clear_dynamic_events":
                self.clear_events()
            elif found := ERROR.match(line):
                file = "dynamic_events" if found[1] else self.log
                self.refused(found[2], file)
            elif found := WRITE.match(line):
                self.write(*(each or "" for each in found.groups()))
            elif found := GREP.match(line):
                wanted = self.expanded(found[2]).replace("[[:space:]]", r"\s")
                shown = any(re.search(wanted, one) for one in self.listed())
                self.expect(shown is not bool(found[1]), "lists", line)
            elif found := FOLDER.match(line):
                event = self.expanded(found[2] or found[4])
                known = {
                    *map("/".join, self.tracing.infos),
                    *(key[0] for key in self.tracing.infos),
                }
                there = event in known
                self.expect(
                    there is not bool(found[1] or (found[4] and not found[3])), "events", line
                )

    def expect(self, good: bool, what: str, line: str) -> None:
        self.done[what] += 1
        if not good:
            self.unlike.append(line)

    def listed(self) -> Iterator[str]:
        return (
            line.removeprefix("s:synthetic/")
            for line in TraceListing(self.tracing).lines("kernel")
        )

    def write(self, negated: str, words: str, mode: str, file: str, rest: str) -> None:
        text, file = self.texts(words), self.expanded(file)
        if file.startswith(NOT_OURS) or ">" in rest or not file.endswith(("_events", "trigger")):
            return
        if mode == ">" and file.endswith("_events"):
            self.clear_events()
        elif mode == ">":
            self.clear_triggers(file, "hist")
        if not text or UNKNOWN.search(text) or (mode == ">" and text.startswith("!hist")):
            return
        error = self.written(text, file)
        bad = bool(negated) or "exit_fail" in rest
        self.expect(
            bool(error) is bad, "refused" if bad else "accepted", f"{file}: {text}: {error}"
        )

    def refused(self, marked: str, file: str) -> None:
        text, column = marked.replace("^", ""), marked.index("^")
        error = self.written(text, file)
        good = isinstance(error, ProbeSyntaxError)
        if isinstance(error, ProbeSyntaxError):
            of_list = file == "synthetic_events" and error.column
            good = error.column - 2 * bool(of_list) == column
        self.expect(good or marked in NOT_SO, "carets", f"{file}: {marked}: {error}")

    def written(self, text: str, file: str) -> KprobeTuiError | None:
        define = self.tracing.definitions.define
        try:
            if file == "synthetic_events":
                define(text if text.startswith("!") else f"s:{text}")
            elif file == "dynamic_events":
                define(text)
            else:
                _, group, name, _ = file.split("/")
                if group in ("sched", "syscalls"):
                    define(f"{group}/{name}")
                if found := re.match(r"!?(?:en|dis)able_event:sched:(sched_\w+)", text):
                    define(f"sched/{found[1]}")
                self.tracing.add_trigger(group, name, text)
        except KprobeTuiError as error:
            return error
        return None

    def clear_triggers(self, file: str = "", kind: str = "") -> None:
        """Take triggers away: of a file that is opened for writing histograms alone."""
        for _ in range(3):  # some need others
            for info in list(self.tracing.infos.values()):
                here = f"events/{info}/trigger"
                for armed in list(self.tracing.controls.of(info).written):
                    if file in ("", here) and armed.trigger.text.startswith(kind):
                        self.written(f"!{armed.trigger.text}", here)

    def clear_events(self) -> None:
        """Take synthetic events and event probes away."""
        for _ in range(2):
            for (group, name), info in list(self.tracing.infos.items()):
                if info.attached or group == "synthetic":
                    self.written(f"-:{group}/{name}", "dynamic_events")


@pytest.mark.skipif(not os.environ.get(WANTED), reason=f"set {WANTED}=1 to run Linux's selftests")
def test_what_selftests_write_is_taken_as_they_want_it(tmp_path: Path) -> None:
    top = kernel_sources(AMD64_61, (TESTS,), tmp_path) / TESTS
    scripts = sorted((*top.glob("trigger/**/*.tc"), *top.glob("dynevent/*eprobe*.tc")))
    scripts.append(top / "dynevent/add_remove_synth.tc")
    done, unlike = Counter[str](), list[str]()
    for path in scripts:
        with loaded(TARGET) as guest:
            tracing = guest.tracing(TraceOptions(buffer=1000))
            tracing.definitions.define(KMALLOC)
            script = Script(path, tracing)
            script.run()
        done += script.done
        unlike += [f"{path.name}: {line}" for line in script.unlike]
    print(len(scripts), dict(done))
    assert not unlike, "\n".join(unlike)
    assert done["accepted"] > 80
    assert done["carets"] > 25
