"""The RISC-V ELF psABI (LP64D): calls, symbols."""

from typing import Final

from engine.arch.abi import CallConvention, ElfAbi, SmallRecords

ABI: Final = ElfAbi(
    calls=CallConvention(  # 2.1, 2.2; DWARF numbers of chapter 13
        general=tuple(range(10, 18)),
        vectors=8,
        stack=(2, 0),
        hidden_result=True,
        by_reference=True,
        records=SmallRecords.BY_FIELD,
        straddles=True,
        overflows=True,
    ),
    mapping_symbols=True,
)
