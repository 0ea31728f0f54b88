"""Lines are the same whether they are kept as they are or compressed."""

import sys

import pytest

from engine.session.protocol import many_lines as subject
from engine.session.protocol.many_lines import PackedLines, many_lines
from engine.session.protocol.requests import ProbeRequest

ODD = ["", "\n", "p:g/\udc80\n", "a\0b", "two\nlines", "ä€😀 x\n", "last"]


def test_few_stay_as_they_are() -> None:
    assert many_lines(iter(ODD)) == tuple(ODD)
    assert many_lines(()) == ()


@pytest.mark.parametrize("together", [1, 2, 3, 7, 100])
def test_packed_ones_come_back(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_FEW", 3)
    monkeypatch.setattr(subject, "_TOGETHER", together)
    found = many_lines(iter(ODD))
    assert isinstance(found, PackedLines)
    assert list(found) == list(found) == ODD
    assert [found[at] for at in range(-len(ODD), len(ODD))] == ODD * 2
    assert found[2:5] == tuple(ODD[2:5])
    assert len(found) == len(ODD)
    assert ODD[5] in found
    with pytest.raises(IndexError):
        found[len(ODD)]
    assert not ProbeRequest(found).is_empty


def test_a_line_takes_little() -> None:
    lines = [
        f"p:armed/e{at} /usr/lib/libLLVM.so.1:{4 * at:#x} a=%di b=%si\n" for at in range(20_000)
    ]
    found = many_lines(lines)
    assert isinstance(found, PackedLines)
    taken = sum(map(sys.getsizeof, (piece for pair in found._pieces for piece in pair)))
    assert taken / len(lines) < 24
    assert list(found) == lines
