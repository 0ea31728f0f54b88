"""Unwind descriptors of IA-64 as binutils' `readelf -u` prints them.

To the letter: it names the registers that X2 and X4 save to modulo 32 (r50 as r18). The record
itself has the right one.
"""

from collections.abc import Iterable
from typing import Final

from engine.image.ia64unwind import Descriptor

_AR: Final = ("bsp", "bspstore", "rnat", "unat", "fpsr", "pfs", "lc")
_R2: Final = ("rp", "ar.pfs", "psp", "pr")
_BRANCHES: Final = tuple(f"b{number}" for number in range(1, 6))
_GENERALS: Final = tuple(f"r{number}" for number in range(4, 8))
_FLOATS: Final = tuple(f"f{number}" for number in (*range(2, 6), *range(16, 32)))
_ABI: Final = {0: "@svr4", 1: "@hpux", 2: "@nt"}


def _names(names: Iterable[str], mask: int) -> str:
    return ",".join(name for bit, name in enumerate(names) if mask >> bit & 1)


def _short(register: str) -> str:
    return "pr" if register == "preds" else register


def _long(register: str) -> str:
    if register == "priunat":
        return "@priunat"
    return f"ar.{register}" if register in _AR else _short(register)


def _psp(value: int) -> str:
    return f"pspoff=0x10-{4 * value:#x}"


def _sp(value: int) -> str:
    return f"spoff={4 * value:#x}"


def _imask(data: bytes, slots: int) -> str:
    marks = ["-frb"[data[slot // 4] >> 6 - 2 * (slot % 4) & 3] for slot in range(slots)]
    return ",".join("".join(marks[at : at + 3]) for at in range(0, slots, 3))


def text(descriptor: Descriptor) -> str:
    """One line, without its indentation."""
    return f"{descriptor.form}:{_plain(descriptor)}"


def _plain(one: Descriptor) -> str:
    kind, value, mask, name = one.kind, one.value, one.mask, one.register
    if kind in ("prologue", "body"):
        return f"{kind}(rlen={value})"
    if kind == "prologue_gr":
        saved = ",".join(word for bit, word in enumerate(_R2) if mask & 8 >> bit)
        return f"prologue_gr(mask=[{saved}],grsave={name},rlen={value})"
    if kind == "br_mem":
        return f"br_mem(brmask=[{_names(_BRANCHES, mask)}])"
    if kind == "br_gr":
        return f"br_gr(brmask=[{_names(_BRANCHES, mask)}],gr=r{value})"
    if kind == "gr_gr":
        return f"gr_gr(grmask=[{_names(_GENERALS, mask)}],r{value})"
    if kind == "gr_mem":
        return f"gr_mem(grmask=[{_names(_GENERALS, mask)}])"
    if kind == "fr_mem":
        return f"fr_mem(frmask=[{_names(_FLOATS, mask)}])"
    if kind == "frgr_mem":
        general, floating = _names(_GENERALS, mask & 15), _names(_FLOATS, mask >> 4)
        return f"frgr_mem(grmask=[{general}],frmask=[{floating}])"
    if kind == "spill_mask":
        return f"spill_mask(imask=[{_imask(one.data, value)}])"
    if kind in ("epilogue", "label_state", "copy_state", "unwabi"):
        return _state(one)
    if one.form[0] == "X":
        return _extended(one)
    return _located(one)


def _state(one: Descriptor) -> str:
    if one.kind == "epilogue":
        return f"epilogue(t={one.t},ecount={one.value})"
    if one.kind == "unwabi":
        abi = _ABI.get(one.value, f"{one.value:#x}")
        return f"unwabi(abi={abi},context={one.mask:#04x})"
    return f"{one.kind}(label={one.value})"


def _located(one: Descriptor) -> str:
    kind, value, name = one.kind, one.value, _short(one.register)
    if kind == "mem_stack_f":
        return f"mem_stack_f(t={one.t},size={value})"
    if kind == "mem_stack_v":
        return f"mem_stack_v(t={one.t})"
    if kind == "spill_base":
        return f"spill_base({_psp(value)})"
    if kind == "when":
        name, _, place = name.partition("_")
        return f"{name}_when{'_' if place else ''}{place}(t={one.t})"
    if kind in ("gr", "br"):
        return f"{name}_{kind}(reg={'r' if kind == 'gr' else 'b'}{value})"
    return f"{name}_{kind}({_psp(value) if kind == 'psprel' else _sp(value)})"


def _target(name: str) -> str:
    return f"{name[0]}{int(name[1:]) % 32}" if name[0] in "rf" else name


def _extended(one: Descriptor) -> str:
    suffix = "" if one.qp is None else "_p"
    qp = "" if one.qp is None else f"qp=p{one.qp},"
    head = f"{one.kind}{suffix}({qp}"
    if one.kind == "restore":
        return f"{head}t={one.t},reg={_long(one.register)})"
    if one.kind == "spill_reg":
        return f"{head}t={one.t},reg={_long(one.register)},treg={_target(one.target)})"
    where = _psp(one.value) if one.kind == "spill_psprel" else _sp(one.value)
    if one.qp is not None:
        return f"{head}t={one.t},reg={_long(one.register)},{where})"
    return f"{head}reg={_long(one.register)},t={one.t},{where})"
