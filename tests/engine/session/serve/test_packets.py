"""Packets of gdb's remote protocol: which are given, which are those of before."""

from engine.session.serve.packets import PacketReader, packet

ASKED = packet(b"qSupported:swbreak+")


def test_a_packet_that_is_sent_again_is_answered_once() -> None:
    """gdb sends a packet again while the server is starting, and has one answer then."""
    reader = PacketReader()
    assert reader.take(b"+" + ASKED + ASKED) == [b"qSupported:swbreak+"]
    assert reader.take(ASKED[:7]) == []
    assert reader.take(ASKED[7:]) == []
    assert list(reader.answers) == [b"+"]
    assert reader.take(b"+" + packet(b"?")) == [b"?"]


def test_a_packet_behind_an_answer_that_was_acknowledged_is_another_one() -> None:
    reader = PacketReader()
    assert reader.take(b"+" + packet(b"?") + b"+" + packet(b"s")) == [b"?", b"s"]
    assert reader.take(b"+" + packet(b"s")) == [b"s"]


def test_a_damaged_packet_is_asked_for_and_taken_when_it_comes() -> None:
    reader = PacketReader()
    assert reader.take(b"+" + ASKED) == [b"qSupported:swbreak+"]
    assert reader.take(b"+$s#00") == []
    assert reader.take(packet(b"s")) == [b"s"]
    assert list(reader.answers) == [b"+", b"-", b"+"]


def test_clients_that_acknowledge_nothing_send_what_they_like() -> None:
    reader = PacketReader()
    assert reader.take(packet(b"?") + packet(b"s") * 2) == [b"?", b"s", b"s"]
    without = PacketReader()
    without.acknowledges = False
    assert without.take(b"+" + packet(b"?") * 2) == [b"?", b"?"]
