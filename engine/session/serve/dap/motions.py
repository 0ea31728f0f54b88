"""Requests that move a guest: what they return is the reason of the stop that follows."""

from collections.abc import Callable
from typing import Final

import msgspec

from engine.errors import CommandError
from engine.session.debugger.linespecs import WantedPlace
from engine.session.protocol import commands as cmd
from engine.session.protocol.config import GuestConfig
from engine.session.serve.dap import bodies, requests
from engine.session.serve.dap.debuggee import Debuggee
from engine.session.serve.dap.editor import Editor
from engine.session.serve.dap.handlers import Handler, Handlers, always

_STEPS: Final = {
    ("next", False): "next",
    ("next", True): "nexti",
    ("stepIn", False): "step",
    ("stepIn", True): "stepi",
    ("stepOut", False): "finish",
    ("stepOut", True): "finish",
    ("stepBack", False): "reverse-next",
    ("stepBack", True): "reverse-stepi",
}
"""(request, by instructions) to the word that does it."""
_RUNS: Final = bodies.ContinueBody()

Reconfigure = Callable[[requests.LaunchArguments], GuestConfig]
"""The guest that is asked for; it raises what is wrong with that."""


class MotionRequests:
    """Carries them out by gdb's words, so that a step here is gdb's step."""

    def __init__(self, guest: Debuggee, editor: Editor, reconfigure: Reconfigure) -> None:
        """Move this guest; `reconfigure` gives the one that a restart asks for."""
        self._guest, self._editor = guest, editor
        self._reconfigure = reconfigure
        self._configured = False
        self._targets: dict[int, int] = {}

    def handlers(self) -> Handlers:
        """Return the handlers of requests that move the guest."""
        r = requests
        steps = {
            name: Handler(r.StepArguments, self._step(name), moves=always)
            for name in ("next", "stepIn", "stepOut", "stepBack")
        }
        return steps | {
            "configurationDone": Handler(r.NoArguments, self._configuration_done, moves=always),
            "restart": Handler(r.RestartArguments, self._restart, halts=True, moves=always),
            "pause": Handler(r.ThreadArguments, self._pause, any_time=True),
            "continue": Handler(r.ThreadArguments, self._continue, moves=always, answer=_RUNS),
            "reverseContinue": Handler(
                r.ThreadArguments, self._reverse_continue, moves=always, answer=_RUNS
            ),
            "goto": Handler(r.GotoArguments, self._goto, moves=always),
            "gotoTargets": Handler(r.GotoTargetsArguments, self._goto_targets),
        }

    # -- begin --------------------------------------------------------------------------------

    def _configuration_done(self, wanted: requests.NoArguments) -> str:
        if self._configured:
            raise CommandError("configurationDone: that was said before")
        self._configured = True
        return self._begin()

    def _begin(self) -> str:
        """Stand at the first instruction, or run on from there."""
        guest = self._guest
        if guest.control.session.core is not None:
            return "exception"
        if guest.launched.no_debug:
            guest.exceptions.choose({}, runs=False)
            guest.word("continue")
            return "step"
        if guest.launched.stop_on_entry:
            return "entry"
        if guest.launched.stop_at_main:
            return self._run_to_main()
        guest.word("continue")
        return "step"

    def _run_to_main(self) -> str:
        debugger = self._guest.debugger
        places = debugger.places_of(WantedPlace("main", function="main"))
        stops = [debugger.stops.add_own(place, lambda: True) for place in places]
        try:
            debugger.move(cmd.Continue())
        finally:
            for stop in stops:
                debugger.stops.delete(stop)
        return "entry"

    def _restart(self, wanted: requests.RestartArguments) -> str:
        guest = self._guest
        if wanted.arguments:
            launched = msgspec.convert(wanted.arguments, requests.LaunchArguments)
            guest.debugger.configure(self._reconfigure(launched))
            guest.launched = launched
        guest.debugger.restart()
        guest.debugger.started = True
        return self._begin()

    # -- on, and back -------------------------------------------------------------------------

    def _continue(self, wanted: requests.ThreadArguments) -> str:
        self._guest.word("continue")
        return "pause"  # at the present, if it comes out of the past

    def _reverse_continue(self, wanted: requests.ThreadArguments) -> str:
        self._guest.word("reverse-continue")
        return "entry"

    def _step(self, name: str) -> Callable[[requests.StepArguments], str]:
        def step(wanted: requests.StepArguments) -> str:
            guest = self._guest
            if wanted.thread_id:
                guest.stopped.goroutines.check_moves(wanted.thread_id)
                guest.stopped.look_at(wanted.thread_id)
            guest.debugger.frames.selected = 0
            guest.word(_STEPS[name, wanted.granularity == "instruction"])
            return "step"

        return step

    def _pause(self, wanted: requests.ThreadArguments) -> None:
        """The guest stops behind the answer, if it runs."""

    # -- elsewhere ----------------------------------------------------------------------------

    def _goto_targets(self, wanted: requests.GotoTargetsArguments) -> object:
        guest = self._guest
        line = self._editor.line_in(wanted.line)
        name = guest.sources.known(wanted.source.path)
        places = guest.debugger.places_of(WantedPlace(f"{name}:{line}", file=name, line=line))
        targets = []
        for place in places:
            number = len(self._targets) + 1
            self._targets[number] = place.address
            targets.append(
                bodies.GotoTarget(
                    id=number,
                    label=f"{place.function or place.symbol} at {place.address:#x}",
                    line=self._editor.line_out(place.line),
                    instruction_pointer_reference=f"{place.address:#x}",
                )
            )
        return bodies.GotoTargetsBody(targets)

    def _goto(self, wanted: requests.GotoArguments) -> str:
        guest = self._guest
        address = self._targets.get(wanted.target_id)
        if address is None:
            raise CommandError(f"targetId {wanted.target_id} is none of gotoTargets'")
        if wanted.thread_id:
            guest.stopped.goroutines.check_moves(wanted.thread_id)
            guest.stopped.look_at(wanted.thread_id)
        guest.debugger.forget_kept()
        pc = guest.control.session.arch.roles.pc
        guest.debugger.execute(cmd.WriteRegister(pc, address))
        guest.debugger.frames.moved()
        guest.debugger.stops.reached.clear()
        return "goto"
