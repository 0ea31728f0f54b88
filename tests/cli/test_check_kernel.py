"""`check` and `disasm` of kernel images, as a user runs them."""

import json
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from guestrun import called
from kernelimages import AMD64_61, AMD64_612, UML_61, image_path, module_path


def test_definitions_give_a_row_each_in_their_order(tmp_path: Path) -> None:
    lines = ["p:a/b vfs_read", "p:a/b vfs_read+1", "p vfs_read x=%nosuch", "r100:a/c vfs_write"]
    (tmp_path / "lines").write_text("\n".join(lines))
    done = called("check", "--json", "-e", f"@{tmp_path / 'lines'}", image_path(AMD64_61))
    assert done.returncode == 1
    rows = json.loads(done.stdout)
    assert [row["definition"] for row in rows] == lines
    assert [row["errno"] for row in rows] == [None, "EILSEQ", "EINVAL", None]
    assert [row["column"] for row in rows] == [None, 6, 13, None]
    assert rows[0]["ftrace"] is True
    assert rows[0]["optimized"] is False
    assert rows[0]["address"] == "0xffffffff813669e0"
    assert rows[0]["era"] == "6.1.192"
    assert rows[0]["shown"] == "p:a/b vfs_read\n"
    assert "field:unsigned long __probe_ip;" in rows[0]["format"]
    assert rows[2]["error"] == "Invalid register name"
    assert rows[1]["reason"].startswith("not an instruction boundary")


@pytest.mark.slow
def test_lines_show_the_kernels_caret() -> None:
    done = called("check", image_path(AMD64_612), "-e", "p vfs_read file count foo")
    assert done.returncode == 2
    assert done.stdout == (
        "rejected (ENOENT): This variable is not found at this probe point\n"
        "  Command: p vfs_read file count foo\n"
        "                                 ^\n"
    )


@pytest.mark.slow
def test_events_of_functions_are_lines_of_the_other_file() -> None:
    words = ("check", image_path(AMD64_612), "-e", "f:a/b vfs_read")
    assert called(*words).returncode == 1
    (row,) = json.loads(called(*words, "--json").stdout)
    assert (row["errno"], row["error"], row["column"]) == ("EINVAL", None, None)
    assert "dynamic_events" in row["reason"]
    done = called(*words, "--dynamic-events", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)[0]["shown"] == "f:a/b vfs_read\n"


@pytest.mark.slow
def test_the_caret_stands_in_the_kernels_words() -> None:
    done = called("check", image_path(AMD64_612), "-e", "p:a/b vfs_read a=%di:%pd b=%zz")
    assert done.returncode == 2
    assert done.stdout == (
        "rejected (EINVAL): Invalid register name\n"
        "  Command: p:a/b vfs_read a=+0x0(+0x28(%di)):string b=%zz\n"
        f"           {' ' * 43}^\n"
    )


@pytest.mark.parametrize(
    "folders",
    [("lib/modules/{}", ""), ("usr/lib/modules/{}", ""), ("lib/modules/{}", "boot")],
    ids=["lib", "usr", "boot"],
)
def test_a_module_finds_its_kernel_in_its_tree(tmp_path: Path, folders: tuple[str, str]) -> None:
    modules = tmp_path / folders[0].format("6.1.0-56-amd64")
    module = modules / "kernel" / "lib" / "crc16.ko.xz"
    module.parent.mkdir(parents=True)
    shutil.copy(module_path("crc16"), module)
    kernel = modules / "vmlinuz"
    if folders[1]:
        kernel = tmp_path / folders[1] / "vmlinuz-6.1.0-56-amd64"
        kernel.parent.mkdir()
    kernel.symlink_to(image_path(AMD64_61))
    done = called("check", module, "-f", "crc16")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("0xffffffffc0000000 crc16+0x0 ")


def test_a_kernel_has_no_uprobes() -> None:
    done = called("check", image_path(AMD64_61), "--as", "uprobe", "-f", "vfs_read")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--as uprobe" in done.stderr


@pytest.mark.slow
def test_another_era_has_other_rules() -> None:
    line = "p:a/b vfs_read count"
    assert called("check", image_path(AMD64_612), "-e", line).returncode == 0
    assert called("check", "--era", "6.1", image_path(AMD64_612), "-e", line).returncode == 2
    bad = called("check", "--era", "new", image_path(AMD64_612), "-e", line)
    assert bad.returncode == 2
    assert "--era new" in bad.stderr


