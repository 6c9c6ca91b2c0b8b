"""Masks beside other engines: what is checked of a walk, what is told of its times, which grammars engines get."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from treefill.syntax.grammars import load
from treefill.syntax.languages import language_by_id
from treefill.syntax.matcher import tables

from bench import masks
from bench.mask_engines import (
    CHANGES,
    LANGUAGES,
    NO_LAZY_RAW_STRINGS,
    NO_LAZY_STRINGS,
    NO_PRIORITIES,
    NO_TREE_MARKS,
    CannotLoad,
    Change,
    Contender,
    OurWalker,
    Tokens,
    Walker,
    changed,
    first_line,
    lark_text,
)
from bench.masks import (
    Conditions,
    Pass,
    Row,
    Run,
    one_pass,
    report,
    summary,
    table,
    take_turns,
    texts_of,
    walk,
)

SPELLED = [b"a", b"b", b"", b"c"]  # token 2 is a control token, 3 the last of them
N_LOGITS = 40
TOKENS = Tokens(SPELLED, N_LOGITS, frozenset({2}), lambda text: [SPELLED.index(c.encode()) for c in text])


class ScriptedWalker:
    """Allows what a script says at each place; may die at one, take nothing at one, and not be whole at the end."""

    def __init__(
        self,
        script: Sequence[set[int]],
        dies_at: int | None = None,
        stubborn_at: int | None = None,
        ends: bool = True,
    ) -> None:
        self.words = TOKENS.no_mask()
        self._script, self._dies_at, self._stubborn_at, self._ends = script, dies_at, stubborn_at, ends
        self._place = 0

    def begin(self) -> None:
        self._place = 0

    def fill_mask(self) -> None:
        bits = np.zeros(32 * len(self.words), np.uint8)
        bits[list(self._script[self._place])] = 1
        self.words[:] = np.packbits(bits, bitorder="little").view(np.uint32)

    def accept(self, token_id: int) -> bool:
        is_taken = self._place != self._stubborn_at
        self._place += 1
        return is_taken

    def is_whole(self) -> bool:
        return self._ends

    def trouble(self) -> str:
        return "too much" if self._place == self._dies_at else ""


def ticking(*steps_us: float) -> Callable[[], int]:
    """A clock on which each mask and each token takes the next of `steps_us`, over and over."""
    readings = count()
    now_ns = 0

    def read() -> int:
        nonlocal now_ns
        reading = next(readings)
        if reading % 2:  # the end of something
            now_ns += round(1000 * steps_us[reading // 2 % len(steps_us)])
        return now_ns

    return read


def run_of(walker: Walker, text: str = "abc", clock: Callable[[], int] | None = None) -> Run:
    ids = tuple(TOKENS.encode(text))
    return Run(walker, [masks.Text("text", ids)], 5.0, TOKENS.never(), clock or ticking(1.0), Pass())


def walked(walker: Walker, is_cut: bool = False) -> tuple[str, Pass]:
    found = Pass()
    text = masks.Text("text", tuple(TOKENS.encode("abc")), is_cut)
    return walk(walker, text, TOKENS.never(), ticking(30.0, 2.0), found), found


def test_a_walk_takes_the_time_of_masks_and_of_tokens_apart() -> None:
    trouble, found = walked(ScriptedWalker([{0, 1}, {1}, {0, 1, 2, 3}]))

    assert trouble == ""
    assert found == Pass([30.0] * 3, [2.0] * 3, [2 / 64, 1 / 64, 4 / 64])


@pytest.mark.parametrize(
    ("walker", "expected", "n_masks"),
    [
        (ScriptedWalker([{0}, {0}, {3}]), "token 1: refuses the right one", 1),
        (ScriptedWalker([{0}, {1}, {3, 4}]), "token 2: allows tokens that no text has", 2),
        (ScriptedWalker([{0}, {1}, {3}], dies_at=1), "token 1: dies (too much)", 1),
        (
            ScriptedWalker([{0}, {1}, {3}], stubborn_at=0),
            "token 0: does not take what its mask allows (no word why)",
            0,
        ),
        (ScriptedWalker([{0}, {1}, {3}], ends=False), "at its end: does not think it whole", 3),
    ],
)
def test_a_walk_ends_at_the_first_thing_that_is_wrong(
    walker: ScriptedWalker, expected: str, n_masks: int
) -> None:
    trouble, found = walked(walker)

    assert (trouble, len(found.mask_us)) == (expected, n_masks)


def test_a_text_that_goes_on_need_not_be_whole() -> None:
    trouble, _ = walked(ScriptedWalker([{0}, {1}, {3}], ends=False), is_cut=True)
    cut, whole = (texts_of("c", lambda text: [*text.encode()], n_tokens)[0] for n_tokens in (40, 10_000))

    assert trouble == ""
    assert (len(cut.ids), cut.is_cut, whole.is_cut) == (40, True, False)
    assert cut.ids == whole.ids[:40]


def test_no_mask_may_allow_what_no_text_has_but_the_end() -> None:
    never = TOKENS.never()

    assert [token_id for token_id in range(64) if masks.allows(never, token_id)] == list(range(4, 64))


def test_each_place_counts_with_its_median_over_the_passes() -> None:
    run = run_of(ScriptedWalker([{0}, {1}, {3}]))
    run.first = Pass([400.0] * 19 + [2400.0], [9.0] * 20, [0.5] * 10 + [0.25] * 10)
    places = [float(place) for place in range(20, 0, -1)]
    run.later = [Pass([time * factor for time in places], [1.0, 3.0] * 10) for factor in (0.5, 100, 1)]

    row = summary("c", Contender("e 1", "g", lambda: run.walker), run)

    assert row == Row(
        "c",
        "e 1",
        "g",
        n_masks=20,
        n_passes=3,
        compile_ms=5.0,
        p50_us=10.0,
        p90_us=18.0,
        p99_us=20.0,
        mean_us=10.5,
        max_us=20.0,
        accept_us=2.0,
        density=0.375,
        first_mean_us=500.0,
        first_max_us=2400.0,
    )


def test_who_dies_is_timed_up_to_there_and_who_dies_at_once_is_not() -> None:
    late, soon = run_of(ScriptedWalker([{0}, {1}, {3}], dies_at=2)), run_of(ScriptedWalker([set()]))
    for run in (late, soon):
        one_pass(run, run.first)
    take_turns([late, soon], 2, 60.0)

    rows = [summary("go", Contender("e", "g", lambda: late.walker), run) for run in (late, soon)]

    assert [(row.n_masks, row.mean_us) for row in rows] == [(2, 1.0), (0, None)]
    assert [row.troubles for row in rows] == [
        ("text, token 2: dies (too much)",),
        ("text, token 0: refuses the right one",),
    ]


def test_an_engine_that_goes_another_way_each_time_has_no_times() -> None:
    run = run_of(ScriptedWalker([{0}, {1}, {3}]))
    run.later = [replace(run.first, troubles=["text, token 1: dies (too much)"])]

    with pytest.raises(ValueError, match="did not go as far each time"):
        summary("go", Contender("e", "g", lambda: run.walker), run)


def test_a_slow_engine_takes_fewer_passes_and_at_least_one() -> None:
    quick = run_of(ScriptedWalker([{0}, {1}, {3}]), clock=ticking(1.0))
    slow = run_of(ScriptedWalker([{0}, {1}, {3}]), clock=ticking(1e6))
    for run in (quick, slow):
        one_pass(run, run.first)

    take_turns([quick, slow], n_rounds=4, seconds=10.0)
    assert [len(run.later) for run in (quick, slow)] == [4, 2]  # of 6 s each

    slow.later.clear()
    take_turns([slow], n_rounds=4, seconds=0.0)
    assert len(slow.later) == 1


def test_an_engine_that_cannot_load_a_grammar_and_one_that_is_not_there_are_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refusing:
        name = "picky 1.0"

        def __init__(self, tokens: Tokens) -> None:
            pass

        def contenders(self, language_id: str) -> list[Contender]:
            def refuse() -> Walker:
                raise CannotLoad("priority not supported yet")

            return [Contender(self.name, "Lark", refuse)]

    def absent(tokens: Tokens) -> Refusing:
        raise ImportError("No module named 'absent'")

    monkeypatch.setattr(masks, "ENGINES", {"picky": Refusing, "absent": absent})
    engines, ready_ms, missing = masks.open_engines(["picky", "absent"], TOKENS)
    rows = masks.measured("sql", engines, TOKENS, [], ticking(1.0), 3, 10.0)

    assert list(ready_ms) == ["picky 1.0"]
    assert missing == {"absent": "No module named 'absent': run make mask-peers"}
    assert rows == [Row("sql", "picky 1.0", "Lark", 0, 0, troubles=("priority not supported yet",))]


def test_the_table_is_aligned_and_what_went_wrong_stands_below() -> None:
    timed = Row(
        "c", "e 1", "Lark", 379, 3, 11.8, 987.0, 9262.0, 13910.0, 2179.0, 16490.0, 11.0, 0.3617, 2868.0
    )
    dead = Row("python", "e 1", "Lark", 0, 0, troubles=("no %declare",))
    conditions = Conditions("CPU", "wall", "m", 40, 3, {"e 1": 12.0}, {"f": "no f"}, 1.5, 2.5)

    assert list(table([timed, dead])) == [
        "| language | engine | grammar | compile ms | p50 |   p90 |    p99 |  mean |    max | accept | density "
        "| cold mean | cold max | masks | passes |",
        "| -------- | ------ | ------- | ---------: | --: | ----: | -----: | ----: | -----: | -----: | ------: "
        "| --------: | -------: | ----: | -----: |",
        "| c        | e 1    | Lark    |       11.8 | 987 | 9,262 | 13,910 | 2,179 | 16,490 |     11 |  36.2 % "
        "|     2,868 |        - |   379 |      3 |",
        "| python   | e 1    | Lark    |          - |   - |     - |      - |     - |      - |      - |       - "
        "|         - |        - |     0 |      0 |",
    ]
    told = list(report([timed, dead], conditions))
    assert told[0] == "CPU, load 1.5 before and 2.5 after"
    assert "f: not there (no f)" in told
    assert told[-1] == "- python, e 1, Lark: no %declare"


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        (NO_PRIORITIES, "a.2: b\n?c.10 : d\nE: /x.2: /", "a: b\n?c : d\nE: /x.2: /"),
        (NO_LAZY_STRINGS, 'S: /".*?"/i', 'S: /"[^"\\n]*"/i'),
        (NO_LAZY_RAW_STRINGS, "R: /`.*?`/", "R: /`[^`\\n]*`/"),
        (NO_TREE_MARKS, '!?a: "!" b?\n?b: c', 'a: "!" b?\nb: c'),
    ],
)
def test_grammars_are_changed_where_neither_engine_reads_them(
    change: Change, before: str, after: str
) -> None:
    assert changed(before, (change,)) == after


def test_a_change_that_finds_nothing_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="another release"):
        changed("a: b", (NO_PRIORITIES,))


def test_a_grammar_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "sql.lark").write_text("start.0: A", "utf-8")

    assert lark_text("sql", tmp_path) == "start: A"
    assert "start: value" in lark_text("json", tmp_path)
    with pytest.raises(CannotLoad, match=r"go.lark of SynCode cannot be read .*: run make mask-peers"):
        lark_text("go", tmp_path)
    with pytest.raises(CannotLoad, match="no grammar of it"):
        lark_text("cpp", tmp_path)


def test_every_language_has_texts_and_every_change_a_language() -> None:
    for language_id in LANGUAGES:
        texts = texts_of(language_id, lambda text: [*text.encode()])
        assert len({text.name for text in texts}) >= 3, language_id
    assert CHANGES.keys() <= set(LANGUAGES)


@pytest.mark.parametrize("language_id", ["json", "c", "cpp", "python", "javascript", "sql"])
def test_our_acceptor_takes_the_texts_whole(language_id: str) -> None:
    tokens = Tokens([bytes([byte]) for byte in range(256)], 256, frozenset(), lambda text: [*text.encode()])
    for grammar in language_by_id(language_id).grammars:
        walker = OurWalker(tables(load(grammar)), None, tokens)
        for text in texts_of(language_id, tokens.encode):
            walker.begin()

            assert all(map(walker.accept, text.ids)), text.name
            assert walker.is_whole(), text.name
            assert walker.trouble() == "", text.name


def test_of_what_an_engine_says_the_first_line_is_told() -> None:
    assert first_line("\nToo many items \n<state>\n…") == "Too many items"
