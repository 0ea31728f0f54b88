"""Processors that a guest is told of; it runs on one, in turns, however many they are."""


def all_of(count: int) -> int:
    """The set of so many processors as a mask."""
    return (1 << count) - 1


def first(mask: int) -> int:
    """The processor of a set that a thread is told that it is on."""
    return (mask & -mask).bit_length() - 1


def mask_text(mask: int, count: int) -> str:
    """A set as the kernel prints a mask (`%*pb`): groups of 32 bits, for so many processors."""
    groups = -(-count // 32)
    width = (count - 1) % 32 // 4 + 1
    parts = [f"{mask >> 32 * group & 0xFFFFFFFF:08x}" for group in reversed(range(groups))]
    return ",".join([parts[0][-width:], *parts[1:]])


def list_text(mask: int) -> str:
    """A set as the kernel prints a list (`%*pbl`): 0-3,6."""
    parts: list[str] = []
    at = 0
    while mask >> at:
        if mask >> at & 1:
            end = at
            while mask >> end + 1 & 1:
                end += 1
            parts.append(str(at) if end == at else f"{at}-{end}")
            at = end
        at += 1
    return ",".join(parts)
