"""The contract of `kprobe-tui check`: lines, JSON, exit codes, messages."""

import json
from pathlib import Path

import pytest
from guestrun import Outcome, run
from sysroot import CHECKOUT

DATA = CHECKOUT / "tests" / "data" / "uprobes"
INSNS = str(DATA / "kf_insns")
SORT = str(CHECKOUT / "samples" / "bin" / "x86_64" / "sort")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def check(home: Path, *words: str) -> Outcome:
    return run("check", *words, cwd=home)


def test_the_matrix_of_a_live_kernel(home: Path) -> None:
    matrix = json.loads((DATA / "matrix-6.18.json").read_text())["matrix"]
    lines = home / "definitions"
    lines.write_text("".join(f"p:m/{e['name']} {INSNS}:{e['offset']}\n" for e in matrix))
    done = check(home, "--as", "uprobe", "--mode", "kernel", "--json", "-e", f"@{lines}", INSNS)
    assert (done.code, done.err) == (1, "")
    found = json.loads(done.out)
    assert [row["errno"] or row["verdict"] for row in found] == [e["verdict"] for e in matrix]


def test_json_has_what_the_contract_says(home: Path) -> None:
    done = check(home, "--json", "-e", "p:a main+1", "-e", "p:b main", SORT)
    assert done.code == 1
    bad, good = json.loads(done.out)
    for row in (bad, good):
        assert {"address", "symbol", "offset", "verdict", "technique", "how", "reason"} <= set(row)
        assert row["address"].startswith("0x")
        assert all(set(rule) == {"rule", "ok", "detail"} for rule in row["rules"])
        assert all({"rule", "severity", "message"} <= set(item) for item in row["lint"])
    assert (good["symbol"], good["offset"], good["verdict"]) == ("main", 0, "ok")
    assert good["how"] in ("emulated", "xol", "boosted")
    assert (bad["verdict"], bad["how"]) == ("rejected", None)
    assert [rule["rule"] for rule in bad["rules"] if not rule["ok"]] == ["boundary"]
    assert [item["rule"] for item in bad["lint"]] == ["boundary"]


