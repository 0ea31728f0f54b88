"""Static calls and static keys that booting changes, by what the kernel does on its way up.

A key's first value stands in the image. What later changes it depends on the CPU, the command
line and what is built in; the rules here are those of kernel/sched/core.c (preempt=),
security/security.c (the order of security modules), arch/x86/kernel/apic/init.c and of the
initcalls that turn a key without asking anything else.
"""

from collections.abc import Collection, Iterator
from typing import Final

from engine.arch.kernel import KernelView
from engine.arch.kernelcpu import CpuModel
from engine.arch.kernelsites import KernelSites
from engine.arch.x86_64.kernel_text_features import Features

_PREEMPT: Final = ("preempt_schedule", "preempt_schedule_notrace", "irqentry_exit_cond_resched")
_MODES: Final = ("none", "voluntary", "full", "lazy")
_FUNCTION_MOST: Final = 4096
_CALL: Final = b"\xe8"
_CLEAR: Final = b"\x31\xff"  # xor %edi, %edi
_SET: Final = b"\xbf"  # mov $..., %edi

_APIC: Final = {
    "eoi": "native_apic_mem_eoi",
    "native_eoi": "native_apic_mem_eoi",
    "icr_read": "native_apic_icr_read",
    "icr_write": "native_apic_icr_write",
    "read": "native_apic_mem_read",
    "write": "native_apic_mem_write",
    "send_IPI": "default_send_IPI_single_phys",
    "send_IPI_all": "default_send_IPI_all",
    "send_IPI_allbutself": "default_send_IPI_allbutself",
    "send_IPI_mask": "default_send_IPI_mask_sequence_phys",
    "send_IPI_mask_allbutself": "default_send_IPI_mask_allbutself_phys",
    "send_IPI_self": "default_send_IPI_self",
    "wait_icr_idle": "apic_mem_wait_icr_idle",
}
"""Targets of the interrupt controller's calls, with physical destinations."""

_ON: Final = (
    "__crypto_boot_test_finished",
    "__sched_clock_stable",
    "cr_pinning",
    "crng_is_ready",
    "crypto_boot_test_finished",
    "sched_clock_running",
    "timers_migration_enabled",
    "timers_nohz_active",
)
"""Keys that every boot turns on."""

_OFF: Final = ("deferred_pages",)
_REPLACED: Final = ("crc64_rocksoft_fallback", "crct10dif_fallback")
"""Keys that are on until a faster way of the CPU's is registered."""

_NF_HOOKS: Final = 5
_NF_POST_ROUTING: Final = 4
_NF_IPV4, _NF_IPV6 = 2, 10
_KEY_SIZE: Final = 16

_INFO_SIZE: Final = 48
_EXCLUSIVE: Final = 2  # LSM_FLAG_EXCLUSIVE
_SLOT_SIZE: Final = 32
_DATA_MOST: Final = 1 << 26
_NAME_MOST: Final = 32
_ORDER_MOST: Final = 512


