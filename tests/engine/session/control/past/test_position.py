"""Standing in a run and in its past."""

from controlkit import held, sample

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev


def test_what_is_told_and_shown_in_the_past() -> None:
    """Notices and histograms are those of the run; its code is other code."""
    with held(sample("x86_64", "sort"), history=True) as guest:
        guest.do(cmd.Define("p:g/e swap"), cmd.ToggleBreak("quicksort"), cmd.Continue())
        guest.do(cmd.ChangeTrigger("g/e", "hist:keys=common_pid"))
        before, changed, live = guest.view.histograms, guest.view.changed, guest.control.session
        guest.do(cmd.Seek(5))
        assert guest.view.changed > changed
        live.probes().notices.append("told of the run")
        guest.do(cmd.Refresh())
        assert [event.text for event in guest.all(ev.Notice)] == ["told of the run"]
        assert guest.view.histograms == before
        assert before
        changed = guest.view.changed
        guest.do(cmd.Seek())
        assert guest.view.changed > changed
        assert len(guest.all(ev.Notice)) == 1
