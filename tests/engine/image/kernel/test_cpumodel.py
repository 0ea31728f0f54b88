"""CPUs read from texts of /proc/cpuinfo."""

from pathlib import Path

import pytest

from engine.errors import CommandError
from engine.image.kernel.cpumodel import cpu_named, cpu_of

_TEXT = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
flags\t\t: fpu sse2 smap

processor\t: 1
vendor_id\t: Other
"""


def test_the_first_processor_speaks_for_all() -> None:
    cpu = cpu_of(_TEXT, "quiet spectre_v2=off spectre-v2=auto")
    assert cpu.count == 2
    assert cpu.fields["vendor_id"] == "GenuineIntel"
    assert cpu.words("flags") == {"fpu", "sse2", "smap"}
    assert cpu.number("cpu family") == 6
    assert cpu.option("spectre_v2") == "auto"
    assert cpu.option("quiet") == ""
    assert cpu.option("nosmp") is None


def test_a_command_line_may_stand_in_the_text() -> None:
    cpu = cpu_of(f"command line: preempt=full\n{_TEXT}", "quiet")
    assert cpu.command_line == ("preempt=full",)
    assert "command line" not in cpu.fields


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_the_golden_machine_has_one_processor(architecture: str) -> None:
    cpu = cpu_named("golden", architecture)
    assert cpu.count == 1
    assert cpu.option("nokaslr") == ""


def test_the_hosts_cpu_is_read() -> None:
    assert cpu_named("host", "x86_64").count > 0


def test_what_is_no_cpuinfo_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("hello: world")
    with pytest.raises(CommandError, match="no line `processor`"):
        cpu_named(str(path), "x86_64")
    with pytest.raises(CommandError, match="No such file"):
        cpu_named(str(tmp_path / "none"), "x86_64")


def test_a_cpu_of_another_architecture_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(_TEXT)
    assert cpu_named(str(path), "x86_64").count == 2
    with pytest.raises(CommandError, match="another architecture than aarch64"):
        cpu_named(str(path), "aarch64")
