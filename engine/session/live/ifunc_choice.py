"""The code that indirect functions stand for on this machine.

The real loader chooses by the real processor, which may have what a guest's has not: strlen is
__strlen_avx2 in a program of this machine, and __strlen_sse2 in a guest. So the resolver is called
here, in a process of its own without root's rights.
"""

import os
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from engine.errors import CommandError
from engine.image import ElfImage, Symbol
from engine.session.live import resolver_process
from engine.session.program.implementations import Implementation, not_in_a_file
from engine.session.program.libraries import Program, ProgramFile

_PATIENCE: Final = 10.0
"""Seconds that a resolver, or the loading of a file, may take."""
_LINE_MAX: Final = 1 << 16


class ResolverProcess:
    """One file, loaded in a process that calls its resolvers."""

    def __init__(self, path: str, image: ElfImage) -> None:
        """Start it.

        Raises:
            CommandError: the file cannot be loaded.
        """
        lowest = next((s.vaddr - s.offset for s in image.segments), 0)
        try:
            number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}") from error
        words = [sys.executable, "-I", "-S", resolver_process.__file__, str(number), f"{lowest:x}"]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(
                words,
                bufsize=0,
                stdin=pipe,
                stdout=pipe,
                stderr=nowhere,
                pass_fds=(number,),
                env={},
                cwd="/",
            )
        finally:
            os.close(number)
        try:
            self._heard()
        except CommandError as error:
            self.close()
            raise CommandError(str(error).replace(f"/proc/self/fd/{number}", path)) from error

    def ask(self, resolver: int) -> str:
        """The answer about a resolver, see `engine.session.live.resolver_process`.

        Raises:
            CommandError: there is none.
        """
        assert self._process.stdin is not None, "it is a pipe"
        with suppress(OSError):  # it has ended, and that is told by what it has not answered
            self._process.stdin.write(b"%x\n" % resolver)
        return self._heard()

    def _heard(self) -> str:
        """The next line.

        Raises:
            CommandError: it tells of an error, or does not come.
        """
        assert self._process.stdout is not None, "it is a pipe"
        line = b""
        while not line.endswith(b"\n") and len(line) < _LINE_MAX:
            if not select.select([self._process.stdout], [], [], _PATIENCE)[0]:
                raise CommandError(f"no answer within {_PATIENCE:g} s")
            part = self._process.stdout.read(_LINE_MAX - len(line))
            if not part:
                raise CommandError(f"the process that asks it ended with {self._ended()}")
            line += part
        text = os.fsdecode(line.rstrip(b"\n"))
        if text.startswith("?"):
            raise CommandError(text[1:])
        return text

    def _ended(self) -> str:
        code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def close(self) -> None:
        """End it."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()


class MachineChoice:
    """Asks this machine for the code of indirect functions; satisfies `ResolverCalls`."""

    where: Final = "on this machine"

    def __init__(self, program: Program, host_path: Callable[[str], str]) -> None:
        """Nothing is started before the first question.

        Args:
            program: the files.
            host_path: the machine's path of a file of the program.
        """
        self._program = program
        self._host_path = host_path
        self._processes: dict[str, ResolverProcess] = {}

    def ask(self, file: ProgramFile, symbol: Symbol) -> Implementation:
        """The code that an indirect function stands for.

        Raises:
            CommandError: the file is no library, or its resolver does not tell.
        """
        if file is self._program.main:
            raise CommandError(
                "this machine's choice is not known before the program runs; name the code that"
                f" you mean ({symbol.name}@resolver is the resolver)"
            )
        process = self._processes.get(file.path)
        if process is None:
            process = ResolverProcess(self._host_path(file.path), file.image)
            self._processes[file.path] = process
        try:
            offset, _, path = process.ask(symbol.address).partition(" ")
        except CommandError:
            self._processes.pop(file.path).close()
            raise
        owner = (
            file if not path else next((f for f in self._program.files if path in f.paths), None)
        )
        link = None if owner is None else owner.image.vaddr_of(int(offset, 16))
        if owner is None or link is None:
            raise not_in_a_file(symbol, self.where, f"in {path}")
        return owner, link

    def close(self) -> None:
        """End what was started."""
        for process in self._processes.values():
            process.close()
        self._processes.clear()
