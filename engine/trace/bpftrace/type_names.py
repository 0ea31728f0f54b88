"""How error texts call types (typestr in bpftrace's src/types.cpp)."""

from typing import Final

from engine.trace.bpftrace import types as kinds

_SHOWN: Final = {
    "inet": "inet[24]",
    "mac": "mac_address",
    "username": "username_t",
    "timestamp": "timestamp",
    "cgroup_path": "cgroup_path_t",
    "strerror": "string[64]",
    "syscall_name": "string[64]",
}
_SIGNLESS: Final = ("count", "hist", "lhist", "tseries")


def type_name(kind: kinds.Type) -> str:
    """The name of a type: "int64", "string[64]", "(int64,string[4])"."""
    match kind:
        case kinds.Integer():
            return f"{'' if kind.signed else 'u'}int{kind.bits}"
        case kinds.Boolean():
            return "bool"
        case kinds.Enumeration():
            return f"enum {kind.name}"
        case kinds.Text():
            return f"string[{kind.size}]" if kind.size else "string"
        case kinds.Buffer():
            return f"buffer[{kind.size}]"
        case kinds.Void():
            return "void"
        case kinds.Structure():
            return kind.name
        case kinds.Pointer():
            return f"{type_name(kind.target)} *"
        case kinds.Array():
            return f"{type_name(kind.element)}[{kind.count}]"
        case kinds.Tuple():
            return f"({','.join(map(type_name, kind.elements))})"
        case kinds.Record():
            fields = ", ".join(f".{name} = {type_name(one)}" for name, one in kind.fields)
            return f"record {{ {fields} }}"
        case kinds.Stack():
            return f"{kind.space[0]}stack_{kind.mode}_{kind.limit}"
        case kinds.Symbol():
            return f"{kind.space[0]}sym_t"
        case kinds.Shown():
            return _SHOWN[kind.kind]
        case kinds.Aggregate():
            sign = "" if kind.signed or kind.kind in _SIGNLESS else "u"
            return f"{sign}{kind.kind}_t"
