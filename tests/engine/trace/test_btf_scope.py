"""Parameters of kernel functions in definitions, by the types of a real kernel."""

import pytest
from kernelkit import golden_kernel

from engine.arch.program import Base, FieldType, Source, ValueKind
from engine.fetch.dentry_types import DentryOffsets
from engine.fetch.era import MEASURED, Era, era_of
from engine.fetch.variables import TEXT_POINTER, Fetched, VariableError
from engine.trace.btf_scope import BtfScope, dentry_offsets, find_prototype

KERNEL = golden_kernel("amd64-6.12")


def _scope(function: str, *, is_return: bool = False, era: Era = MEASURED) -> BtfScope:
    prototype = find_prototype(KERNEL.types, function)
    return BtfScope(KERNEL.arch, era, prototype, is_return=is_return)


def _error(text: str, function: str = "vfs_read", *, is_return: bool = False) -> tuple[str, int]:
    with pytest.raises(VariableError) as caught:
        _scope(function, is_return=is_return).resolve(text)
    return caught.value.code, caught.value.offset


def test_parameters_are_where_calls_put_them() -> None:
    scope = _scope("vfs_read")
    assert scope.parameters() == ("file", "buf", "count", "pos")
    assert scope.resolve("count") == Fetched(
        Base(Source.REGISTER, register="rdx"), (), FieldType(ValueKind.UNSIGNED, 8)
    )
    assert scope.resolve("buf").string == TEXT_POINTER
    returned = _scope("vfs_read", is_return=True)
    assert returned.resolve("count").base == Base(Source.ENTRY, value=2)


def test_members_are_followed() -> None:
    scope = _scope("vfs_read")
    name = scope.resolve("file->f_path.dentry->d_name.name")
    assert (name.derefs, name.string) == ((0x48, 0x28), TEXT_POINTER)
    mode = scope.resolve("file->f_inode->i_mode")
    assert (mode.derefs[-1], mode.kind) == (0, FieldType(ValueKind.UNSIGNED, 2))
    # d_name's hash is in anonymous parts of it
    assert scope.resolve("file->f_path.dentry->d_name.hash").kind == FieldType(
        ValueKind.UNSIGNED, 4
    )


def test_results_have_types() -> None:
    scope = _scope("dget_parent", is_return=True)
    flags = scope.resolve("$retval->d_flags")
    assert (flags.base, flags.derefs) == (Base(Source.RETVAL), (0,))
    assert _scope("nosuch", is_return=True).resolve("$retval") == Fetched(Base(Source.RETVAL))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("nosuch", ("NO_BTFARG", 0)),
        ("file.f_flags", ("NOSUP_DAT_ARG", 5)),
        ("file->nosuch", ("NO_BTF_FIELD", 6)),
        ("file->f_path.nosuch", ("NO_BTF_FIELD", 13)),
        ("file->", ("NO_BTF_FIELD", 6)),
        ("file-f_flags", ("BAD_HYPHEN", 4)),
        ("file->f_path-dentry", ("BAD_HYPHEN", 12)),
        ("count->x", ("NO_PTR_STRCT", 7)),
        ("pos->x", ("BAD_BTF_TID", 5)),
        ("file->f_flags->x", ("NO_PTR_STRCT", 15)),
    ],
)
def test_errors_point_where_the_kernel_does(text: str, error: tuple[str, int]) -> None:
    assert _error(text) == error


def test_functions_that_are_not_described() -> None:
    assert _error("x", "nosuch") == ("NO_BTF_ENTRY", 0)
    assert _error("$retval->x", "nosuch", is_return=True) == ("NO_BTF_ENTRY", 9)
    assert _error("$retval", "kfree", is_return=True) == ("NO_RETVAL", 0)
    early = era_of((6, 5, 0))
    assert _scope("kfree", is_return=True, era=early).resolve("$retval").kind is not None


def test_the_members_of_paths() -> None:
    assert dentry_offsets(KERNEL.types) == DentryOffsets(name=0x28, dentry=0x48)
    assert dentry_offsets(()) is None