def test_exit_codes_and_lines(home: Path) -> None:
    done = check(home, "-e", "p:a main", SORT)
    assert done.code == 0
    address, name, technique, reason = done.out.split(maxsplit=3)
    assert (name, technique) == ("main+0x0", "jump")
    assert int(address, 16)
    assert reason
    done = check(home, "-e", "p:a main+1", SORT)
    assert done.code == 1
    assert done.out.split()[2] == "rejected"
    # Strict by default; the kernel's rules and a '!' take a uprobe in an instruction's middle.
    place = f"{INSNS}:0x1240"
    assert check(home, "-e", f"p:a {place}", INSNS).code == 1
    assert check(home, "-e", f"!p:a {place}", INSNS).code == 0
    assert check(home, "--mode", "kernel", "-e", f"p:a {place}", INSNS).code == 0
    # A refusal counts only where somebody asked for that very place.
    assert check(home, "-f", "i_*", INSNS).code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-e", "p:a nosuch", SORT), "no symbol 'nosuch'"),
        (("-e", "p:a 0x10", SORT), "outside all segments"),
        (("-e", f"p:a {SORT}:0x7fffffff", SORT), "the file ends at"),
        (("-e", "p:a /no/such:16", SORT), "Failed to find the given file"),
        (("-e", "p:a main ^", SORT), "Invalid fetch argument"),
        (("-e", "-:a", SORT), "deletion"),
        (("-e", "@/no/such", SORT), "No such file or directory"),
        (("-f", "nosuch*", SORT), "no function matches"),
        (("-f", "nolib:*", SORT), "no library 'nolib'"),
        (("--all", "-f", "main", SORT), "--all stands alone"),
        (("/no/such",), "No such file or directory"),
        (("--root", "/no/such", SORT), "not a directory"),
    ],
)
def test_errors_are_one_message_and_2(home: Path, words: tuple[str, ...], message: str) -> None:
    done = check(home, *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_one_bad_line_of_a_file_ends_no_others(home: Path) -> None:
    """Errno, text and column are those of uprobe_events (live, 6.18)."""
    lines = [
        "p:g/a main b=%si",
        f"p:g/a {SORT}:0x1000 a=%zz",
        f"p:g/a {SORT}:zz",
        "p:g/a nosuch",
        "-:g/a",
        "x:g/a main",
        "p:g/b main a=%di",
    ]
    (home / "lines").write_text("\n".join(lines))
    done = check(home, "--mode", "kernel", "--json", "-e", f"@{home / 'lines'}", SORT)
    assert (done.code, done.err) == (1, "")
    rows = json.loads(done.out)
    assert [row["definition"] for row in rows] == lines
    assert [row["verdict"] for row in rows] == ["ok", *["rejected"] * 5, "ok"]
    column = len(f"p:g/a {SORT}:0x1000 a=")
    found = [(row["errno"], row["error"], row["column"]) for row in rows]
    assert found[1] == ("EINVAL", "Invalid register name", column)
    assert found[2] == ("EINVAL", None, None)
    assert found[3] == ("EINVAL", "Invalid probed address or symbol", len("p:g/a "))
    assert found[4][1:] == found[5][1:] == (None, None)
    assert found[0] == found[6] == (None, None, None)


def test_all_and_summary_count_the_same(home: Path) -> None:
    lines = check(home, "--all", SORT).out.splitlines()
    summary = check(home, "--all", "--summary", SORT).out
    assert summary.startswith(f"{len(lines)} places: ")
    rows = json.loads(check(home, "--all", "--json", SORT).out)
    assert len({row["address"] for row in rows}) == len(rows) == len(lines)
    counts = json.loads(check(home, "--all", "--summary", "--json", SORT).out)
    assert counts["places"] == len(lines)
    assert sum(row["count"] for row in counts["reasons"]) == len(lines)


def test_without_places_the_entries_of_all_functions(home: Path) -> None:
    out = [line for line in check(home, SORT).out.splitlines() if not line.startswith(" ")]
    names = [line.split()[1] for line in out]
    assert {"main+0x0", "_start+0x0", "by_id+0x0"} <= set(names)


def test_aarch64(home: Path) -> None:
    sample = str(CHECKOUT / "samples" / "bin" / "aarch64" / "sort")
    done = check(home, "--all", "--summary", sample)
    assert (done.code, done.err) == (0, "")
    assert "arm64.emulated" in done.out


def test_why_a_place_has_no_jump(home: Path) -> None:
    """The conditions are listed in the kernel's order; the summary ranks what fails."""
    rows = json.loads(check(home, "--all", "--json", SORT).out)
    jumps = [row for row in rows if row["technique"] == "jump"]
    others = [row for row in rows if row["technique"] == "breakpoint"]
    assert jumps
    assert others
    order = ["jump-arch", "post-handler", "symbol-size", "decodes", "jump-target", "indirect-jump"]
    for row in jumps:
        names = [rule["rule"] for rule in row["rules"]]
        at = names.index("jump-arch")
        assert names[at : at + len(order)] == order
        assert all(rule["ok"] for rule in row["rules"][at:])
    for row in others:
        assert not all(rule["ok"] for rule in row["rules"])
    summary = json.loads(check(home, "--all", "--summary", "--json", SORT).out)
    assert summary["techniques"] == {"jump": len(jumps), "breakpoint": len(others)}
    assert sum(summary["no_jump"].values()) == len(others)
    kernel = json.loads(check(home, "-e", "p main", "--mode", "kernel", "--json", SORT).out)
    assert "untouched-stack" not in [rule["rule"] for rule in kernel[0]["rules"]]
    plain = check(home, "-e", "p main", "--technique", "breakpoint", SORT).out
    assert "breakpoint boosted" in plain
    assert "no jump: technique" in plain
