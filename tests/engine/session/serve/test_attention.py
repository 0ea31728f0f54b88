"""Somebody who may miss a call is called until he hears."""

import threading

from engine.session.serve.attention import AttentionTimer


def test_calls_until_somebody_hears() -> None:
    heard = threading.Event()
    calls: list[int] = []

    def call() -> None:
        calls.append(len(calls))
        if len(calls) == 3:
            heard.set()

    news = False
    timer = AttentionTimer(lambda: news and not heard.is_set(), call)
    timer.wanted()
    assert not calls
    news = True
    timer.wanted()
    assert heard.wait(60)
    timer.close()
    assert calls == [0, 1, 2]
    timer.wanted()  # nobody listens any more