@pytest.mark.slow
def test_lines_build_on_each_other_if_asked() -> None:
    twice = ("-e", "p:a/b vfs_read", "-e", "p:a/b vfs_read")
    assert called("check", image_path(AMD64_61), *twice).returncode == 0
    done = called("check", "--json", "--sequence", image_path(AMD64_61), *twice)
    assert [row["errno"] for row in json.loads(done.stdout)] == [None, "EEXIST"]


@pytest.mark.slow
def test_many_functions_are_judged_by_several_processes_in_order() -> None:
    done = called("check", "--json", image_path(AMD64_61))
    assert done.returncode == 0
    rows = json.loads(done.stdout)
    assert 46_000 < len(rows) < 48_000
    addresses = [int(row["address"], 16) for row in rows]
    assert all(low <= high for low, high in pairwise(addresses))
    summary = json.loads(called("check", "--json", "--summary", image_path(AMD64_61)).stdout)
    assert summary["places"] == len(rows)
    assert summary["techniques"]["ftrace"] == sum(row["ftrace"] for row in rows)


@pytest.mark.slow
def test_probes_together_lose_jumps() -> None:
    alone = called("check", "--json", image_path(AMD64_61), "-f", "int_sqrt")
    together = called("check", "--json", "--together", image_path(AMD64_61), "-f", "int_sqrt")
    assert len(json.loads(alone.stdout)) == 1
    rows = json.loads(together.stdout)
    assert len(rows) > 10
    assert any(row["rule"] == "optprobe.neighbour" for row in rows)


@pytest.mark.slow
def test_disasm_shows_the_text_as_it_runs() -> None:
    live = called("disasm", image_path(AMD64_61), "vfs_read").stdout.splitlines()
    stored = called("disasm", "--patched", "file", image_path(AMD64_61), "vfs_read").stdout
    assert live[0].startswith("0xffffffff813669e0 <vfs_read+0x0>: 0f 1f 44 00 00")
    assert " call " in stored.splitlines()[0]


@pytest.mark.slow
def test_a_module_is_asked_against_its_kernel() -> None:
    kernel = image_path(AMD64_61)
    module = module_path("cordic")
    done = called("check", "--json", "--kernel", kernel, "-f", "cordic_*", module)
    (row,) = json.loads(done.stdout)
    assert (row["symbol"], row["technique"]) == ("cordic_calc_iq", "ftrace")
    other = called("check", "--kernel", image_path(AMD64_612), module)
    assert other.returncode == 2
    assert "a module for Linux 6.1.0-56-amd64" in other.stderr


@pytest.mark.slow
def test_user_mode_linux_names_the_tables_it_lacks() -> None:
    done = called("check", image_path(UML_61), "-f", "vfs_read")
    assert done.returncode == 0
    assert "no tables of ftrace's sites" in done.stderr


def test_a_kernel_is_not_run_without_calls(tmp_path: Path) -> None:
    done = called("run", image_path(AMD64_61))
    assert done.returncode == 2
    assert "a kernel image, of which functions are called" in done.stderr
    shutil.copy(image_path(AMD64_61), tmp_path / "x")
    (tmp_path / "x").write_bytes((tmp_path / "x").read_bytes()[:100_000])
    done = called("check", tmp_path / "x")
    assert done.returncode == 2
    assert done.stderr.count("\n") <= 2
    assert "is it cut short?" in done.stderr


@pytest.mark.parametrize("form", ["tracefs", "perf", "bpftrace"])
def test_definitions_for_a_real_machine(form: str) -> None:
    line = "p:my/rd vfs_read count=%dx"
    done = called("check", image_path(AMD64_61), "--list-as", form, "-e", line)
    assert done.returncode == 0
    assert "vfs_read" in done.stdout
    words = called("check", sys.executable, "--list-as", form, "-e", line)
    assert words.returncode == 2
    assert "no kernel image" in words.stderr


@pytest.mark.slow
def test_a_damaged_cache_is_made_anew_and_told_to_those_who_debug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPROBE_TUI_KERNEL_CACHE", str(tmp_path))
    words = ("check", image_path(UML_61), "-f", "vfs_read", "-e", "p vfs_write")
    first = called(*words)
    assert first.returncode == 0
    files = sorted(tmp_path.iterdir())
    assert len(files) > 1
    for path in files:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    again = called(*words, "--debug")
    assert (again.stdout, again.returncode) == (first.stdout, 0)
    assert again.stderr.count("made anew") == len(files)
    assert sorted(tmp_path.iterdir()) == files
    quiet = called(*words)
    assert (quiet.stdout, quiet.stderr) == (first.stdout, first.stderr)
