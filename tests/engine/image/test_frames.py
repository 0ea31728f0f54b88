"""Records of frame sections, asked for by two threads at once."""

from concurrent.futures import ThreadPoolExecutor

from sysroot import CHECKOUT

from engine.image import ElfImage
from engine.image.frames import Cie, FrameArea, FrameParser
from engine.image.reader import Reader


class Interrupted(FrameParser):
    """In the middle of its first record, another thread asks for the same entry."""

    other: Cie | None = None
    busy = False

    def record(self, area: FrameArea, place: int) -> tuple[Reader, int | None, int]:
        if not self.busy:
            self.busy = True
            with ThreadPoolExecutor(1) as pool:
                self.other = pool.submit(self.cie, area, place).result()
        return super().record(area, place)


def test_an_entry_that_is_being_read_is_not_taken_for_damaged() -> None:
    image = ElfImage.open(str(CHECKOUT / "samples" / "bin" / "x86_64" / "words"))
    section = image.section(".eh_frame")
    assert section is not None
    data = image.section_data(section)
    area = FrameArea(".eh_frame", data, 0, len(data), section.addr, bounded=True)
    parser = Interrupted(image.bits, image.layout.order)
    found = parser.cie(area, 0)
    assert parser.other == found == FrameParser(image.bits, image.layout.order).cie(area, 0)
