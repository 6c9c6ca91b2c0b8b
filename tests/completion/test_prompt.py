"""What the model reads, and that it reads the same while the user types."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from treefill.completion import POLICIES, Anchor, Budgets, Prompt, build_prompt, choose_anchor, choose_layout
from treefill.completion.prompt import Healing, cut_prefix, cut_suffix, snapshot_suffix, split_typed_tail
from treefill.errors import BadInput
from treefill.text import Document

from tests.helpers.scripted_engine import ByteVocabulary

VOCABULARY = ByteVocabulary()
LAYOUT = choose_layout(VOCABULARY)
WIDE = Budgets(100_000, 100_000, 100_000)


def prompt_at(
    marked: str, policy: str = "lines-3", previous: Anchor | None = None, budgets: Budgets = WIDE
) -> tuple[Prompt, Anchor]:
    offset = marked.index("‸")
    document = Document("a.py", marked.replace("‸", ""), "python")
    anchor = choose_anchor(document, offset, previous, policy)
    return build_prompt(document, offset, anchor, LAYOUT, VOCABULARY, budgets), anchor


def parts(prompt: Prompt) -> dict[str, str]:
    return {part.name: part.text for part in prompt.parts}


@pytest.mark.parametrize(
    ("policy", "prefix", "middle", "forced"),
    [
        ("plain", "a\nb\nc\nd\ne\nx = fo", "", ""),
        ("plain-healed", "a\nb\nc\nd\ne\nx =", "", " fo"),
        ("line", "a\nb\nc\nd\ne\n", "x =", " fo"),
        ("lines-3", "", "a\nb\nc\nd\ne\nx =", " fo"),
        ("lines-1", "a\nb\nc\nd\n", "e\nx =", " fo"),
    ],
)
def test_each_policy_splits_in_its_own_place(policy: str, prefix: str, middle: str, forced: str) -> None:
    prompt, _ = prompt_at("a\nb\nc\nd\ne\nx = fo‸\nz\n", policy)

    assert parts(prompt)["prefix"] == prefix
    assert parts(prompt)["middle"] == middle
    assert prompt.forced.decode() == forced
    assert parts(prompt)["suffix"] == "\nz\n"


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"'best' is not known.*plain-healed.*lines-3"):
        prompt_at("x‸", "best")


@pytest.mark.parametrize(
    ("middle", "kept", "tail"),
    [
        ("x = fo", "x =", " fo"),
        ("x = ", "x =", " "),
        ("foo(", "foo", "("),
        ("foo.ba", "foo", ".ba"),
        ('d["', "d", '["'),
        ("cout <<", "cout", " <<"),
        ("----------", "------", "----"),
        ("    ", "", "    "),
        ("a\n    ", "a\n", "    "),
        ("a\n\tre", "a\n", "\tre"),
        ("", "", ""),
        ("über", "", "über"),
    ],
)
def test_healing_backs_up_over_what_may_be_one_token(middle: str, kept: str, tail: str) -> None:
    assert split_typed_tail(middle) == (kept, tail)


@pytest.mark.parametrize(
    ("middle", "kept", "tail"),
    [("x = fo", "x =", " fo"), ("x = ", "x =", " "), ("foo(", "foo(", ""), ("foo.ba", "foo.", "ba")],
)
def test_healing_words_only_is_an_arm_of_its_own(middle: str, kept: str, tail: str) -> None:
    assert split_typed_tail(middle, Healing.WORD) == (kept, tail)
    assert split_typed_tail(middle, Healing.NONE) == (middle, "")


def test_of_a_word_without_an_end_only_its_last_letters_are_spelled_again() -> None:
    for healing in (Healing.WORD, Healing.TOKEN):
        assert split_typed_tail("x" * 20_000, healing) == ("x" * (20_000 - 64), "x" * 64)
        assert split_typed_tail("\n" + " " * 20_000, healing) == ("\n" + " " * (20_000 - 64), " " * 64)


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(st.sampled_from("ab_1 \t\n\r(.é🙂\ud83d"), max_size=60),
    offset=st.integers(0, 60),
    policy=st.sampled_from(sorted(POLICIES)),
)
def test_ids_and_forced_bytes_spell_the_text_before_the_cursor(text: str, offset: int, policy: str) -> None:
    offset = min(offset, len(text))
    if text[max(0, offset - 1) : offset + 1] == "\r\n":
        offset -= 1

    prompt, _ = prompt_at(text[:offset] + "‸" + text[offset:], policy)

    spelt = parts(prompt)["prefix"] + parts(prompt)["middle"] + prompt.forced.decode()
    shown = text[:offset].replace("\r\n", "\n").replace("\r", "\n").replace("\ud83d", "\ufffd")
    assert spelt == shown


FILE = "import os\n\n\ndef first(path):\n    return path\n\n\n‸\n\n\ndef last():\n    pass\n"
TYPED = "def load(path):\n    with open(path) as f:\n        data = f.read()\n    return da"


@pytest.mark.parametrize("is_auto_closing", [False, True])
def test_while_the_user_types_only_what_is_typed_is_new(is_auto_closing: bool) -> None:
    anchor: Anchor | None = None
    ids: tuple[int, ...] = ()
    open_brackets = ""
    for n_typed in range(len(TYPED)):
        character = TYPED[n_typed - 1] if n_typed else ""
        open_brackets += ")" if character == "(" and is_auto_closing else ""
        open_brackets = open_brackets[:-1] if character == ")" else open_brackets
        previous_ids, previous_anchor = ids, anchor

        prompt, anchor = prompt_at(FILE.replace("‸", TYPED[:n_typed] + "‸" + open_brackets), previous=anchor)

        ids = prompt.ids
        if previous_anchor is not None:
            assert anchor == previous_anchor, f"after {TYPED[:n_typed]!r}"
            assert ids[: len(previous_ids)] == previous_ids


def test_without_a_memory_the_anchor_stays_while_several_lines_are_typed() -> None:
    offsets = []
    for n_typed in range(len(TYPED)):
        _, anchor = prompt_at(FILE.replace("‸", TYPED[:n_typed] + "‸"))
        offsets.append(anchor.offset)

    assert len(set(offsets)) <= 2
    assert max(offsets.count(offset) for offset in offsets) > len(TYPED) // 2


def test_the_anchor_lies_some_lines_back_but_not_many() -> None:
    lines = [f"line_{number}" for number in range(40)]
    for number in range(8, 40):
        marked = "\n".join([*lines[:number], "‸", *lines[number:]])
        _, anchor = prompt_at(marked)
        n_back = number - marked[: anchor.offset].count("\n")
        assert 3 <= n_back <= 6


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        ("an edit above", "a = 1\n" * 9 + "x = ‸\n", "a = 2\n" + "a = 1\n" * 8 + "x = y‸\n"),
        ("another suffix", "a = 1\n" * 9 + "x = ‸\nb\n", "a = 1\n" * 9 + "x = y‸\nc\n"),
        ("a cursor above", "a = 1\n" * 9 + "x = ‸\n", "a = ‸1\n" + "a = 1\n" * 8 + "x = \n"),
        ("many lines typed", "a = 1\n" * 9 + "‸\n", "a = 1\n" * 9 + "b = 1\n" * 20 + "‸\n"),
        ("a very long line", "a = 1\n" * 9 + "‸\n", "a = 1\n" * 9 + "b" * 3000 + "‸\n"),
    ],
)
def test_an_anchor_is_left_behind_after(change: str, before: str, after: str) -> None:
    _, anchor = prompt_at(before)

    _, moved = prompt_at(after, previous=anchor)

    assert moved != anchor
    assert moved == prompt_at(after)[1]


def test_an_anchor_of_another_file_or_policy_does_not_hold() -> None:
    _, anchor = prompt_at("a = 1\n" * 9 + "x = ‸\n", "lines-2")

    _, other = prompt_at("a = 1\n" * 9 + "x = ‸\n", "lines-3", previous=anchor)

    assert other.policy == "lines-3"


@pytest.mark.parametrize(
    ("marked", "suffix"),
    [
        ("foo(‸)\nx", "\nx"),
        ("f(g(‸))\nx", "\nx"),
        ("foo(‸, b)", ", b)"),
        ("foo(‸) + bar", " + bar"),
        ("for (i = 0; i < ‸; ++i) {", "; ++i) {"),
        ("foo(‸);\nx", "\nx"),
        ("if foo(‸):\n", "\n"),
        ('print("‸")', ""),
        ('x = ‸"text"', '"text"'),
        ('print(‸"a", b)', '"a", b)'),
        ('x = "a‸b"', 'b"'),
        ('x = "a‸)b"', ')b"'),
        ('x = "see f(‸) or"', ' or"'),
        ('x = "see f(‸)"', ""),
        ('x = "see f(‸)) or"', ') or"'),
        ("f({‸});", ""),
        ("x‸ = 1", " = 1"),
    ],
)
def test_closers_that_editors_write_are_left_out_of_the_suffix(marked: str, suffix: str) -> None:
    offset = marked.index("‸")

    assert snapshot_suffix(Document("a.py", marked.replace("‸", ""), "python"), offset) == suffix


def test_carriage_returns_never_enter_a_prompt() -> None:
    with_cr, _ = prompt_at("int f() {\r\n    ‸\r\n}\r\n")
    without, _ = prompt_at("int f() {\n    ‸\n}\n")

    assert with_cr.ids == without.ids
    assert with_cr.forced == without.forced


def test_a_byte_order_mark_is_not_shown() -> None:
    prompt, _ = prompt_at("\ufeffimport os\n‸\n")

    assert "\ufeff" not in "".join(part.text for part in prompt.parts)


def test_the_prefix_begins_at_the_same_place_while_lines_are_added() -> None:
    lines = [f"value_{number} = {number}" for number in range(1000)]
    starts = {
        cut_prefix("\n".join(lines[:count]) + "\n", 4000, VOCABULARY).split("\n")[0]
        for count in range(700, 720)
    }

    assert len(starts) <= 2
    for start in starts:
        assert int(start.split()[-1]) % 64 == 0


@settings(max_examples=100, deadline=None)
@given(
    lines=st.lists(st.integers(0, 3000).map(lambda size: "ab " * (size // 3)), max_size=12),
    n_budget=st.integers(0, 2000),
)
def test_a_cut_text_keeps_to_its_budget(lines: list[str], n_budget: int) -> None:
    text = "\n".join(lines)

    prefix = cut_prefix(text, n_budget, VOCABULARY)
    suffix = cut_suffix(text, n_budget, VOCABULARY)

    assert text.endswith(prefix)
    assert text.startswith(suffix)
    assert len(prefix) <= n_budget
    assert len(suffix) <= n_budget
    if len(text) <= n_budget:
        assert prefix == suffix == text


def test_a_line_longer_than_the_budget_is_cut_at_a_fixed_step() -> None:
    line = "[" + "1, " * 2000
    cuts = {len(line) + typed - len(cut_prefix(line + "9" * typed, 1000, VOCABULARY)) for typed in range(40)}

    assert all(cut % 256 == 0 for cut in cuts)
    assert len(cuts) <= 2


def test_a_suffix_is_cut_at_a_lines_end() -> None:
    assert cut_suffix("abc\ndef\nghi\n", 9, VOCABULARY) == "abc\ndef\n"


def test_a_file_of_many_megabytes_is_never_tokenised_whole() -> None:
    class CountingVocabulary(ByteVocabulary):
        n_chars = 0

        def encode(self, text: str) -> list[int]:
            self.n_chars += len(text)
            return super().encode(text)

    vocabulary = CountingVocabulary()
    text = "x = 1\n" * 3_000_000
    document = Document("a.py", text, "python")
    anchor = choose_anchor(document, len(text) // 2, None, "lines-3")

    prompt = build_prompt(document, len(text) // 2, anchor, LAYOUT, vocabulary, Budgets())

    assert vocabulary.n_chars < 100_000
    assert 500 < len(prompt.ids) < 3000
