"""Rust's names in both manglings, against binutils' c++filt."""

import re
import shutil
import subprocess

import pytest
from rustkit import rust_program

from engine.image.mangling import spellings
from engine.image.symtab import demangle

_EXTRAS = re.compile(r"::h[0-9a-f]{16}$|\[[0-9a-f]{8,16}\]|(?<=[0-9]): [iu](?:8|16|32|64|size)\b")
"""The hash of an old name; of a new one the number of a crate and the type of a constant."""


@pytest.mark.slow
@pytest.mark.parametrize("version", ["legacy", "v0"])
def test_all_names_of_a_program(version: str) -> None:
    if shutil.which("c++filt") is None or shutil.which("nm") is None:
        pytest.skip("binutils are not installed")
    # A compiler that has v0 alone for what is stable knows no other name for it.
    flags = () if version == "legacy" else ("-C", f"symbol-mangling-version={version}")
    program = rust_program("panics", "-g", *flags)
    listed = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    names = sorted({line.split()[-1] for line in listed.splitlines()})
    names = [name for name in names if name.startswith(("_R", "_ZN"))]
    assert len(names) > 300
    command = ["c++filt", "-s", "rust"]
    told = subprocess.run(
        command, input="\n".join(names), capture_output=True, text=True, check=True
    )
    there = {
        name: _EXTRAS.sub("", line)
        for name, line in zip(names, told.stdout.splitlines(), strict=True)
    }
    assert {name: demangle(name) for name in names} == there


def test_a_name_is_found_without_the_types_that_it_was_made_for() -> None:
    name = demangle("_RINvNtCsjrHSEGnQ3l9_3std9panicking11begin_panicReEB4_")
    assert name == "std::panicking::begin_panic::<&str>"
    assert "std::panicking::begin_panic" in spellings(name)
    assert spellings("a::f::<fn(u8) -> u8>") == {"a::f::<fn(u8) -> u8>", "a::f"}
