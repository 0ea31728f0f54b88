"""Lines that are nearly right, by chance: taken, or refused with one error that has words."""

import random
from pathlib import Path
from typing import Final

from sessionkit import loaded

from engine.errors import KprobeTuiError, ProbeSyntaxError
from engine.session.tracing.call_choice import SyscallChoice
from engine.session.tracing.tracing import Tracing

TARGET: Final = Path(__file__).parents[3] / "data" / "events" / "eprobe_target"
BEGIN: Final = f"p:my/begin {TARGET}:0x1000 id=%di:s32 num=%si:s64 name=+0(%dx):string"
LINES: Final = (
    'e:g/x my.begin a=$id b=+0($num):x8[4] c=$name d=\\5:u8 if id == 3 && name ~ "*red"',
    "e:y syscalls/sys_enter_openat f=+0($filename):ustring fl=$flags:b4@4/32 $comm",
    "e sched.sched_switch p=$prev_pid n=$next_comm s=@counter",
    "s:made u64 a; char[] b; unsigned long[] c; char d[16]; pid_t e",
    "s:synthetic/other s8 a;gfp_t b;bool c",
    "-:g/x my.begin a=$id",
    "!made u64 a",
)
TRIGGERS: Final = (
    "hist:keys=id,num.log2:vals=num.percent,hitcount:sort=id.descending:size=64 if id > 2",
    "hist:keys=id:aa=num,bb=num*2+$aa:onmatch(my.begin).made($aa,name):onmax($aa).save(num,id)",
    "hist:keys=name,id.buckets=4:onchange($aa).snapshot():clear",
    "enable_event:my:begin:3 if num != -1",
    "stacktrace:5 if ( id & 1 ) || ! ( num < 4 )",
)
CHOICES: Final = (
    "inject=openat,%file:error=ENOENT:signal=USR1:delay_enter=10us:when=2..9+3",
    "fault=/^get.*id$:error=5:when=3+",
    "inject=!read:retval=-0x10:delay_exit=1ms",
)
PIECES: Final = (
    *" :;.,=$+-()[]{}@%!*/\\\"'#&|<>~0159azAZ_\x01\té\udc80",
    *("$$", "if", "[]", "+0(", "hist:", "0x", "65536", "99999999999999999999", "syscalls/", "e:"),
)
EACH: Final = 60


def spoilt(line: str, chance: random.Random) -> str:
    """A line with one to four changes."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(line) + 1)
        match chance.randrange(4):
            case 0:
                line = line[:at] + line[at + chance.randint(1, 6) :]
            case 1:
                line = line[:at] + chance.choice(PIECES) + line[at:]
            case 2:
                line = line[:at] + chance.choice(PIECES) + line[at + 1 :]
            case _:
                end = at + chance.randint(1, 12)
                line = line[:end] + line[at:end] + line[end:]
    return line


def refusals(tracing: Tracing, lines: tuple[str, ...], *, triggers: bool) -> list[KprobeTuiError]:
    """What lines were refused with; others may be taken."""
    chance, refused = random.Random(5), list[KprobeTuiError]()
    for line in lines:
        for _ in range(EACH):
            text = spoilt(line, chance)
            try:
                if triggers:
                    tracing.controls.add_trigger(tracing.info("my", "begin"), text)
                else:
                    tracing.definitions.define(text)
            except KprobeTuiError as error:
                refused.append(error)
    assert all(map(str, refused))
    for one in refused:
        if isinstance(one, ProbeSyntaxError):
            assert 0 <= one.column <= len(one.command.encode(errors="replace")) + 1, one
    return refused


def test_lines_of_events() -> None:
    with loaded(TARGET) as guest:
        tracing = guest.tracing()
        tracing.definitions.define(BEGIN)
        assert len(refusals(tracing, LINES, triggers=False)) > 200
        if ("my", "begin") not in tracing.infos:
            tracing.definitions.define(BEGIN)
        assert len(refusals(tracing, TRIGGERS, triggers=True)) > 150
        guest.run(tracing)  # with all that was taken


def test_expressions_of_strace() -> None:
    chance, refused = random.Random(7), list[str]()
    calls = ("openat", "read", "write", "getuid", "getpid")
    for line in CHOICES:
        for _ in range(EACH):
            try:
                SyscallChoice((spoilt(line, chance),), calls)
            except KprobeTuiError as error:
                refused.append(str(error))
    assert all(text.startswith("-e ") for text in refused)
    assert len(refused) > 100
