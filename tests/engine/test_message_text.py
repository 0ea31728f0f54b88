"""Numbers in sentences."""

from engine.message_text import bare_place, counted


def test_one_and_many() -> None:
    assert [counted(count, "probe") for count in (0, 1, 2)] == ["0 probes", "1 probe", "2 probes"]


def test_places_have_functions_of_cpp_without_parameters() -> None:
    for place, bare in (
        ("main+0x10", "main+0x10"),
        ("geo::Circle::area() const+0x4", "geo::Circle::area+0x4"),
        ("work(Node*, std::vector<Item, std::allocator<Item>>&)+0x0", "work+0x0"),
        ("int geo::biggest<int>(int, int)+0x8", "geo::biggest<int>+0x8"),
        ("0x401000", "0x401000"),
        ("", ""),
    ):
        assert bare_place(place) == bare
