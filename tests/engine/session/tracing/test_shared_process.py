"""Code of a handlers file that does to the process what it should not: told, and over in time."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from guestrun import Outcome, finish, start
from sysroot import CHECKOUT

from engine.session.tracing import shared_process as tested
from engine.session.tracing.shared_process import SharedProcess

SAMPLE = str(CHECKOUT / "samples" / "bin" / "x86_64" / "recursion")
DEADLINE = 250.0
"""Seconds; the runs take two, or five where a limit of time ends them."""
OUT = "factorial(20) = 2432902008176640000\nfibonacci(15) = 610\nackermann(2, 3) = 9\n"


def traced(
    folder: Path, body: str, head: str = "", kind: str = "", *, limit: float = 3
) -> Outcome:
    """Trace a guest with `body` in a handler of fibonacci; `n` counts its hits.

    Args:
        folder: where the file of handlers is written.
        body: of the handler, in lines.
        head: what stands above the handler in the file.
        kind: the probe; empty for a kprobe of fibonacci with that handler.
        limit: seconds that the run may take.
    """
    probe = kind or "Kprobe(symbol_name='fibonacci', pre_handler=b)"
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (folder / "h.py").write_text(
        f"{head}\nn = [0]\ndef b(p, r, *flags):\n    n[0] += 1\n{lines}probes = [{probe}]\n"
    )
    words = ("trace", "-o", "/dev/null", "--timeout", str(limit), "--handlers", "h.py", SAMPLE)
    return finish(start(*words, cwd=folder), DEADLINE)


def told(outcome: Outcome) -> list[str]:
    prefix = "kprobe-tui: --handlers h.py: "
    lines = outcome.err.splitlines()
    assert all(line.startswith(prefix) for line in lines), outcome.err
    return [line.removeprefix(prefix) for line in lines]


THREAD = "import threading, time\ndef w():\n    while True:\n        {}\n"


@pytest.mark.parametrize("does", ["time.sleep(0.1)", "pass"])
def test_a_thread_does_not_outlive_the_guest(tmp_path: Path, does: str) -> None:
    body = "if n[0] == 1:\n    threading.Thread(target=w).start()"
    outcome = traced(tmp_path, body, THREAD.format(does))
    assert (outcome.code, outcome.out) == (0, OUT)
    (line,) = told(outcome)
    assert line.startswith("not over when the guest was: thread Thread-")
    assert "(w) (h.py:" in line


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("import concurrent.futures as c\ne = c.ThreadPoolExecutor(2)", "e.submit(len, 'x')"),
        ("import threading, time", "threading.Thread(target=time.sleep, args=(0.2,)).start()"),
        (
            "import threading, time",
            "threading.Thread(target=time.sleep, args=(9,), daemon=1).start()",
        ),
        ("import atexit\natexit.register(print, 'end', flush=True)", "pass"),
        ("import subprocess", "subprocess.run(['true'])"),
    ],
)
def test_what_ends_by_itself_is_let_end(tmp_path: Path, head: str, body: str) -> None:
    outcome = traced(tmp_path, f"if n[0] == 1:\n    {body}", head)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.removesuffix("end\n") == OUT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "what"),
    [
        ("import atexit, time\natexit.register(time.sleep, 999)", "an exit handler (atexit)"),
        (
            "import atexit\n@atexit.register\ndef f():\n    while 1: pass",
            "an exit handler (atexit)",
        ),
        (
            "import multiprocessing as m, time\n"
            "m.get_context('fork').Process(target=time.sleep, args=(999,)).start()",
            "process ",
        ),
    ],
)
def test_an_end_that_does_not_come_is_made(tmp_path: Path, head: str, what: str) -> None:
    outcome = traced(tmp_path, "pass", head)
    assert (outcome.code, outcome.out) == (0, OUT)
    (line,) = told(outcome)
    assert line.startswith(f"not over when the guest was: {what}")


BACK = "the process that was forked there came back into the engine, and is ended"
THIRD = "if n[0] == 3{}: {}"


@pytest.mark.parametrize(
    "kind",
    [
        "Kprobe(symbol_name='fibonacci', pre_handler=b)",
        "Kprobe(symbol_name='fibonacci', post_handler=b)",
        "Kretprobe(symbol_name='fibonacci', entry_handler=b)",
        "Kretprobe(symbol_name='fibonacci', handler=b)",
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        THIRD.format("", "os.fork()"),
        THIRD.format(" and not os.fork()", "raise ValueError"),
        THIRD.format(" and not os.fork()", "raise SystemExit"),
    ],
)
def test_a_copy_of_the_process_does_not_run_the_guest(
    tmp_path: Path, kind: str, body: str
) -> None:
    outcome = traced(tmp_path, body, "import os", kind)
    assert (outcome.code, outcome.out) == (0, OUT)
    assert told(outcome) == [f"line 5: {BACK}"]


@pytest.mark.parametrize(
    ("head", "count"),
    [
        ("import os; os.fork()", 1),
        ("import os\ndef init(): os.fork()\ndef exit(): os.fork()", 2),
        ("import helper\ninit = helper.init", 1),
    ],
)
def test_nor_does_one_of_another_moment(tmp_path: Path, head: str, count: int) -> None:
    (tmp_path / "helper.py").write_text("import os\ndef init():\n    os.fork()\n")
    head = f"import sys; sys.path.insert(0, '.')\n{head}"
    outcome = traced(tmp_path, "pass", head)
    assert (outcome.code, outcome.out) == (0, OUT)
    assert [line.partition(": ")[2] for line in told(outcome)] == [BACK] * count


def test_a_copy_does_what_its_code_says(tmp_path: Path) -> None:
    head = (
        "import multiprocessing as m, os\nm = m.get_context('fork')\n"
        "def f(q): q.put(os.getpid())\n"
    )
    body = (
        "if n[0] != 3: return\nq = m.Queue()\nx = m.Process(target=f, args=(q,))\nx.start()\n"
        "assert q.get() == x.pid\nx.join()\nassert x.exitcode == 0\n"
        "y = os.fork()\nif not y: os._exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(y, 0)[1]) == 7"
    )
    outcome = traced(tmp_path, body, head)
    assert (outcome.code, outcome.out, outcome.err) == (0, OUT, "")


DEPTH = "the engine is in the same process, and needs a recursion limit of 1000"


@pytest.mark.parametrize(
    ("head", "body", "said"),
    [
        ("import sys", "sys.setrecursionlimit(30)", f"line 5: ValueError: {DEPTH}"),
        ("import sys; sys.setrecursionlimit(9)", "pass", f"line 1: ValueError: {DEPTH}"),
        ("", "b(p, r)", "line 5: RecursionError: maximum recursion depth exceeded"),
        (
            "import ctypes",
            "ctypes.pythonapi.Py_SetRecursionLimit(35)",
            "it has set the recursion limit to 35, which the engine cannot live with: Recursion",
        ),
        ("import sys", "sys.exit(5)", "line 5: SystemExit: 5"),
        ("", "raise KeyboardInterrupt", "line 5: KeyboardInterrupt: "),
        ("", "raise GeneratorExit", "line 5: GeneratorExit: "),
        ("", "raise MemoryError", "line 5: MemoryError: "),
        ("", "raise ValueError('x' * 10**7)", f"line 5: ValueError: {'x' * 500}..."),
        (
            "class E(Exception):\n    def __str__(self): raise ValueError",
            "raise E",
            "line 6: E: (its text cannot be had)",
        ),
        ("import builtins", "builtins.len = lambda x: 1 / 0", "line 5: ZeroDivisionError: "),
        ("import builtins", "builtins.isinstance = lambda *x: 1 / 0", "line 5: ZeroDivisionError"),
        ("import sys", "sys.modules.clear()", "it has emptied sys.modules, which the engine"),
        ("import os", "os.closerange(3, 256)", "it has closed a file of the engine's, which"),
        (
            "import sys\ndef t(*e): raise ValueError('traced')",
            "sys.settrace(t)",
            "line 2: ValueError: traced",
        ),
        (
            "import signal\ndef t(*e): raise TimeoutError('mine')\nsignal.signal(14, t)",
            "signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)",
            "line 2: TimeoutError: mine",
        ),
    ],
)
def test_what_breaks_the_engine_is_the_files_error(
    tmp_path: Path, head: str, body: str, said: str
) -> None:
    outcome = traced(tmp_path, body, head)
    assert outcome.code == 2
    assert all(line.startswith(said) for line in told(outcome))
    assert len(set(told(outcome))) == 1


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("import gc", "gc.disable()"),
        ("import os", "os.chdir('/')"),
        ("import os", "os.umask(0o777)"),
        ("import sys", "sys.stdout.close()"),
        ("import sys", "sys.stdout = sys.stderr = None"),
        ("import sys", "sys.excepthook = sys.unraisablehook = None"),
        ("import sys\ndef t(*e): return t", "sys.settrace(t)"),
        ("import signal", "signal.set_wakeup_fd(-1)"),
        (
            "import signal",
            "signal.signal(14, lambda *e: 0)\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)",
        ),
    ],
)
def test_what_the_engine_can_live_with(tmp_path: Path, head: str, body: str) -> None:
    outcome = traced(tmp_path, body, head)
    assert (outcome.code, outcome.err) == (0, "")
    if "sys.stdout." not in body:
        assert outcome.out == OUT


@pytest.mark.parametrize(
    ("head", "body", "code"),
    [
        ("import os", "os._exit(7)", 7),
        ("import os, time", "os.kill(os.getpid(), 2)\ntime.sleep(0.2)", 130),
        ("import os, time", "os.kill(os.getpid(), 15)\ntime.sleep(0.2)", 143),
        ("import os", "for fd in (0, 1, 2): os.close(fd)", 2),
        (
            "import signal",
            "signal.signal(2, lambda *e: 0)\nsignal.raise_signal(2)\nsignal.sigtimedwait([9], 1)",
            130,
        ),
    ],
)
def test_who_ends_the_process_has_ended_it(
    tmp_path: Path, head: str, body: str, code: int
) -> None:
    outcome = traced(tmp_path, body, head)
    assert (outcome.code, outcome.err) == (code, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("while 1: pass", "pass"),
        ("def init():\n    while 1: pass", "pass"),
        ("def exit():\n    while 1: pass", "pass"),
        ("import signal", "signal.set_wakeup_fd(-1)\nwhile 1: pass"),
        ("import time", "time.sleep(999)"),
    ],
)
def test_what_never_returns_ends_at_the_limit_of_time(
    tmp_path: Path, head: str, body: str
) -> None:
    before = time.monotonic()
    outcome = traced(tmp_path, body, head, limit=1)
    assert outcome.code == 124
    assert time.monotonic() - before < DEADLINE
    assert "the time limit (--timeout) ran out" in outcome.err


@pytest.mark.parametrize(("kind", "what"), [("async def", "a coroutine"), ("def", "a generator")])
def test_a_handler_whose_call_runs_nothing_is_refused(
    tmp_path: Path, kind: str, what: str
) -> None:
    head = f"{kind} f(p, r):\n    {'yield' if kind == 'def' else 'pass'}"
    outcome = traced(tmp_path, "pass", head, "Kprobe(symbol_name='main', pre_handler=f)")
    assert outcome.code == 2
    assert told(outcome) == [f"pre_handler of main+0x0: it is {what}: a call would not run it"]


def test_copies_that_the_engine_makes_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first frame is the engine's own: os.fork() of its code, or through Python's library."""
    shared = SharedProcess.__new__(SharedProcess)
    shared.path = "x"
    here = str(Path(__file__))
    for ours in (here, str(Path(threading.__file__))):
        monkeypatch.setattr(tested, "_OURS", ours)
        child = os.fork()
        if not child:
            shared._in_copy()
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
