"""Which prompts find their keys and values again, and whose blocks are given up: users see it as answers at once."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from treefill.engine.prefix_tree import Copy, PrefixTree

B = 32


@dataclass
class Cache:
    """A tree and what its blocks hold, as a backend would: each token is stored with everything before it."""

    n_blocks: int = 16
    blocks: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)
    copies: list[Copy] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tree = PrefixTree(self.n_blocks, B)

    def ask(self, ids: list[int], n_decoded: int = 0, salt: str = "") -> int:
        """Evaluate a prompt and some tokens after it; how many of its tokens were known. Checks what lies where."""
        copy = self.tree.begin(ids[:-1], salt)
        if copy is not None:
            self.copies.append(copy)
            self.blocks[copy.target] = self.blocks[copy.source][: copy.n_tokens]
        n_known = self.tree.n_tokens
        assert self.tree.ids == tuple(ids[:n_known])
        whole = ids + [-1 - i for i in range(n_decoded)]
        for start in range(n_known, len(whole), 20):
            chunk = whole[start : start + 20]
            self.tree.make_room(len(chunk))
            for at in range(start, start + len(chunk)):
                held = self.blocks.setdefault(self.tree.blocks[at // B], [])
                del held[at % B :]
                held.append(tuple(whole[: at + 1]))
            self.tree.append(chunk)
        self.check(whole)
        return n_known

    def check(self, whole: list[int]) -> None:
        """What a decoder would read for the sequence is the sequence."""
        assert self.tree.ids == tuple(whole)
        assert len(set(self.tree.blocks)) == len(self.tree.blocks)
        for at in range(len(whole)):
            assert self.blocks[self.tree.blocks[at // B]][at % B] == tuple(whole[: at + 1])


def document(number: int, n: int = 100) -> list[int]:
    return [0, 1, 2, *(1000 * number + i for i in range(n - 3))]


def test_typing_evaluates_the_typed_tokens_alone() -> None:
    cache = Cache()
    cache.ask(document(1), n_decoded=12)

    assert cache.ask([*document(1), 7]) == 100
    assert cache.ask([*document(1), 7, 8], n_decoded=9) == 101
    assert cache.ask([*document(1), 9]) == 100


def test_going_back_to_another_file_costs_nothing() -> None:
    cache = Cache()
    cache.ask(document(1))
    cache.ask(document(2))
    cache.ask(document(3))

    assert cache.ask([*document(1), 7]) == 100
    assert cache.ask([*document(2), 7]) == 100


def test_two_files_share_what_they_begin_with_to_the_token() -> None:
    cache = Cache()
    cache.ask(document(1))
    n_before = cache.tree.n_free_blocks
    cache.ask([*document(1)[:75], *range(5000, 5100)])

    assert n_before - cache.tree.n_free_blocks == 4, (
        "64 of 75 shared tokens lie in shared blocks, 11 are copied"
    )
    assert cache.copies == [Copy(cache.copies[0].source, cache.copies[0].target, 11)]
    assert cache.ask([*document(1), 7]) == 100


def test_workspaces_share_nothing() -> None:
    cache = Cache()
    cache.ask(document(1), salt="/one")

    assert cache.ask(document(1), salt="/two") == 0
    assert cache.ask(document(1), salt="/one") == 99


def test_a_full_cache_gives_up_what_was_not_used_for_the_longest_time() -> None:
    cache = Cache(n_blocks=13)  # three documents of four blocks, and one to copy from
    for number in (1, 2, 3):
        cache.ask(document(number))
    cache.ask([*document(1), 7])
    cache.ask(document(4))

    assert cache.ask([*document(1), 7]) == 100
    assert cache.ask([*document(3), 7]) == 100
    assert cache.ask([*document(2), 7]) < 64


def test_what_typing_has_taken_the_place_of_goes_before_other_files() -> None:
    """Every new line moves the anchor, and leaves the old end of the prompt behind."""
    cache = Cache(n_blocks=16)
    cache.ask(document(1))
    for line in range(20):
        cache.ask([*document(2), *range(5000 + 200 * line, 5080 + 200 * line)])

    assert cache.ask([*document(1), 7]) == 100


def test_a_cancelled_request_keeps_no_room() -> None:
    cache = Cache(n_blocks=6)
    cache.ask(document(1, 64))
    for _ in range(20):
        cache.tree.begin(document(1, 64))
        cache.tree.make_room(64)

    assert cache.ask([*document(1, 64), 7]) == 64


def test_forgetting_frees_everything() -> None:
    cache = Cache()
    cache.ask(document(1))
    cache.tree.forget()

    assert cache.tree.n_free_blocks == 16
    assert cache.ask(document(1)) == 0


def test_a_prompt_of_more_blocks_than_calls_may_nest_can_be_left_near_its_beginning() -> None:
    tree = PrefixTree(1100, B)
    ids = list(range(1024 * B))
    tree.make_room(len(ids))
    tree.append(ids)

    assert tree.begin([*ids[:40], -1]) is not None
    assert tree.n_tokens == 40


def test_more_than_there_is_room_for_is_a_mistake_of_ours() -> None:
    tree = PrefixTree(3, B)
    with pytest.raises(AssertionError, match="longest sequence"):
        tree.make_room(4 * B)


prompts = st.lists(
    st.tuples(
        st.lists(st.integers(0, 2), min_size=1, max_size=90), st.integers(0, 40), st.sampled_from("ab")
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(prompts)
def test_whatever_is_asked_the_blocks_hold_the_sequence(asked: list[tuple[list[int], int, str]]) -> None:
    """Sequences of a few ids share and diverge everywhere; `Cache.ask` checks each block."""
    cache = Cache(n_blocks=6)
    for ids, n_decoded, salt in asked:
        cache.ask(ids, n_decoded, salt)
