"""`trace --latency` against the durations of `graph`; `trace --sample` against its self times."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import archkit
import pytest
from compiled import build
from guestrun import run
from sysroot import CHECKOUT

SAMPLES = CHECKOUT / "samples" / "bin"
LEFT = r"""
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static jmp_buf env;
__attribute__((noinline)) int deep(int n) { if (!n) longjmp(env, 1); return deep(n - 1) + 1; }
__attribute__((noinline)) int work(int n)
{ volatile int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
static void *body(void *at)
{ for (int i = 0; i < 10; i++) work((long)at * i); return 0; }
__attribute__((noinline)) void finish(void) { exit(0); }
int main(void)
{
    pthread_t t[2];
    for (int i = 0; i < 3; i++) if (!setjmp(env)) deep(4);
    for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, body, (void *)(i + 1));
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    if (!fork()) { work(100); _exit(0); }
    wait(0);
    finish();
}
"""
BUSY = r"""
#include <stdlib.h>
__attribute__((noinline)) unsigned hash(const char *s)
{ unsigned h = 5381; while (*s) h = h * 33 ^ *s++; return h; }
__attribute__((noinline)) int sieve(int n)
{
    char *a = calloc(n + 1, 1); int c = 0;
    for (int i = 2; i <= n; i++) if (!a[i]) { c++; for (int j = 2 * i; j <= n; j += i) a[j] = 1; }
    free(a); return c;
}
__attribute__((noinline)) int add(int a, int b) { return a + b; }
__attribute__((noinline)) int sum(int n)
{ int s = 0; for (int i = 0; i < n; i++) s = add(s, i); return s; }
static int cmp(const void *a, const void *b) { return *(int *)a - *(int *)b; }
__attribute__((noinline)) int sorting(int n)
{
    int *a = malloc(n * 4), r;
    for (int i = 0; i < n; i++) a[i] = (i * 7919) % n;
    qsort(a, n, 4, cmp); r = a[n / 2]; free(a); return r;
}
int main(void)
{
    unsigned t = 0;
    for (int i = 0; i < 2000; i++) t += hash("the quick brown fox jumps over the lazy dog");
    t += sieve(20000); t += sum(10000); t += sorting(3000);
    return t == 0;
}
"""


def written(home: Path, *words: str, code: int = 0) -> str:
    """What a run writes to `-o`."""
    path = home / "out"
    done = run(words[0], "-o", str(path), *words[1:], cwd=home)
    assert done.code == code, done.err
    return path.read_text()


def stacks(text: str) -> dict[tuple[str, ...], int]:
    pairs = (line.rpartition(" ") for line in text.splitlines())
    return {tuple(stack.split(";")): int(count) for stack, _, count in pairs}


def by_function(found: dict[tuple[str, ...], int], own: set[str] | None = None) -> Counter[str]:
    """Ticks by the innermost function, or the innermost one of some."""
    ticks: Counter[str] = Counter()
    for stack, count in found.items():
        names = [name for name in stack[1:] if own is None or name in own]
        if names:
            ticks[names[-1]] += count
    return ticks


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(
        build(tmp_path_factory.mktemp("left"), "left", LEFT, "-O1", "-g", "-pthread", "-static")
    )


# -- latencies ----------------------------------------------------------------------------


def durations(home: Path, *words: str) -> dict[str, list[int]]:
    """The durations of calls that returned, as `graph` records them."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for line in written(home, "graph", "--format", "jsonl", *words).splitlines():
        event = json.loads(line)
        if event["event"] == "ftrace/funcgraph_exit" and not event["args"]["left"]:
            name = event["symbol"].rpartition("+0x")[0]
            found[name].append(event["time"] - event["args"]["calltime"])
    return found


