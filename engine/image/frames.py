"""The records of .eh_frame and .debug_frame: their fields, the instructions as raw bytes.

Formats: LSB Core, "Exception Frames", and DWARF 5, section 6.4.1. pyelftools is not used:
it parses a whole section at once, and recursion, negative seeks and KeyErrors on damaged
records escape from it.
"""

from typing import Final

from msgspec import Struct

from engine.image import headers
from engine.image.headers import Buffer
from engine.image.reader import DamagedError, Reader

PE_OMIT: Final = 0xFF
PE_PCREL_SDATA4: Final = 0x1B  # what compilers write for code below 2 GiB
_PE_INDIRECT: Final = 0x80
_PE_ABS, _PE_PCREL, _PE_DATAREL, _PE_FUNCREL, _PE_ALIGNED = 0, 0x10, 0x30, 0x40, 0x50
_PE_SIZES: Final = {2: 2, 3: 4, 4: 8}
_DEBUG_FRAME_CIE: Final = {4: 0xFFFFFFFF, 8: 0xFFFFFFFFFFFFFFFF}


class Cie(Struct, frozen=True):
    """A common information entry.

    Attributes:
        section: ".eh_frame" or ".debug_frame".
        offset: of its length field, in that section.
        version: 1, 3 or 4.
        augmentation: the letters, such as "zR", "zPLR", "zRS".
        address_size: bytes of an address operand.
        code_alignment: factor of the advance operands (the instruction granule).
        data_alignment: factor of the offset operands.
        return_register: DWARF number of the column that holds the return address.
        fde_encoding: DW_EH_PE_* of the FDEs' addresses and of DW_CFA_set_loc.
        lsda_encoding: DW_EH_PE_* of the FDEs' LSDA pointers; PE_OMIT = they have none.
        personality: link address of the routine, or of a pointer to it; None = none.
        personality_indirect: whether `personality` is the address of a pointer.
        signal_frame: 'S': the caller's pc is exact, not behind a call.
        b_key: AArch64 'B': return addresses are signed with key B.
        instructions: the initial rules, undecoded.
    """

    section: str
    offset: int
    version: int
    augmentation: str
    address_size: int
    code_alignment: int
    data_alignment: int
    return_register: int
    fde_encoding: int
    lsda_encoding: int
    personality: int | None
    personality_indirect: bool
    signal_frame: bool
    b_key: bool
    instructions: bytes


class Fde(Struct, frozen=True):
    """A frame description entry: the rules for [start, start + size).

    Attributes:
        cie: its common part.
        offset: of its length field, in `cie.section`.
        start: link address of the first instruction covered.
        size: bytes covered.
        lsda: link address of the language-specific data; None = none.
        augmentation_data: raw, the LSDA pointer included.
        instructions: the rules, undecoded.
        instructions_address: link address of `instructions`, the base of pc-relative
            DW_CFA_set_loc operands; 0 in .debug_frame.
    """

    cie: Cie
    offset: int
    start: int
    size: int
    lsda: int | None
    augmentation_data: bytes
    instructions: bytes
    instructions_address: int


class FrameArea(Struct, frozen=True):
    """A section of frame records inside `data`."""

    name: str
    data: Buffer
    start: int
    end: int
    address: int
    bounded: bool  # False: `end` is a guess, a zero length ends the records

    @property
    def eh(self) -> bool:
        """True if the records follow the rules of .eh_frame."""
        return self.name == ".eh_frame"


