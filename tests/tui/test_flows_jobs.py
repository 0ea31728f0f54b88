"""Twelve jobs of a gdb user by keys, at two sizes: answers on the screen, and keys counted.

A letter, Tab and Enter are a key each. `JOBS` has the most that each job may take, which only
falls, and what the same answer takes in gdb, None where it has none without preparation.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from compiled import build
from controlkit import sample
from flowkit import LARGE, SMALL, User, flow
from msgspec import Struct
from runfolder import run_folder
from sysroot import CHECKOUT, locked

from engine.session import GuestConfig
from engine.session.protocol.views import RunState

pytestmark = pytest.mark.slow
SOURCES = CHECKOUT / "tests" / "data" / "tui"
NAMES: Final = {
    "=": "equals_sign",
    "<": "less_than_sign",
    "&": "ampersand",
    ">": "greater_than_sign",
}
TOTAL: Final = sum(i * 10 // 50 + 1 for i in range(1, 30))
"""Charged before the call with 300, as jobs.cc says."""
FEE: Final = 300 // 50 + 1


@cache
def program(name: str) -> str:
    """A program of these tests, which keeps its state beside nothing."""
    folder = run_folder("jobs")
    source = SOURCES / name
    cpp = source.suffix == ".cc"
    with locked(folder / name):
        made = build(
            Path(folder),
            source.stem,
            source.read_text(),
            *("-g", "-O0", "-pthread"),
            compiler="g++" if cpp else "gcc",
        )
    return str(made)


class Job(Struct, frozen=True):
    """A job.

    Attributes:
        keys: the most that it may take.
        gdb: that gdb takes for the same answer.
        before: keys to the stop at which it begins, which do not count.
        do: the keys, a line in quotation marks letter by letter, `@state` waits.
        seen: the answer, in words that have to stand on the screen.
        holds: the same, in what the interface knows.
        guest: makes the program.
        args: of the program.
    """

    keys: int
    gdb: int | None
    do: str
    seen: tuple[str, ...]
    guest: Callable[[], str]
    args: tuple[str, ...] = ()
    before: str = ""
    holds: Callable[[User], bool] = lambda user: True


def _shop() -> str:
    return program("jobs.cc")


def _values(user: User) -> dict[str, str]:
    """The variables of the innermost frame."""
    return {one.name: one.value for one in user.view.frames[0].variables}


def _line(user: User) -> int:
    return user.view.line[1] if user.view.line else 0


def _last_write(user: User) -> bool:
    """Whether the guest stands in front of the addition to `total` one call before."""
    values = _values(user)
    return _line(user) == 27 and (values["i"], values["total"]) == (
        "29",
        str(TOTAL - 290 // 50 - 1),
    )


TO_300: Final = "'p' 'charge if amount==300' ctrl+g @stopped"
TO_FIRST: Final = "'p' 'charge' ctrl+g @stopped"
JOBS: Final = {
    "the first call with its arguments": Job(
        8,
        11,  # b charge, r
        TO_FIRST,
        ("charge (account=..., amount=10)",),
        _shop,
    ),
    "a breakpoint under a condition": Job(
        23,
        26,  # b charge if amount==300, r
        TO_300,
        ("charge (account=..., amount=300)",),
        _shop,
        holds=lambda user: _values(user)["amount"] == "300",
    ),
    "the caller and a variable of it": Job(
        8,
        11,  # up, p total
        "u e 'total' enter @rest",
        (f"$1 = {TOTAL}",),
        _shop,
        before=TO_300,
        holds=lambda user: user.view.frame == 1,
    ),
    "the value that a function returns": Job(
        1,
        4,  # fin
        "f @stopped",
        (f"finished: Value returned is $1 = {FEE}",),
        _shop,
        before=TO_300,
    ),
    "a crash: where, why, with what": Job(
        1,
        2,  # r
        "c @ended",
        ("killed by SIGSEGV: read at 0x8", "read_value(entry=0x0) at crash.c:31"),
        lambda: sample("x86_64", "crash"),
    ),
    "an abort in a library: the own line": Job(
        1,
        9,  # r, bt, f 9
        "c @ended",
        ("killed by SIGABRT", 'main(argc=2) at jobs.cc:30: return known.at("Bob");', "map::at"),
        _shop,
        ("x",),
    ),
    "the last write of a variable": Job(
        6,
        None,  # needs `record` from the start on
        "u 3 j j j W @stopped",
        (),
        _shop,
        before=TO_300,
        holds=lambda user: _last_write(user),
    ),
    "a container in a structure": Job(
        17,
        18,  # p account.amounts
        "e 'account.amounts' enter @rest",
        ("$1 = std::vector of length 29",),
        _shop,
        before=TO_300,
    ),
    "a deadlock: who waits for whom": Job(
        1,
        27,  # r, Ctrl-C, t a a bt, f 3, p *mutex
        "c @ended",
        ("1001 waits for current, held by 1002", "move_money(from=", "lockup.c:9"),
        lambda: program("lockup.c"),
    ),
    "an object in memory, a part of it changed": Job(
        7,
        43,  # ptype /o account, set var account.number=8
        "3 j & @rest j = '8' enter @rest",
        ("+0x000 number 8", '"Ada"'),
        _shop,
        before=TO_FIRST,
    ),
    "returns with their values, filtered": Job(
        17,
        None,  # a script of commands
        "'p' 'charge' ctrl+r enter c @ended & 'ret>7' enter @rest",
        ("(ret=8)", "ret>7"),
        _shop,
        holds=lambda user: "(ret=7)" not in user.screen,
    ),
    "back over a call that was stepped over": Job(
        2,
        None,  # needs `record` before
        "n @stopped < @stopped",
        (),
        _shop,
        before=TO_300,
        holds=lambda user: _line(user) == 18,
    ),
}


async def _press(user: User, keys: str) -> None:
    """Press keys of a job's text; after a wait the screen has come to rest."""
    words = keys.replace("'", "\0").split("\0")
    for at, part in enumerate(words):
        if at % 2:
            for letter in part:
                await user.press(NAMES.get(letter, "space" if letter == " " else letter))
            await user.pilot.pause(0.1)
            continue
        for word in part.split():
            if word == "@rest":
                await user.rest()
            elif word[0] == "@":
                await user.rest()
                await user.state(RunState(word[1:]))
            else:
                await user.press(NAMES.get(word, word))
    await user.rest()


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x40"])
@pytest.mark.parametrize("name", JOBS)
def test_a_job_takes_its_keys_and_is_answered_on_the_screen(
    name: str, size: tuple[int, int]
) -> None:
    job = JOBS[name]

    async def steps(user: User) -> None:
        await _press(user, job.before)
        begun = user.keys
        await _press(user, job.do)
        assert user.keys - begun <= job.keys
        await user.until(lambda: job.holds(user), name)
        for text in job.seen:
            # The message wraps where the terminal is narrow.
            await user.until(
                lambda text=text: text in " ".join(user.screen.split()) or text in user.screen,
                text,
            )

    flow(steps, size=size, config=GuestConfig(job.guest(), job.args, history=True))


