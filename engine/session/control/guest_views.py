"""Views of the guest under control, as a front end is told of it."""

from contextlib import nullcontext

from msgspec.structs import replace

from engine.session.control.branched_runs import BranchedRuns
from engine.session.control.branches import KeptRun
from engine.session.control.typed_words import TypedWords
from engine.session.protocol.probes import ProbeView
from engine.session.protocol.views import GuestView, RunState


class GuestViews:
    """Makes views of the run at hand, one after the other.

    While the guest runs a view shows what the one before has shown of its last stop.
    """

    def __init__(self, branches: BranchedRuns) -> None:
        """None has been made.

        Args:
            branches: the runs that there are.
        """
        self._branches = branches
        self._last = GuestView()

    def make(
        self, run: KeptRun, words: TypedWords | None, *, frame: int, moment: int
    ) -> GuestView:
        """The view of this moment.

        Args:
            run: the one at hand.
            words: who carries typed words out; None before the first of them.
            frame: number of the frame that is looked at.
            moment: counts motions of the guest.
        """
        place, here, last = run.place, run.place.here, self._last
        session, viewing, kernel = here.session, here.viewing, here.session.kernel
        running, focus, stands = here.running, here.focus, here.stands
        state = running.state
        if state is RunState.RUNNING and kernel.waiting_in:
            state = RunState.WAITING
        looks = stands and self._moved(run)
        mid_hit = running.machine is not None
        listed = focus.threads(stands=stands, looks=looks and not mid_hit)
        raw, pc = last.raw_pc, last.pc
        with focus.visit() if stands else nullcontext():
            waiting = kernel.waiting_in
            modules = focus.space.modules
            own = running.own if focus.chosen is None else {}
            if stands:
                raw = session.cpu.read_register(session.arch.roles.pc)
                pc = running.stands_at(raw) if focus.chosen is None else focus.original_pc(raw)
            if looks:
                registers, frames = (
                    viewing.registers(run.origin),
                    viewing.frames(waiting, own),
                )
            else:
                registers, frames = viewing.same_registers(), viewing.same_frames()
            thread = session.machine.tid
        looked_at = running.state is not RunState.RUNNING and not focus.chosen
        hit = running.hit if looked_at else None
        module = modules.at(pc) if stands else None
        self._last = GuestView(
            state=state,
            reason="" if running.state is RunState.RUNNING else running.reason,
            cause=running.cause,
            arch=session.arch.name,
            program=session.paths.guest,
            build_id=viewing.build_id,
            pc=pc,
            raw_pc=raw,
            location=str(modules.locate(pc)) if stands else last.location,
            line=module.line_at(pc) if module is not None else None,
            registers=registers,
            frames=frames[0],
            frames_end=frames[1],
            frame=frame,
            moment=moment,
            stops=words.saved() if words is not None else (),
            displays=words.displays() if words is not None else (),
            unwinder=viewing.unwinder.name,
            hit=hit,
            at_hit=looked_at and not running.ended and (mid_hit or running.meets() is not None),
            probes=self.probes(run, words),
            planted=viewing.planted(),
            modules=viewing.modules(),
            mappings=viewing.mappings() if stands else last.mappings,
            comms={
                thread: name.decode(errors="replace")
                for thread, name in session.machine.comms.items()
            },
            pids=dict(session.machine.pids),
            thread=thread,
            threads=len(session.machine.threads),
            listed=listed,
            alone=focus.alone,
            program_in_sight=here.tracing.programs.number(focus.seen),
            time=session.cpu.coming() if place.in_past else session.cpu.blocks(),
            system_calls=session.machine.syscall_count,
            waiting_in=waiting,
            events=run.told.count,
            exit_code=run.exit_code,
            troubles=here.troubles.summary,
            changed=place.changes,
            undo=place.present.editing.undo_text,
            redo=place.present.editing.redo_text,
            histograms=place.present.histograms.texts(running=running.state is RunState.RUNNING),
            detours=viewing.detours.counts(),
            history=self._branches.view(place.view()),
        )
        return self._last

    @staticmethod
    def probes(run: KeptRun, words: TypedWords | None) -> tuple[ProbeView, ...]:
        """The list of a run's probes, with what words ask of their stops.

        Args:
            run: the run whose list is shown.
            words: who carries typed words out; None before the first of them.
        """
        place = run.place
        views = place.present.probes.views(place.here.focus.space)
        if words is None:
            return views
        return tuple(
            replace(view, only=only) if (only := words.remark(view.row.id)) else view
            for view in views
        )

    @staticmethod
    def _moved(run: KeptRun) -> bool:
        """True if the guest has moved since this was asked last: looks are taken once a stop."""
        here = run.place.here
        running, calls = here.running, here.session.machine.syscall_count
        blocked = running.state is RunState.RUNNING and calls != run.calls
        run.calls = calls
        origin, running.origin = running.origin, None
        if origin is None and not blocked:
            return False
        run.origin = origin or "insn"
        return True
