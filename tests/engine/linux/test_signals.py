"""Pending signals against a plain list, whatever comes and goes."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.linux.signals import PendingSignal, SignalState, bit

_NUMBER = st.sampled_from([5, 10, 11, 34, 35, 64])
_STEP = st.one_of(
    st.tuples(st.just("queue"), _NUMBER, st.integers(-1, 2)),
    st.tuples(st.just("take"), st.integers(0, (1 << 64) - 1), st.just(0)),
    st.tuples(st.just("drop"), _NUMBER, st.just(0)),
    st.tuples(st.just("timer"), st.integers(0, 2), st.just(0)),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_STEP, max_size=50))
def test_any_sequence(steps: list[tuple[str, int, int]]) -> None:
    state, model = SignalState(), list[PendingSignal]()
    for serial, (kind, value, timer) in enumerate(steps):
        if kind == "queue":
            if timer >= 0:
                value = 34 + timer  # a timer sends one signal, once
                if any(item.timer == timer for item in model):
                    continue
            item = PendingSignal(value, bytes([serial]), timer)
            assert state.queue(item)
            if value >= 32 or all(old.number != value for old in model):
                model.append(item)
        elif kind == "take":
            ready = [item for item in model if value & bit(item.number)]
            first = min(
                ready, key=lambda item: (item.number not in (5, 11), item.number), default=None
            )
            assert state.take(value) == first
            if first is not None:
                model.remove(first)
        elif kind == "drop":
            state.pending.drop(value)
            model = [item for item in model if item.number != value]
        else:
            state.pending.drop_timer(value)
            model = [item for item in model if item.timer != value]
        assert len(state.pending) == len(model)
        assert state.pending.mask == sum({bit(item.number) for item in model})
        for known in range(3):
            sent = next((item for item in model if item.timer == known), None)
            assert state.pending.of_timer(known) == sent
