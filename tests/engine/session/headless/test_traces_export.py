"""Definitions as text for other tools, against what those make of them."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from compiled import tool
from debugged import debugged, trace
from guestrun import run

from engine.session.headless.traces import LIST_FORMS


def _listed(program: Path, form: str, *definitions: str) -> list[str]:
    options = [word for line in definitions for word in ("-e", line)]
    words = ("--list-as", form, *options, str(program))
    return run("trace", *words, cwd=program.parent).out.splitlines()


DEFINITIONS = (
    "p:g/e work n->id n->mode n->arr n->label:string k msg c counter $comm s=$stack1",
    "p:g/t twice counter",
)


def test_tracefs_commands_mean_the_same() -> None:
    """As uprobes without any variable they record what the definitions record."""
    program = debugged("x86_64", "-O0")
    lines = _listed(program, "tracefs", *DEFINITIONS)
    echoed = [line for line in lines if line.endswith("uprobe_events")]
    uprobes = [shlex.split(line)[1] for line in echoed]
    assert len(uprobes) == 3
    assert not any("n->" in line for line in uprobes)
    assert "echo 1 > /sys/kernel/tracing/events/g/e/enable" in lines

    def values(*given: str) -> list[str]:
        text = trace(program, *(word for line in given for word in ("-e", line)))
        return re.findall(r": [et]: \(.*?\)(.*)", text)

    assert values(*DEFINITIONS) == values(*uprobes)
    assert len(values(*uprobes)) == 9


@pytest.mark.parametrize("form", [form for form in LIST_FORMS if form != "kernel"])
def test_a_shell_reads_the_lines(form: str) -> None:
    program = debugged("x86_64", "-O0")
    arguments = """p:g/e work n->label:string t=\\\"it's\\" k"""
    lines = [*_listed(program, form, arguments), *_listed(program, form, *DEFINITIONS)]
    assert lines
    script = "\n".join(lines)
    done = subprocess.run(
        ["bash", "-n"], input=script, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_perf_and_bpftrace_get_their_own_words() -> None:
    program = debugged("x86_64", "-O2")
    (perf,) = _listed(program, "perf", "p:g/e work n->id k msg:string")
    assert perf == (
        f"perf probe -x {program} 'g:e=work arg1=+0(%di):s32 k=%si:s32 msg=+0(%dx):string'"
    )
    (bpftrace,) = _listed(program, "bpftrace", "p:g/e work n->mode k m=msg:string n->next->id")
    assert bpftrace == (
        f"bpftrace -e 'uprobe:{program}:work {{ printf("
        '"e: arg1=%u k=%d m=%s arg4=%d\\n", '
        '((*(uint8*)(reg("di")+4) >> 3) & 0x1f), (int32)reg("si"), str(reg("dx")), '
        '*(int32*)(*(uint64*)(reg("di")+24))); }\''
    )
    (refused,) = _listed(program, "bpftrace", "p:g/e work counter")
    assert refused.startswith("# ")
    assert "counter" in refused


def test_the_kernels_form_is_the_listing() -> None:
    program = debugged("x86_64", "-O2")
    assert _listed(program, "kernel", "p:g/e work a=n->id") == ["p:g/e work a=n->id"]
    assert LIST_FORMS == ("kernel", "tracefs", "perf", "bpftrace")


def test_perf_accepts_and_lowers_the_same() -> None:
    """`perf probe -D` prints what it would write: for its own words and for ours.

    Only for characters and enumerations it has other types: hexadecimal numbers.
    """
    perf = tool("perf")
    program = debugged("x86_64", "-O2")
    args = "n->id n->next->id k msg:string z n->arr[1] n->in.a"
    (echoed, _) = _listed(program, "tracefs", f"p:g/e work {args}")
    (written,) = _listed(program, "perf", f"p:g/e work {args}")
    ours = shlex.split(echoed)[1].split()

    def asked(words: str) -> list[str]:
        done = subprocess.run(
            [perf, "probe", "-x", program, "-D", words],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"perf cannot answer here: {done.stderr[-200:]}")
        return done.stdout.split()

    def bodies(words: list[str]) -> list[str]:
        return [word.partition("=")[2] for word in words[2:]]

    given = asked(shlex.split(written)[-1])
    assert given[0] == ours[0]
    assert int(given[1].rpartition(":")[2], 0) == int(ours[1].rpartition(":")[2], 0)
    assert given[2:] == ours[2:]
    assert bodies(asked(f"g:e=work {args}")) == bodies(ours)
