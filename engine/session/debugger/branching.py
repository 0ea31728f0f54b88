"""Words about the branches of a recorded run."""

from engine.errors import CommandError
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.looking import Looking
from engine.session.protocol import commands as cmd


class BranchWords:
    """Makes branches, goes to them, compares them and gives them up."""

    def __init__(self, debugger: Debugger, looking: Looking) -> None:
        """Carry words out for a debugger's guest."""
        self._debugger = debugger
        self._looking = looking

    def branch(self, rest: str) -> None:
        """Continue from this moment in a run of its own: branch [NAME]; branch -d NAME."""
        name = rest.strip()
        if name == "-l":
            self.info_branches("")
        elif name.startswith("-"):
            option, _, name = name.partition(" ")
            if option not in ("-d", "-D") or not name.strip():
                raise CommandError("branch [NAME], branch -d NAME, or branch -l.")
            self._debugger.put(self._debugger.execute(cmd.DeleteBranch(name.strip())))
        else:
            self._go(cmd.StartBranch(name))

    def switch(self, rest: str) -> None:
        """Go to another branch, as it was left: switch NAME."""
        if not rest.strip():
            raise CommandError("Argument required (name of a branch; info branches lists them).")
        self._go(cmd.SwitchBranch(rest.strip()))

    def diff(self, rest: str) -> None:
        """Tell where two branches part: diff NAME [NAME]."""
        names = rest.split()
        if not 1 <= len(names) <= 2:
            raise CommandError("diff NAME [NAME]: one branch, and another or the one at hand.")
        for line in self._debugger.execute(cmd.CompareBranches(*names)).splitlines():
            self._debugger.put(line)

    def info_branches(self, rest: str) -> None:
        """List the branches of the run: where each has left another, and what it takes."""
        for line in self._debugger.control.branches.lines():
            self._debugger.put(line)

    def _go(self, command: cmd.Command) -> None:
        debugger = self._debugger
        said = debugger.move(command)
        debugger.started = True
        debugger.branched()
        for line in said.splitlines():
            debugger.put(line)
        if debugger.frames.all:
            self._looking.show_frame()
