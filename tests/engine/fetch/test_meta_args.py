"""`$arg*` and `$argN` without a name, as the kernel rewrites them."""

import pytest
from definitionkit import X86

from engine.errors import ProbeSyntaxError
from engine.fetch.argument_words import ArgContext
from engine.fetch.era import MEASURED, Era, era_of
from engine.fetch.meta_args import kernel_words
from engine.fetch.variables import Fetched, VariableError
from engine.trace.errors import Command


class Parameters:
    """Names of parameters; none means that the function is not described."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def parameters(self) -> tuple[str, ...]:
        return self.names

    def parameter(self, index: int) -> Fetched | None:
        return None

    def resolve(self, text: str) -> Fetched:
        raise VariableError("NO_BTFARG")


def _words(
    text: str, *names: str, entry: bool = True, returns: bool = False, era: Era = MEASURED
) -> list[tuple[int, str]]:
    words = text.split()
    context = ArgContext(
        X86,
        uprobe=False,
        is_return=returns,
        at_entry=entry and not returns,
        fail=Command("trace_kprobe", ("p", "f", *words), era).error,
        symbol=lambda name: None,
        variables=Parameters(*names),
        era=era,
        kernel=True,
    )
    return kernel_words(words, context)[0]


def test_names_are_written_out() -> None:
    assert _words("a=%di $arg* $comm", "file", "count") == [
        (2, "a=%di"),
        (3, "file"),
        (4, "count"),
        (5, "$comm"),
    ]
    assert _words("$arg2:u32 n=$arg1", "file", "count") == [(2, "count:u32"), (3, "n=$arg1")]
    assert _words("$arg1", "file", returns=True) == [(2, "file")]


def test_numbers_stay_where_nothing_is_known() -> None:
    assert _words("$arg1 $arg9") == [(2, "$arg1"), (3, "$arg9")]


def test_kernels_without_types_read_them_as_they_are() -> None:
    assert _words("$arg* $arg*", "file", era=era_of((6, 1, 0))) == [(2, "$arg*"), (3, "$arg*")]


@pytest.mark.parametrize(
    ("text", "names", "code", "column", "errno"),
    [
        ("$arg* $arg*", ("a",), "DOUBLE_ARGS", 10, "EINVAL"),
        ("$argx", ("a",), "BAD_VAR", 4, "EINVAL"),
        ("$arg1x", ("a",), "BAD_VAR", 4, "ENOENT"),
        ("$arg2", ("a",), "NO_BTFARG", 4, "ENOENT"),
        ("$arg0", ("a",), "BAD_ARG_NUM", 4, "EINVAL"),
        ("$arg00:u32", ("a",), "BAD_ARG_NUM", 4, "EINVAL"),
        ("$arg0x", ("a",), "BAD_VAR", 4, "ENOENT"),
        ("$arg99 $arg0", ("a",), "NO_BTFARG", 4, "ENOENT"),
        ("$arg* %di $arg1", (), "NOSUP_BTFARG", 14, "EOPNOTSUPP"),
        ("$arg*", ("a" * 64, "b" * 63), "ARGS_2LONG", 4, "E2BIG"),
    ],
)
def test_errors(text: str, names: tuple[str, ...], code: str, column: int, errno: str) -> None:
    with pytest.raises(ProbeSyntaxError) as caught:
        _words(text, *names)
    assert (caught.value.code, caught.value.column, caught.value.errno) == (code, column, errno)


def test_only_at_functions() -> None:
    with pytest.raises(ProbeSyntaxError, match="only on function entry or exit"):
        _words("$arg1", "a", entry=False)
    with pytest.raises(ProbeSyntaxError, match=r"only on function entry\n"):
        _words("$arg1", "a", returns=True, era=era_of((6, 6, 0)))
