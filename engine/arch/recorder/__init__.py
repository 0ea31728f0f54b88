"""The recorder of a detour: code in the guest that writes rows where the engine finds them.

One algorithm for all architectures, over a small `encoder.Encoder` that each of them brings:

- `generator`: what is saved, in which order the parts of a recorder follow each other, the end;
- `rows`: a row of an event: its numbers, the time, the head, the ring's cursor;
- `fetches`: values and addresses of fetch arguments;
- `filter`: filters in front of a row; what does not pass leaves nothing behind;
- `texts`: strings, copied out of the program's memory behind a row's words;
- `calls`: records of pending calls, for return probes.

A recorder touches neither the stack nor what is below it. Registers that it uses are kept in the
save area (`engine.arch.recording.DetourPlaces.save`), or in the row where that holds them all the
same. A filter that looks at registers only saves nothing before it has passed: under the emulator
what costs is each access to memory. There are no checks for the end of the ring: behind it
nothing is mapped.

A store to the row or a load that faults is the engine's business: it finds the program's registers
in the save area, or in the row where that holds them all the same, and goes on at `Part.again` or
`Part.behind`.
"""