class BootedKeys:
    """The keys of one kernel after its boot.

    Attributes:
        calls: address of a static call's key to its target and its trampoline; 0 for none.
        keys: address of a static key to whether it is on.
    """

    def __init__(
        self, view: KernelView, sites: KernelSites, features: Features, cpu: CpuModel
    ) -> None:
        """The keys of the kernel in `view`, with its tables, on `cpu` with its features."""
        self._view = view
        self._sites = sites
        self._features = features
        self._cpu = cpu
        self.calls: dict[int, tuple[int, int]] = {}
        self.keys: dict[int, bool] = {}
        self._preemption()
        self._interrupts()
        self._security()
        self._switches()

    def _set_call(self, name: str, function: str | None) -> None:
        """A static call leads to a function by its name; None: to nothing."""
        key = self._view.symbol(f"__SCK__{name}")
        target = self._view.symbol(function) if function is not None else 0
        if key is not None and target is not None:
            self.calls[key] = target, self._view.symbol(f"__SCT__{name}") or 0

    def _set_key(self, name: str, *, on: bool) -> None:
        """A static key is on, or off."""
        key = self._view.symbol(name)
        if key is not None:
            self.keys[key] = on

    def _preemption(self) -> None:
        """The scheduler's ways to preempt, where they are not fixed when it is built."""
        mode = self._cpu.option("preempt")
        if mode not in _MODES:
            mode = self._built_preemption()
        if mode in ("full", "lazy"):
            return
        for name in _PREEMPT:
            self._set_call(name, None)
        self._set_call("cond_resched", "__cond_resched")
        if mode == "voluntary":
            self._set_call("might_resched", "__cond_resched")

    def _built_preemption(self) -> str:
        """The mode that a kernel chooses for itself: the argument of sched_dynamic_update."""
        update = self._view.symbol("sched_dynamic_update")
        update = update or self._view.symbol("__sched_dynamic_update")
        for name in ("preempt_dynamic_init", "sched_init"):
            start = self._view.symbol(name)
            bounds = self._sites.bounds(start) if start is not None else None
            if start is None or bounds is None:
                continue
            code = self._view.read(start, min(bounds[1] - start, _FUNCTION_MOST))
            at = -1
            while (at := code.find(_CALL, at + 1)) >= 0:
                distance = int.from_bytes(code[at + 1 : at + 5], "little", signed=True)
                if start + at + 5 + distance != update:
                    continue
                if code[at - 2 : at] == _CLEAR:
                    return _MODES[0]
                number = int.from_bytes(code[at - 4 : at], "little")
                if at >= 5 and code[at - 5 : at - 4] == _SET and number < len(_MODES):
                    return _MODES[number]
            if update is not None and len(code) < _FUNCTION_MOST:
                return "full"  # as it is built: nothing is to be done
        return "voluntary"

    def _interrupts(self) -> None:
        """The interrupt controller, since its calls are static ones (6.5)."""
        if not self._features.has("x2apic"):
            for name, function in _APIC.items():
                self._set_call(f"apic_call_{name}", function)
        waits = self._features.has("monitor") and not self._features.has("hypervisor")
        self._set_call("x86_idle", "mwait_idle" if waits else "default_idle")

    def _switches(self) -> None:
        """Keys that stand for one thing each."""
        has = self._features.has
        for name in _ON:
            self._set_key(name, on=True)
        for name in _OFF:
            self._set_key(name, on=False)
        if has("pclmulqdq"):
            for name in _REPLACED:
                self._set_key(name, on=False)
        self._set_key("__use_tsc", on=has("tsc"))
        self._set_key("blake2s_use_ssse3", on=has("ssse3"))
        self._set_key("virt_spin_lock_key", on=has("hypervisor"))
        if self._view.symbol("zswap_frontswap_ops") is not None:
            self._set_key("frontswap_enabled_key", on=True)
        if any(
            self._word(self._view.symbol(name), 4) for name in ("init_on_alloc", "init_on_free")
        ):
            self._set_key("check_pages_enabled", on=True)
        needed = self._view.symbol("nf_hooks_needed")
        if needed is not None and self._view.symbol("apparmor_nf_ops") is not None:
            for family in (_NF_IPV4, _NF_IPV6):
                self.keys[needed + _KEY_SIZE * (family * _NF_HOOKS + _NF_POST_ROUTING)] = True

    def _security(self) -> None:
        """The hooks of security modules, since they are static calls (6.12).

        Each module's hook takes the first free slot of that hook.
        """
        table = self._view.symbol("static_calls_table")
        bounds = self._sites.bounds(table) if table is not None else None
        if table is None or bounds is None:
            return
        hooks = self._hooks(table, bounds[1])
        used: dict[int, int] = {}
        for module in self._modules():
            for slots, function in hooks.get(module, ()):
                slot = slots + _SLOT_SIZE * used.get(slots, 0)
                used[slots] = used.get(slots, 0) + 1
                key, trampoline, active = (self._word(slot + offset, 8) for offset in (0, 8, 24))
                self.calls[key] = function, trampoline
                self.keys[active] = True

    def _hooks(self, table: int, end: int) -> dict[str, list[tuple[int, int]]]:
        """Name of a security module to its hooks: the slots of each, and its function.

        A module has its hooks in an array that bears its name, and maybe in more behind it.
        """
        named = {
            address: name
            for name in self._infos_of_all()
            for form in ("{}_hooks", "{}_lsm_hooks")
            if (address := self._view.symbol(form.format(name))) is not None
        }
        start, data = self._between("__start_ro_after_init", "__end_ro_after_init")
        words = memoryview(data)[: len(data) & ~7].cast("Q")
        text, text_end = (self._view.symbol(name) or 0 for name in ("_stext", "_etext"))
        found: dict[str, list[tuple[int, int]]] = {}
        module = ""
        for i in range(len(words) - 2):
            module = named.get(start + 8 * i, module)
            if module and table <= words[i] < end and text <= words[i + 1] < text_end:
                found.setdefault(module, []).append((words[i], words[i + 1]))
        return found

    def _modules(self) -> Iterator[str]:
        """The security modules that are started, in that order."""
        infos = dict(self._infos("lsm"))
        early = [name for name, _ in self._infos("early_lsm")]
        order = self._cpu.option("lsm")
        if order is None:
            order = self._built_order(infos)
        wanted = [name for name, info in infos.items() if info[0] < 0]
        wanted += [name for name in order.split(",") if name in infos and name not in wanted]
        wanted += [name for name, info in infos.items() if info[0] > 0]
        exclusive = False
        yield from early
        for name in wanted:
            _, flags, enabled = infos[name]
            if (enabled and not self._word(enabled, 4)) or name in early:
                continue
            if flags & _EXCLUSIVE:
                if exclusive:
                    continue
                exclusive = True
            yield name

    def _built_order(self, infos: Collection[str]) -> str:
        """The order that the kernel was built with: a string of the most modules' names."""
        best, most = "", 1
        for edges in (("__start_rodata", "__end_rodata"), ("__init_begin", "__init_end")):
            data = self._between(*edges)[1]
            for name in infos:
                at = -1
                while (at := data.find(name.encode() + b",", at + 1)) >= 0:
                    before = max(0, at - _ORDER_MOST)
                    start = data.rfind(b"\0", before, at) + 1 or before
                    text = data[start : at + _ORDER_MOST].partition(b"\0")[0].decode("latin1")
                    count = len(set(text.split(",")).intersection(infos))
                    if count > most:
                        best, most = text, count
        return best

    def _between(self, first: str, last: str) -> tuple[int, bytes]:
        """Address and bytes from one symbol to another; no bytes where they do not fit."""
        start, end = self._view.symbol(first), self._view.symbol(last)
        if start is None or end is None or not 0 < end - start <= _DATA_MOST:
            return 0, b""
        return start, self._view.read(start, end - start)

    def _infos_of_all(self) -> list[str]:
        """The names of all security modules."""
        return [name for kind in ("early_lsm", "lsm") for name, _ in self._infos(kind)]

    def _infos(self, kind: str) -> Iterator[tuple[str, tuple[int, int, int]]]:
        """Name, order, flags and the address of the switch of each security module."""
        start, end = (
            self._view.symbol(name) for name in (f"__start_{kind}_info", f"__end_{kind}_info")
        )
        if start is None or end is None:
            return
        for at in range(start, min(end, start + _ORDER_MOST * _INFO_SIZE), _INFO_SIZE):
            order = self._word(at + 8, 4)
            order -= (order & 0x80000000) << 1
            name = self._text(self._word(at, 8))
            yield name, (order, self._word(at + 16, 8), self._word(at + 24, 8))

    def _word(self, address: int | None, size: int) -> int:
        """A number of data; 0 where there is none."""
        if address is None:
            return 0
        return int.from_bytes(self._view.read(address, size), "little")

    def _text(self, address: int, most: int = _NAME_MOST) -> str:
        """A string of data."""
        return self._view.read(address, most).partition(b"\0")[0].decode("ascii", "replace")
