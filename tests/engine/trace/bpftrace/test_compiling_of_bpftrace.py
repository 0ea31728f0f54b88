"""Runtime tests of bpftrace that need no guest: what their scripts print is what they expect.

Only if KPROBE_TUI_BPFTRACE_SOURCE names a checkout of it (0.26). Of its tests, those of begin and
end alone are run, without the command line; the texts that they expect stay where they are.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from scriptkit import checked
from scriptruns import LeftError, PlainRun

from engine.errors import KprobeTuiError
from engine.trace.bpftrace.captures import RowReads
from engine.trace.bpftrace.compiling import compile_script
from engine.trace.bpftrace.json_lines import JsonOutput
from engine.trace.bpftrace.printing import TextOutput
from engine.trace.bpftrace.state import ScriptState
from engine.trace.bpftrace.text import ScriptText
from engine.trace.bpftrace.value_names import ValueNames

SOURCE: Final = "KPROBE_TUI_BPFTRACE_SOURCE"
OTHERS: Final = (
    *("REQUIRES", "REQUIRES_FEATURE", "AFTER", "SETUP", "BEFORE", "MIN_KERNEL", "WILL_FAIL"),
    *("EXPECT_REGEX_NONE", "EXPECT_NONE"),
)
"""Tests that need more than a script."""
PROBES: Final = re.compile(
    r"\b(uprobe|uretprobe|kprobe|kretprobe|tracepoint|usdt|fentry|fexit|interval|profile|software"
    r"|hardware|iter|rawtracepoint|watchpoint|self|bench|test|[ukti]|ur|kr|rt|hw?|sw?|p|it):"
)
pytestmark = pytest.mark.skipif(not os.environ.get(SOURCE), reason=f"{SOURCE} is not set")


class NativeRun(PlainRun):
    """The run of a script whose only process is bpftrace."""

    def comm(self, thread: int) -> bytes:
        return b"bpftrace"

    def file(self, path: bytes) -> bytes | None:
        return b"12.50 3.25\n" if path == b"/proc/uptime" else None


class RuntimeTest:
    """A test of bpftrace's: its script and what it expects."""

    def __init__(self, group: str, fields: dict[str, list[str]]) -> None:
        self.name = f"{group}.{fields['NAME'][0]}"
        self.fields = fields
        run = re.fullmatch(
            r"\{\{BPFTRACE\}\} (?:-q |-k )*(-f json )?(?:-q )?-e '([^']*)'",
            fields.get("RUN", [""])[0],
        )
        self.script = fields["PROG"][0] if "PROG" in fields else run[2] if run else ""
        self.is_json = "EXPECT_JSON" in fields or bool(run and run[1])
        self.environment = dict(
            word.split("=", 1) for line in fields.get("ENV", ()) for word in line.split()
        )

    @property
    def is_whole(self) -> bool:
        """Nothing but a script is needed."""
        if any(word in self.fields for word in OTHERS) or PROBES.search(self.script):
            return False
        if self.fields.get("ARCH", ["x86_64"])[0] in ("be", "aarch64", "s390x"):
            return False
        return bool(re.search(r"(?i)\bbegin\b", self.script))

    def output(self) -> str:
        """What its script prints, warnings behind it."""
        printed: list[bytes] = []
        said: list[bytes] = []
        text = ScriptText("stdin", self.script)
        try:
            script = checked(self.script, environment=self.environment)
        except KprobeTuiError as error:
            return str(error)
        names = ValueNames(
            localtime=time.gmtime,
            booted_at=1_700_000_000_000_000_000,
            strings_cut=script.config.str_trunc_trailer.encode(),
            longest_time=script.config.max_strlen,
        )
        output = (
            JsonOutput(printed.append, names)
            if self.is_json
            else TextOutput(printed.append, said.append, names)
        )
        said += [("\n".join(remark.lines()) + "\n").encode() for remark in script.warnings]
        state = ScriptState(script, text, output, names)
        probes = compile_script(script, text, state)
        run = NativeRun({})
        if not self.is_json:
            printed.append(b"Attached %d probe%b\n" % (len(probes), b"s" * (len(probes) > 1)))
        reads = RowReads(lambda data, at: (1000, 0), "w[0]", (), {}, b"begin")
        for provider in ("begin", "end"):
            for probe in probes:
                if any(point.provider == provider for point in probe.probe.points):
                    try:
                        probe.make(reads, run)(b"", 0, 11)
                    except LeftError:
                        break
        state.print_maps()
        return b"".join(printed + said).decode("utf-8", "surrogateescape")

    def fault(self, folder: Path) -> str:
        """What is not as expected; "" if all is."""
        output = self.output()
        for text in self.fields.get("EXPECT", ()):
            plain = text.encode().decode("unicode_escape", "replace")
            if text not in output and plain not in output and text not in _unindented(output):
                return f"no {text!r} in {output!r}"
        for pattern in self.fields.get("EXPECT_REGEX", ()):
            if not re.search(pattern, output, re.MULTILINE):
                return f"no {pattern!r} in {output!r}"
        for name in self.fields.get("EXPECT_FILE", ()):
            if (folder / name.strip()).read_text().strip("\n") not in output:
                return f"{name} is not in {output!r}"
        for name in self.fields.get("EXPECT_JSON", ()):
            text = (folder / name).read_text()
            lines = text.splitlines() if name.endswith(".ndjson") else [text]
            if [json.loads(line) for line in lines] != [
                json.loads(line) for line in output.splitlines()
            ]:
                return f"{name} is not {output!r}"
        return ""


def _unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def runtime_tests(checkout: Path) -> Iterator[RuntimeTest]:
    for path in sorted(checkout.glob("tests/runtime/*")):
        if not path.is_file():
            continue
        for block in re.split(r"\n\n+", path.read_text()):
            fields: dict[str, list[str]] = {}
            last = ""
            for line in block.split("\n"):
                found = re.match(r"([A-Z_]+)(?: (.*))?$", line)
                if found:
                    last = found[1]
                    fields.setdefault(last, []).append((found[2] or "").rstrip())
                elif last and line[:1].isspace():
                    fields[last][-1] += "\n" + line.strip()
            if "NAME" in fields:
                yield RuntimeTest(path.name, fields)


def test_scripts_of_begin_and_end_print_what_is_expected() -> None:
    checkout = Path(os.environ[SOURCE])
    found = [one for one in runtime_tests(checkout) if one.is_whole]
    failed: dict[str, str] = {}
    for one in found:
        try:
            fault = one.fault(checkout / "tests")
        except Exception as error:  # the others are looked at as well
            fault = repr(error)
        if fault:
            failed[one.name] = fault
    print(f"\n{len(found) - len(failed)} of {len(found)} print what is expected; not:")
    for name, fault in failed.items():
        print(f"  {name}: {fault[:300]}")
    assert len(found) > 300
    assert len(failed) < len(found) * 3 / 100
