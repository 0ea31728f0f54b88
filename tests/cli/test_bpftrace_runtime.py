"""Runtime tests of bpftrace by `kprobe-tui bpftrace`: what scripts print is what they expect.

Only if KPROBE_TUI_BPFTRACE_SOURCE names a checkout of bpftrace 0.26; nothing is written there, and
nothing of it is kept. Tests are left out only for what they need (see `bpftraceruns`).
KPROBE_TUI_BPFTRACE_TESTS is a pattern of the names of those that are run, for one test alone.
"""

import os
import re
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from bpftracecauses import CAUSES
from bpftraceprograms import built
from bpftraceruns import CLASSES, Plan, Runs, plan
from bpftracetests import RuntimeTest, read_tests
from kernelimages import AMD64_612, image_path

SOURCE: Final = "KPROBE_TUI_BPFTRACE_SOURCE"
NAMES: Final = "KPROBE_TUI_BPFTRACE_TESTS"
WORKERS: Final = 2
OF_EACH: Final = 95
OF_ALL: Final = 97
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get(SOURCE), reason=f"{SOURCE} is not set"),
]


def test_scripts_print_what_is_expected(tmp_path: Path) -> None:
    checkout = Path(os.environ[SOURCE])
    wanted = re.compile(os.environ.get(NAMES, ""))
    folder = built(checkout, tmp_path)
    runs = Runs(folder, tmp_path, image_path(AMD64_612))
    planned = [(test, plan(test, folder)) for test in read_tests(folder)]
    left_out = Counter(made.unmet for _, made in planned if made.unmet)
    asked = [(test, made) for test, made in planned if not made.unmet and wanted.search(test.name)]

    def fault(number: int) -> str:
        test, made = asked[number]
        ended = runs.of(test, made, number)
        found = test.fault(ended.output, ended.code, folder, timed_out=ended.timed_out)
        return found and f"{found}\n{ended.output[-2000:]}"

    with ThreadPoolExecutor(WORKERS) as pool:
        faults = list(pool.map(fault, range(len(asked))))
    _show(asked, faults, left_out)
    shares = _shares(asked, faults)
    if not os.environ.get(NAMES):
        assert len(asked) > 700
    assert {kind: share for kind, share in shares.items() if share < OF_EACH} == {}
    assert 100 * faults.count("") / len(asked) >= OF_ALL


def _shares(asked: list[tuple[RuntimeTest, Plan]], faults: list[str]) -> dict[str, float]:
    """Percent of the tests of each class that are as expected."""
    met: dict[str, list[bool]] = defaultdict(list)
    for (_, made), fault in zip(asked, faults, strict=True):
        met[made.kind].append(not fault)
    return {kind: 100 * sum(met[kind]) / len(met[kind]) for kind in CLASSES if kind in met}


def _show(
    asked: list[tuple[RuntimeTest, Plan]], faults: list[str], left_out: Counter[str]
) -> None:
    """Print the figures, what is left out, and each test that is not as expected."""
    print(f"\n{sum(left_out.values())} are left out, for what they need:")
    for reason, count in left_out.most_common():
        print(f"  {count:4} {reason}")
    for (test, made), fault in zip(asked, faults, strict=True):
        if fault:
            cause = CAUSES.get(test.name, "not known")
            print(f"=== {test.name} ({made.kind}): {cause}\n{test.command}\n{fault}")
    for kind, share in _shares(asked, faults).items():
        count = sum(made.kind == kind for _, made in asked)
        print(f"{kind}: {share:.1f} % of {count}")
    print(f"all: {100 * faults.count('') / len(asked):.1f} % of {len(asked)}")
