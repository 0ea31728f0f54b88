"""Requests that look at a guest that stands, and that change what is seen there."""

import base64
import binascii
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.session.protocol import commands as cmd
from engine.session.serve.dap import bodies, requests
from engine.session.serve.dap.announcer import module_body
from engine.session.serve.dap.debuggee import Debuggee
from engine.session.serve.dap.editor import Editor
from engine.session.serve.dap.handlers import Handler, Handlers, SessionProgress
from engine.session.serve.dap.sources import address_of

_TOP: Final = 1 << 64


class InspectionRequests:
    """Carries them out."""

    def __init__(self, guest: Debuggee, editor: Editor, progress: SessionProgress) -> None:
        """Look at this guest."""
        self._guest, self._editor, self._progress = guest, editor, progress

    def handlers(self) -> Handlers:
        """Return the handlers of requests that look at the guest."""
        r = requests
        return {
            "threads": Handler(r.NoArguments, self._threads, any_time=True),
            "stackTrace": Handler(r.StackTraceArguments, self._stack),
            "scopes": Handler(r.FrameArguments, self._scopes),
            "variables": Handler(r.VariablesArguments, self._variables),
            "setVariable": Handler(r.SetVariableArguments, self._set_part, then=self._stale),
            "setExpression": Handler(r.SetExpressionArguments, self._set, then=self._stale),
            "modules": Handler(r.ModulesArguments, self._modules, any_time=True),
            "loadedSources": Handler(r.NoArguments, self._sources, any_time=True),
            "source": Handler(r.SourceArguments, self._source, any_time=True),
            "disassemble": Handler(r.DisassembleArguments, self._disassemble),
            "readMemory": Handler(r.ReadMemoryArguments, self._read),
            "writeMemory": Handler(r.WriteMemoryArguments, self._write, then=self._stale),
        }

    def _stale(self) -> None:
        """Values that the editor shows are others now."""
        if self._editor.settings.supports_invalidated_event:
            self._editor.event("invalidated", bodies.InvalidatedBody(["variables"]))

    # -- threads, frames, values --------------------------------------------------------------

    def _threads(self, wanted: requests.NoArguments) -> object:
        machine = self._guest.control.session.machine
        running: dict[int, str] = {}
        waiting: list[bodies.DapThread] = []
        if not self._progress.running:
            running, waiting = self._guest.stopped.goroutines.listed()
        several = len({machine.pids.get(tid, tid) for tid in machine.threads}) > 1
        rows = []
        for tid in machine.threads:
            name = machine.comms.get(tid, b"").decode(errors="replace") or str(tid)
            pid = f" ({machine.pids.get(tid, tid)})" if several else ""
            goroutine = f" {running[tid]}" if tid in running else ""
            rows.append(bodies.DapThread(tid, f"{name}{pid}{goroutine}"))
        return bodies.ThreadsBody(rows + waiting)

    def _stack(self, wanted: requests.StackTraceArguments) -> object:
        thread = wanted.thread_id or self._guest.control.thread
        return self._guest.stopped.stack(thread, wanted.start_frame, wanted.levels)

    def _scopes(self, wanted: requests.FrameArguments) -> object:
        return bodies.ScopesBody(self._guest.stopped.scopes(wanted.frame_id))

    def _variables(self, wanted: requests.VariablesArguments) -> object:
        found = self._guest.stopped.variables(
            wanted.variables_reference,
            wanted.start,
            wanted.count,
            kinds=wanted.filter,
            as_hex=wanted.format.hex,
        )
        return bodies.VariablesBody(found)

    def _set_part(self, wanted: requests.SetVariableArguments) -> object:
        return self._guest.stopped.assign_part(
            wanted.variables_reference, wanted.name, wanted.value, as_hex=wanted.format.hex
        )

    def _set(self, wanted: requests.SetExpressionArguments) -> object:
        return self._guest.stopped.assign(
            wanted.expression, wanted.value, wanted.frame_id, as_hex=wanted.format.hex
        )

    # -- files --------------------------------------------------------------------------------

    def _modules(self, wanted: requests.ModulesArguments) -> object:
        guest = self._guest
        rows = [module_body(guest, module) for module in guest.control.view().modules]
        first = wanted.start_module
        last = first + wanted.module_count if wanted.module_count else len(rows)
        return bodies.ModulesBody(rows[first:last], len(rows))

    def _sources(self, wanted: requests.NoArguments) -> object:
        return bodies.SourcesBody(list(self._guest.sources.all()))

    def _source(self, wanted: requests.SourceArguments) -> object:
        guest, path = self._guest, wanted.source.path
        if not path:
            raise CommandError("source: source.path is missing")
        files = guest.debugger.frames.sources
        lines = files.lines(guest.sources.known(path))
        if lines is None:
            lines = files.lines(path)
        if lines is None:
            raise CommandError(f"{path}: the file is not there")
        return bodies.SourceBody("\n".join((*lines, "")))

    # -- memory -------------------------------------------------------------------------------

    def _disassemble(self, wanted: requests.DisassembleArguments) -> object:
        address = address_of(wanted.memory_reference) + wanted.offset
        found = self._guest.code.around(
            address % _TOP, wanted.instruction_offset, wanted.instruction_count
        )
        return bodies.DisassembleBody(
            [replace(one, line=self._editor.line_out(one.line)) for one in found]
        )

    def _read(self, wanted: requests.ReadMemoryArguments) -> object:
        address = (address_of(wanted.memory_reference) + wanted.offset) % _TOP
        data = self._guest.memory.readable(address, wanted.count)
        return bodies.ReadMemoryBody(
            f"{address:#x}", wanted.count - len(data), base64.b64encode(data).decode()
        )

    def _write(self, wanted: requests.WriteMemoryArguments) -> object:
        guest = self._guest
        try:
            data = base64.b64decode(wanted.data, validate=True)
        except (binascii.Error, ValueError):
            raise CommandError("writeMemory: data is no base64") from None
        address = (address_of(wanted.memory_reference) + wanted.offset) % _TOP
        if wanted.allow_partial:
            data = data[: len(guest.memory.readable(address, len(data)))]
        if data:
            guest.debugger.execute(cmd.WriteMemory(address, data))
            guest.debugger.refresh()
            if self._editor.settings.supports_memory_event:
                self._editor.event("memory", bodies.MemoryBody(f"{address:#x}", 0, len(data)))
        return bodies.WriteMemoryBody(len(data))
