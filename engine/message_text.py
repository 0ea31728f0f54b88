"""Numbers and names in sentences."""


def counted(count: int, noun: str) -> str:
    """A number with its noun: "1 probe", "2 probes"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def bare_place(place: str) -> str:
    """SYMBOL+OFF with a C++ function's name alone: "geo::Circle::area+0x4"."""
    name, plus, offset = place.rpartition("+")
    return f"{bare_name(name)}{plus}{offset}" if name else place


_LAMBDA = "}::operator()"


def bare_name(name: str) -> str:
    """A C++ function's name without its result and its parameters: "geo::biggest<int>"."""
    within = name.rfind(_LAMBDA) if "{lambda(" in name else -1
    if within >= 0:  # the function around it has parameters, too
        return name[: within + len(_LAMBDA)].removeprefix("auto ")
    depth, start, end = 0, 0, len(name)
    for at, letter in enumerate(name):
        if letter == "(" and not depth and name[at - 8 : at] != "operator":
            methods = name[at - 1 : at] == "."  # Go's, of a pointer: "os.(*File).Read"
            if methods or name[at:].startswith("(anonymous namespace)"):
                continue
            end = at
            break
        if letter == " " and not depth and "operator" not in name[start:at]:
            start = start if name[:at].endswith("(anonymous") else at + 1
        is_arrow = letter == ">" and name[at - 1 : at] == "-"  # of a function's type in Rust
        if not is_arrow and "operator" not in name[start:at]:
            depth += {"<": 1, ">": -1}.get(letter, 0)
    return name[start:end]