@pytest.mark.parametrize("arch", archkit.COMPILED)
def test_latencies_are_the_durations_of_the_graph(arch: str, tmp_path: Path) -> None:
    guest = str(SAMPLES / arch / "recursion")
    wanted = durations(tmp_path, guest)
    text = written(tmp_path, "trace", "--latency", "*", "--json", guest)
    found = {each["function"]: each for each in json.loads(text)["functions"]}
    assert {name for name, one in found.items() if one["count"]} == set(wanted)
    for name, ticks in wanted.items():
        one, ordered = found[name], sorted(ticks)
        figures = one["count"], one["total"], one["min"], one["max"]
        assert figures == (len(ticks), sum(ticks), ordered[0], ordered[-1])
        assert one["p50"] == ordered[-(-len(ticks) // 2) - 1]
        slots = Counter(max(tick.bit_length(), 1) for tick in ticks)
        drawn = {each["high"].bit_length(): each["count"] for each in one["histogram"]}
        assert {slot: count for slot, count in drawn.items() if count} == slots


def test_threads_forks_and_calls_that_are_left(tmp_path: Path, left: str) -> None:
    globs = ("deep", "work", "finish")
    options = [word for glob in globs for word in ("--latency", glob)]
    text = written(tmp_path, "trace", *options, "--json", left)
    found = {each["function"]: each for each in json.loads(text)["functions"]}
    told = {
        name: tuple(one[key] for key in ("calls", "count", "left", "open"))
        for name, one in found.items()
    }
    assert told == {"deep": (15, 0, 15, 0), "work": (21, 21, 0, 0), "finish": (1, 0, 0, 1)}
    wanted = durations(tmp_path, "-f", "deep", "-f", "work", "-f", "finish", left)
    assert (found["work"]["total"], found["work"]["max"]) == (sum(wanted["work"]), 100)
    text = written(tmp_path, "trace", *options, "--json", "--threads", left)
    work = [each for each in json.loads(text)["functions"] if each["function"] == "work"]
    assert {each["thread"]: each["count"] for each in work} == {1001: 10, 1002: 10, 1003: 1}
    assert sum(each["total"] for each in work) == sum(wanted["work"])


# -- samples ------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", archkit.COMPILED)
def test_a_sample_of_each_block_is_the_self_time_of_the_graph(arch: str, tmp_path: Path) -> None:
    guest = str(SAMPLES / arch / "recursion")
    graph = by_function(stacks(written(tmp_path, "graph", "--format", "folded", guest)))
    sampled = written(tmp_path, "trace", "--sample", "1", "--format", "folded", guest)
    samples = by_function(stacks(sampled))
    assert samples.total() == graph.total() - 1  # the first block has no sample in front of it
    differ = {name for name in {*graph, *samples} if graph[name] != samples[name]}
    # The graph's times end at the last call that it sees, and begin at the first.
    assert differ <= {"_start", "rt_start", "exit", "sys_exit", "main"}
    assert all(abs(graph[name] - samples[name]) <= 1 for name in differ)
    assert len(graph) - len(differ) >= 4


@pytest.mark.slow
def test_shares_are_those_of_the_graph(tmp_path: Path) -> None:
    guest = str(build(tmp_path, "busy", BUSY, "-O1", "-g"))
    graph = by_function(stacks(written(tmp_path, "graph", "--format", "folded", guest)))
    found = written(tmp_path, "trace", "--sample", "100", "--format", "folded", guest)
    started = {stack: count for stack, count in stacks(found).items() if "main" in stack}
    samples = by_function(started, own=set(graph))
    all_graph, all_samples = graph.total(), samples.total()
    assert all_graph > 300_000
    shares = {name: (graph[name] / all_graph, samples[name] / all_samples) for name in graph}
    assert sum(share > 0.02 for share, _ in shares.values()) >= 6
    assert max(abs(share - sampled) for share, sampled in shares.values()) < 0.02, shares


@pytest.mark.slow
def test_probes_change_no_sample(tmp_path: Path, left: str) -> None:
    words = ("trace", "--sample", "7", "--format", "folded")
    plain = written(tmp_path, *words, left)
    assert len(stacks(plain)) > 10
    with_probes = stacks(written(tmp_path, *words, "-f", "*", "-r", "work", left))
    probed = {stack: count for stack, count in with_probes.items() if stack[-1] in _names(plain)}
    assert probed == stacks(plain)
    assert written(tmp_path, *words, left) == plain


def _names(text: str) -> set[str]:
    return {name for stack in stacks(text) for name in stack}


def test_samples_leave_the_schedule_alone(tmp_path: Path) -> None:
    guest = str(SAMPLES / "x86_64" / "race")
    for name, words in (("a", ["run"]), ("b", ["trace", "--sample", "3", "-o", "/dev/null"])):
        assert run(*words, "--record-schedule", name, guest, cwd=tmp_path).code == 0
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()


def test_processes_and_threads_are_told(tmp_path: Path, left: str) -> None:
    plain = json.loads(written(tmp_path, "trace", "--sample", "20", "--json", left))
    found = {(each["process"], each["thread"]): each["self"] for each in plain["threads"]}
    assert set(found) >= {(1000, 1000), (1000, 1002), (1003, 1003)}
    assert sum(found.values()) == plain["total"] == plain["samples"] * 20
    assert sum(each["self"] for each in plain["functions"]) == plain["total"]
    main = next(each for each in plain["functions"] if each["function"] == "main")
    assert main["total"] > main["self"]
    done = run("trace", "--sample", "20", left, cwd=tmp_path)
    assert done.err.startswith(f"# {plain['samples']} samples of {plain['total']} blocks, in ")
    assert f"{found[1003, 1003]:>11}     1003     1003  left" in done.err


def test_samples_of_a_recording_are_those_of_the_run(tmp_path: Path) -> None:
    guest = str(SAMPLES / "x86_64" / "sort")
    assert run("record", "-o", "rec", guest, cwd=tmp_path).code == 0
    words = ("--sample", "3", "--format", "folded")
    first = written(tmp_path, "trace", *words, guest)
    assert first == written(tmp_path, "replay", "--quiet", *words, "rec")
    rest = ("--latency", "swap", "--json")
    latencies = written(tmp_path, "trace", *rest, guest)
    assert latencies == written(tmp_path, "replay", "--quiet", *rest, "rec")
    assert json.loads(latencies)["functions"][0]["calls"] == 199


# -- bad usage ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--latency", "nothing_here"], "--latency nothing_here: no function matches"),
        (["--latency", "f*", "-e", "p main"], "--latency and -e: one of them in a run"),
        (["--latency", "f*", "--sample", "9"], "--latency and --sample: one of them in a run"),
        (["--latency", "f*", "--format", "jsonl"], "--latency and --format: one of them"),
        (["--sample", "0"], "0 is not in the range"),
        (["--sample", "1k"], "'1k' is not a valid integer"),
        (["--json", "-e", "p main"], "--json is for --latency and --sample; events become JSON"),
        (["--threads", "-e", "p main"], "--threads is for --latency and --sample"),
        (["--sample", "9", "--json", "--format", "folded"], "the report, which --format replaces"),
        ([], "--latency GLOB or --sample N"),
    ],
)
def test_bad_usage_is_one_clear_error(words: list[str], why: str, tmp_path: Path) -> None:
    done: Any = run("trace", *words, str(SAMPLES / "x86_64" / "recursion"), cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert why in done.err
    assert "Traceback" not in done.err