class FrameParser:
    """Parses single records on demand; every method raises `DamagedError` on damage."""

    def __init__(self, bits: int, order: str) -> None:
        """Parse for addresses of `bits` in the byte order `order` ("<" or ">")."""
        self.bits = bits
        self.order = order
        self._cies: dict[tuple[str, int], Cie | None] = {}

    def record(self, area: FrameArea, place: int) -> tuple[Reader, int | None, int]:
        """Open the record at an offset into the area's data.

        Returns:
            A reader behind the id field, the offset of the CIE that an FDE names (None:
            it is a CIE itself), and the offset of the next record.
        """
        if not area.start <= place < area.end:
            raise DamagedError("a record outside its section")
        reader = Reader(area.data, place, area.end, self.order)
        length, width = reader.initial_length()
        if length == 0 or length > area.end - reader.place:
            raise DamagedError("a record longer than its section")
        after = reader.end = reader.place + length
        if area.eh:
            field = reader.place  # 4 bytes even behind a 64-bit length, as in LLVM's libunwind
            delta = reader.uint(4)
            return reader, field - delta if delta else None, after
        pointer = reader.uint(width)
        is_cie = pointer == _DEBUG_FRAME_CIE[width]
        return reader, None if is_cie else area.start + pointer, after

    def cie(self, area: FrameArea, place: int) -> Cie:
        """The common entry at an offset into the area's data; parsed once."""
        key = (area.name, place)
        if key not in self._cies:
            found = None
            try:
                reader, other, _ = self.record(area, place)
                if other is None:
                    found = self._parse_cie(reader, area, place)
            finally:  # once it is known: two threads may ask for it
                self._cies[key] = found
        cie = self._cies[key]
        if cie is None:
            raise DamagedError("an entry whose CIE is damaged")
        return cie

    def _parse_cie(self, reader: Reader, area: FrameArea, place: int) -> Cie:
        version = reader.u8()
        if version not in (1, 3, 4):
            raise DamagedError(f"CIE version {version}")
        letters = headers.text(reader.cstring())
        address_size = self.bits // 8
        if version == 4:
            address_size, segment_size = reader.u8(), reader.u8()
            if address_size not in (4, 8) or segment_size:
                raise DamagedError("a CIE with segments or odd addresses")
        if letters.startswith("eh"):  # gcc 2 put a pointer here
            reader.take(address_size)
        code, data = reader.uleb(), reader.sleb()
        register = reader.u8() if version == 1 else reader.uleb()
        fde_encoding, lsda_encoding = _PE_ABS, PE_OMIT
        personality: int | None = None
        indirect = False
        if letters.startswith("z"):
            size = reader.uleb()
            rules = reader.place + size
            inner = Reader(area.data, reader.place, min(rules, reader.end), self.order)
            for letter in letters[1:]:
                if letter == "R":
                    fde_encoding = inner.u8()
                elif letter == "L":
                    lsda_encoding = inner.u8()
                elif letter == "P":
                    encoding = inner.u8()
                    indirect = bool(encoding & _PE_INDIRECT)
                    skew = area.address - area.start
                    personality = self.pointer(inner, encoding, skew, None) or None
                elif letter not in "SBG":
                    break  # unknown data; 'z' lets us step over it
            reader.take(size)
        elif letters not in ("", "eh"):
            raise DamagedError(f"augmentation {letters!r}")
        return Cie(
            section=area.name,
            offset=place - area.start,
            version=version,
            augmentation=letters,
            address_size=address_size,
            code_alignment=code,
            data_alignment=data,
            return_register=register,
            fde_encoding=fde_encoding,
            lsda_encoding=lsda_encoding,
            personality=personality,
            personality_indirect=indirect,
            signal_frame="S" in letters,
            b_key="B" in letters,
            instructions=reader.block(reader.end - reader.place),
        )

    def fde(self, area: FrameArea, place: int) -> Fde:
        """The frame description at an offset into the area's data."""
        reader, cie_offset, _ = self.record(area, place)
        if cie_offset is None:
            raise DamagedError("a CIE where an FDE should be")
        cie = self.cie(area, cie_offset)
        start, size = self.range(reader, area, cie)
        augmentation, lsda = b"", None
        skew = area.address - area.start
        if cie.augmentation.startswith("z"):
            count = reader.uleb()
            inner = Reader(area.data, reader.place, reader.place + count, self.order)
            augmentation = reader.block(count)
            if cie.lsda_encoding != PE_OMIT and count:
                lsda = self.pointer(inner, cie.lsda_encoding, skew, None, start) or None
        address = reader.place + skew if area.eh else 0
        rules = reader.block(reader.end - reader.place)
        return Fde(cie, place - area.start, start, size, lsda, augmentation, rules, address)

    def range(self, reader: Reader, area: FrameArea, cie: Cie) -> tuple[int, int]:
        """Read (start, size) of an FDE; the reader stands behind its CIE pointer."""
        if not area.eh:
            return reader.uint(cie.address_size), reader.uint(cie.address_size)
        encoding = cie.fde_encoding
        start = self.pointer(reader, encoding, area.address - area.start, None, null=False)
        size = self.pointer(reader, encoding & 0x07, 0, None)
        return start, size

    def pointer(
        self,
        reader: Reader,
        encoding: int,
        skew: int,
        data_base: int | None,
        func_base: int | None = None,
        *,
        null: bool = True,
    ) -> int:
        """Read a DW_EH_PE_* pointer as a link address (of the pointer, when indirect).

        Args:
            reader: at the pointer.
            encoding: form in the low half, base in the high half.
            skew: link address minus offset of the bytes that are read.
            data_base: base of "datarel"; None where it is not known.
            func_base: base of "funcrel".
            null: a stored 0 is a null pointer, whatever the base.
        """
        word = self.bits // 8
        base: int | None = 0
        application = encoding & 0x70
        if application == _PE_ALIGNED:
            reader.take(-(reader.place + skew) % word)
        elif application == _PE_PCREL:
            base = reader.place + skew
        elif application == _PE_DATAREL:
            base = data_base
        elif application == _PE_FUNCREL:
            base = func_base
        elif application != _PE_ABS:
            base = None
        form = encoding & 0x0F
        if base is None or form in (5, 6, 7, 13, 14, 15):
            raise DamagedError(f"pointer encoding {encoding:#x}")
        if form & 7 == 1:
            value = reader.sleb() if form & 8 else reader.uleb()
        else:
            size = _PE_SIZES.get(form & 7, word)
            value = reader.sint(size) if form & 8 else reader.uint(size)
        if null and value == 0:
            return 0
        return (value + base) & ((1 << self.bits) - 1)
