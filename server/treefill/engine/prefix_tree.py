"""Which tokens the blocks of the key/value cache hold: a tree of prompts, whose branches are what prompts share.

A node is a block: the tokens in it, and the nodes that go on from a full one. So two documents, two windows or two
places in one file share the blocks of what they begin with (vLLM's block table over SGLang's radix tree), and going
back to an earlier prompt finds it where it was left. Sharing is exact to the token: where a prompt leaves another in
the middle of a block, what they share is copied. When no block is free, the end of a branch gives its own: first what a
later prompt of the same document took the place of, then what was not used for the longest time. Tokens are compared,
never hashes. What differs in its salt shares nothing.

The tree holds no keys and values: it says which block is to be copied where, and which blocks a sequence lies in.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from treefill.engine.api import TokenId

N_CHEAP_TOKENS = 64
"""So many tokens at the end of a branch are given up for a new one in their place, and not kept beside it: the next key
makes another end of the same prompt, and would otherwise fill a block each."""


@dataclass(frozen=True, slots=True)
class Copy:
    """The first `n_tokens` of a block, to be copied to another."""

    source: int
    target: int
    n_tokens: int


@dataclass(slots=True, eq=False)
class _Node:
    parent: "_Node | None"
    block: int
    ids: list[TokenId] = field(default_factory=list)
    children: list["_Node"] = field(default_factory=list)
    used_at: int = 0
    is_superseded: bool = False
    """A prompt that shares more than half with this branch has gone another way from here."""


class PrefixTree:
    """The blocks of one model's cache, and one sequence at a time that is being read and extended."""

    def __init__(self, n_blocks: int, block_tokens: int) -> None:
        """`n_blocks` is at least what the longest sequence takes, and one more to copy from."""
        self._block_tokens = block_tokens
        self._free = list(reversed(range(n_blocks)))
        self._roots: dict[str, _Node] = {}
        self._path: list[_Node] = []
        self._clock = 0
        self.begin(())

    @property
    def blocks(self) -> list[int]:
        """Where the sequence lies, block by block, those for which room was made included."""
        return [node.block for node in self._path]

    @property
    def ids(self) -> tuple[TokenId, ...]:
        """The sequence."""
        return tuple(token for node in self._path for token in node.ids)

    @property
    def n_tokens(self) -> int:
        """Tokens of the sequence."""
        return sum(len(node.ids) for node in self._path)

    @property
    def n_free_blocks(self) -> int:
        """Blocks that hold nothing."""
        return len(self._free)

    def begin(self, ids: Sequence[TokenId], salt: str = "") -> Copy | None:
        """Make the longest known beginning of `ids` the sequence; what must be copied for it."""
        self._clock += 1
        self._drop_empty()
        self._roots = {name: root for name, root in self._roots.items() if root.children}
        node = self._root = self._roots.setdefault(salt, _Node(None, -1))
        self._path = []
        n_known = 0
        while child := _closest(node, ids[n_known : n_known + self._block_tokens]):
            n_shared = n_common(child.ids, ids[n_known : n_known + self._block_tokens])
            if n_shared < len(child.ids):
                return self._branch(child, n_known, n_shared)
            self._enter(child)
            n_known += n_shared
            node = child
        return None

    def make_room(self, n_tokens: int) -> None:
        """Find blocks for so many more tokens of the sequence. Nodes that nobody used for long may be forgotten."""
        n_room = len(self._path) * self._block_tokens - self.n_tokens
        while n_room < n_tokens:
            self._enter(self._new_node())
            n_room += self._block_tokens

    def append(self, ids: Sequence[TokenId]) -> None:
        """The sequence goes on with `ids`, for which there is room."""
        at = 0
        for node in self._path:
            n = self._block_tokens - len(node.ids)
            node.ids.extend(ids[at : at + n])
            at += n
        assert at >= len(ids), "room is made before tokens are appended"

    def forget(self) -> None:
        """Hold nothing."""
        for root in self._roots.values():
            self._free.extend(node.block for node in _descendants(root))
        self._roots.clear()
        self._path = []
        self.begin(())

    def _enter(self, node: _Node) -> None:
        node.used_at = self._clock
        node.is_superseded = False
        self._path.append(node)

    def _branch(self, node: _Node, n_before: int, n_shared: int) -> Copy | None:
        """Go on from the middle of a block: in it where little is lost, else in a copy of its beginning."""
        n_lost = _length(node) - n_shared
        if not node.children and n_lost <= N_CHEAP_TOKENS:
            del node.ids[n_shared:]
            self._enter(node)
            return None
        if n_before + n_shared >= n_lost:
            for other in (node, *_descendants(node)):
                other.is_superseded = True
        copied = self._new_node(but=node)
        copied.ids = node.ids[:n_shared]
        self._enter(copied)
        return Copy(node.block, copied.block, n_shared)

    def _new_node(self, but: _Node | None = None) -> _Node:
        """A node after the sequence's last, on a free block or on one that another node gives up."""
        parent = self._path[-1] if self._path else self._root
        if not self._free:
            self._drop_one(but)
        node = _Node(parent, self._free.pop())
        parent.children.append(node)
        return node

    def _drop_one(self, but: _Node | None) -> None:
        """Free the block that is missed least: not the sequence's, and not `but`, which is still to be copied."""
        held = {id(node) for node in (*self._path, but)}
        nodes = (node for root in self._roots.values() for node in _descendants(root))
        leaves = (node for node in nodes if not node.children and id(node) not in held)
        least = min(leaves, key=lambda node: (not node.is_superseded, node.used_at), default=None)
        assert least is not None, "a cache holds its longest sequence and one block more"
        self._remove(least)

    def _drop_empty(self) -> None:
        """Room that was made and not used, because the request was cancelled."""
        while self._path and not self._path[-1].ids:
            self._remove(self._path.pop())

    def _remove(self, leaf: _Node) -> None:
        assert leaf.parent is not None, "a root has no block"
        leaf.parent.children.remove(leaf)
        self._free.append(leaf.block)


def _closest(node: _Node, ids: Sequence[TokenId]) -> _Node | None:
    """The child that shares the longest beginning with `ids`; None where none shares a token."""
    found = [(n_common(child.ids, ids), child) for child in node.children]
    n_shared, child = max(found, key=lambda pair: pair[0], default=(0, None))
    return child if n_shared else None


def _length(node: _Node) -> int:
    """Tokens of the longest branch from `node` on. A branch may be longer than Python lets calls nest."""
    longest = 0
    waiting = [(node, len(node.ids))]
    while waiting:
        last, n_tokens = waiting.pop()
        longest = max(longest, n_tokens)
        waiting.extend((child, n_tokens + len(child.ids)) for child in last.children)
    return longest


def _descendants(root: _Node) -> Iterator[_Node]:
    """All nodes below `root`."""
    waiting = list(root.children)
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.children)


def n_common(left: Sequence[TokenId], right: Sequence[TokenId]) -> int:
    """How many tokens two sequences begin with together."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