def test_no_job_takes_more_keys_than_in_gdb() -> None:
    assert len(JOBS) == 12
    assert all(job.gdb is None or job.keys < job.gdb for job in JOBS.values())


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("'p' 'charge if nosuch==3' ctrl+g @rest", 'No symbol "nosuch" in current context.'),
        ("'p' 'nosuch' ctrl+g @rest", 'Function "nosuch" not defined.'),
        ("'p' 'charge if' ctrl+b @rest", "Breakpoint 1 at"),
        ("e 'nosuch' enter @rest", 'No symbol "nosuch" in current context.'),
        ("3 W @rest", "put the cursor on one"),
        ("3 & @rest", "put the cursor on one"),
    ],
)
def test_what_cannot_be_done_says_so_and_runs_nothing(keys: str, said: str) -> None:
    async def steps(user: User) -> None:
        await _press(user, keys)
        await user.says(said)
        assert user.view.state is RunState.READY

    flow(steps, size=SMALL, config=GuestConfig(_shop(), history=True))


def test_keys_behind_a_line_wait_for_its_end() -> None:
    async def steps(user: User) -> None:
        await user.command("b charge if amount==300")
        await user.press("c")
        await user.state(RunState.STOPPED)
        assert _values(user)["amount"] == "300"
        await user.says("breakpoint 1: charge+0xf (account=..., amount=300)")

    flow(steps, config=GuestConfig(_shop(), history=True))
