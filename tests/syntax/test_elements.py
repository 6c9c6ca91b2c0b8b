"""Which elements of a markup are open at a place, and which the text after it closes."""

import pytest
from treefill.syntax.elements import MAX_OPEN, Read, read_elements
from treefill.syntax.languages import language_by_id


def read(text: str, language: str = "html") -> Read:
    return read_elements(text.encode(), language_by_id(language).skeleton)


@pytest.mark.parametrize(
    ("text", "open_names", "last"),
    [
        ("<a><b>x</b>text", ["a"], "text"),
        ("<a><br><img src='>'><b/>", ["a"], ""),
        ('<a><b c="', ["a"], '<b c="'),
        ("<a><b>x</a>", [], ""),
        ("<a></z>", ["a"], ""),
        ("<a><!-- <b> -->", ["a"], "<!-- <b> -->"),
        ("<a><!-- <b>", ["a"], "<!-- <b>"),
        ("<script>if (a<b>c) f('</i>')", ["script"], "if (a<b>c) f('</i>')"),
        ("<script>a<b></script><p>", ["p"], ""),
        ("text alone < 3", [], "text alone < 3"),
        ("", [], ""),
    ],
)
def test_the_elements_that_are_open(text: str, open_names: list[str], last: str) -> None:
    found = read(text)

    assert [element.name.decode() for element in found.elements] == open_names
    assert text[found.last :] == last


def test_where_a_tag_begins_and_its_text() -> None:
    (element,) = read("x<a b='c'>d", "xml").elements

    assert (element.start, element.body) == (1, 10)


def test_what_is_closed_that_was_not_opened() -> None:
    assert read("x</b> <i>y</i> </a>").closed == ((b"b", 1), (b"a", 15))


def test_xml_has_sections_and_instructions() -> None:
    assert [each.name for each in read("<?xml?><!DOCTYPE a><a><![CDATA[<b>]]>", "xml").elements] == [b"a"]


@pytest.mark.parametrize(
    "hostile", ['<a "', "<a '\"", "<a b=", "<!--", "<a", "<a <", "</a", "<a//", '<a "<a" ']
)
def test_a_hostile_text_is_read_in_time(hostile: str) -> None:
    found = read(hostile * (200_000 // len(hostile)))

    assert len(found.elements) <= MAX_OPEN
