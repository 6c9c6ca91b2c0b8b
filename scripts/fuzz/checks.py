"""What must hold of the acceptor, the matcher and the skeleton on any text whatever.

    whole       accepted exactly where tree-sitter's parse has no fault; and then every beginning of it is one, too
    pieces      the same verdict however the text is cut into pieces
    sequence    allowing is what accepting then says; taking back and trying leave no trace
    mask        all tokens at once have the answers that each gets alone, with a dictionary and without
    matcher     the same of a matcher at a random place, which has one or says why not
    skeleton    there is one of any text at any place, and it is small
    parsed      of a language that is only parsed: its parser lives through it, also with something put in

And of each call, that it comes back in time. Texts that would take tree-sitter's process down go to ours alone.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import numpy as np
import tree_sitter
from texts import Texts
from treefill import _kernels
from treefill.syntax import skeleton
from treefill.syntax.baseline import Baseline
from treefill.syntax.grammars import load
from treefill.syntax.hazards import hazard
from treefill.syntax.languages import Grammar, language_by_id
from treefill.syntax.matcher import Matcher, OutOfReach, matcher_at, tables

R = TypeVar("R")

MAX_CALL_S = 2.0
MAX_PARSED_BYTES = 30_000
"""Longer ones tree-sitter may take minutes over."""
MAX_PIECES = 400
MAX_OPERATIONS = 40
MAX_TOKEN_PIECES, MAX_TOKEN_BYTES = 60, 40
MAX_MASKED_BYTES = 3_000
MAX_DICTIONARY_BYTES = 4_000_000
N_SLOWEST = 3
MAX_SKELETON_BYTES = 4_000_000


class Wrong(Exception):
    """Something that must hold does not."""


@dataclass(frozen=True, slots=True)
class Case:
    """All that a check depends on."""

    check: str
    seed: int
    text: bytes


class Checks:
    """One language's. The same case gives the same answer, whatever was checked before."""

    def __init__(self, language_id: str, seed: int = 0, slowness: float = 1.0) -> None:
        self.language = language_by_id(language_id)
        self.random = Random(f"{language_id} {seed}")
        self.texts = Texts(self.language, self.random)
        self.slowness = slowness
        self.n = Counter[str]()
        self.slowest: list[tuple[float, str, Case]] = []
        self._case = Case("", 0, b"")
        self._tables: dict[tuple[str, bool], _kernels.Grammar] = {}
        self.n["real files"] = len(self.texts.files)  # are looked for once, and that takes its time, too
        for grammar in (
            each for each in self.language.grammars if not each.parse_only
        ):  # their lexers are recovered once, and that takes its time
            self._tables[grammar.name, True] = tables(load(grammar))
            self._tables[grammar.name, False] = _kernels.Grammar(
                load(grammar).capsule, scanner_model=grammar.scanner_model
            )

    def fixed_cases(self) -> list[Case]:
        """Those that are always tried."""
        checks = list(self._checks())
        texts = [b"", b"\0", b"\xef\xbb\xbf", b"\xff", b"\r", b"\n" * 1_000]
        cases = [Case(check, 0, text) for text in texts for check in checks]
        if self.language.id == "python":  # about as deep as its scanner's memory goes
            for depth in (*range(480, 521), 600):
                blocks = "".join(" " * level + "while t:\n" for level in range(depth)) + " " * depth
                deep = [(blocks + last).encode() for last in ('x = "', "pass\n")]
                cases += [Case(check, 1, text) for text in deep for check in ("whole", "sequence", "matcher")]
        return cases

    def random_case(self) -> Case:
        """Another one."""
        kind, text = self.texts.text()
        self.n[kind] += 1
        return Case(self.random.choice(list(self._checks())), self.random.getrandbits(32), text)

    def check(self, case: Case) -> None:
        """Raises `Wrong` where something does not hold."""
        self._case = case
        self.n["cases"] += 1
        self._checks()[case.check](case.text, Random(case.seed))

    def _checks(self) -> dict[str, Callable[[bytes, Random], None]]:
        if self.language.grammars[0].parse_only:
            return {"parsed": self.parsed}
        return {
            "whole": self.whole,
            "pieces": self.pieces,
            "sequence": self.sequence,
            "mask": self.mask,
            "matcher": self.matcher,
            "skeleton": self.skeleton,
        }

    def whole(self, text: bytes, random: Random) -> None:
        """Ours and tree-sitter's say on the text as a whole."""
        grammar = random.choice(self.language.grammars)
        acceptor = self.acceptor(grammar, has_policy=False)
        is_accepted = self.timed("accepts_whole", acceptor.accepts_whole, text)
        has_fault = self._has_fault(text, grammar)
        if acceptor.gave_up:
            self.n["gave up"] += 1
            return
        self.n["accepted" if is_accepted else "refused"] += 1
        if has_fault is not None:
            self.n["compared with tree-sitter"] += 1
            require(is_accepted != has_fault, f"tree-sitter has {'a' if has_fault else 'no'} fault")
        if is_accepted:
            self._is_viable_everywhere(text, random, self.acceptor(grammar, has_policy=False))

    def _is_viable_everywhere(self, text: bytes, random: Random, acceptor: _kernels.Acceptor) -> None:
        """Fed in `MAX_PIECES` pieces: a character each where the text is short."""
        starts = [at for at in range(1, len(text)) if text[at] & 0xC0 != 0x80]
        cuts = sorted(random.sample(starts, min(len(starts), MAX_PIECES)))
        for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
            is_allowed = self.timed("accept", acceptor.accept, text[start:end])
            require(is_allowed, f"an accepted text is refused at {end}")
        require(
            self.timed("accepts_whole", acceptor.accepts_whole, b""), "it is not whole when fed in pieces"
        )

    def pieces(self, text: bytes, random: Random) -> None:
        """Cut up and in one piece."""
        grammar, has_policy = random.choice(self.language.grammars), random.random() < 0.5
        at_once, piecewise = (self.acceptor(grammar, has_policy) for _ in range(2))
        is_whole = self.timed("accepts_whole", at_once.accepts_whole, text)
        is_alive = self.timed("accept", at_once.accept, text)
        cuts = sorted(random.randint(0, len(text)) for _ in range(random.choice([1, 2, 5, MAX_PIECES])))
        allowed = [
            self.timed("accept", piecewise.accept, text[start:end])
            for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)
        ]
        is_whole_piecewise = self.timed("accepts_whole", piecewise.accepts_whole, b"")
        if at_once.gave_up or piecewise.gave_up:
            self.n["gave up"] += 1
            return
        require(all(allowed) == is_alive, f"{is_alive} at once, {all(allowed)} in pieces")
        require(allowed == sorted(allowed, reverse=True), "refused, and later not")
        require(is_whole_piecewise == is_whole, f"whole {is_whole} at once, {is_whole_piecewise} in pieces")
        require(is_alive or not is_whole, "whole, and no beginning")
        require(set(piecewise.expected()) == set(at_once.expected()) or not is_alive, "other tokens expected")
        self.n["alive" if is_alive else "dead"] += 1

    def sequence(self, text: bytes, random: Random) -> None:
        """Any calls in any order, the text coming in bit by bit."""
        grammar = random.choice(self.language.grammars)
        acceptor = self.acceptor(grammar, random.random() < 0.7)
        probes = [self.texts_piece(random, text) for _ in range(3)]
        seen = [self._state(acceptor, probes)]
        at = 0
        for _ in range(random.randint(1, MAX_OPERATIONS)):
            if acceptor.gave_up:
                self.n["gave up"] += 1
                return
            operation = random.choice(["accept", "accept", "accept", "other", "rollback", "try", "back"])
            if operation == "accept" and seen[-1][0]:
                size = random.choice([1, 3, 10, 300, len(text)])
                seen.append(self._accept(acceptor, text[at : at + size], probes))
                at += size
            elif operation == "other":
                seen.append(self._accept(acceptor, self.texts_piece(random, text), probes))
            elif operation == "rollback":
                n = random.randint(0, len(seen) + 1)
                self.timed("rollback", acceptor.rollback, n)
                seen = seen[: max(1, len(seen) - n)]
            elif operation == "try":
                self.timed(
                    "accepts_whole", acceptor.accepts_whole, text[at : at + random.choice([0, 50, len(text)])]
                )
                self.timed("allows", acceptor.allows, self.texts_piece(random, text))
                acceptor.expected()
            else:
                n = random.randint(0, len(seen) + 1)
                told = tuple(self.timed("allows", acceptor.allows, probe, n) for probe in probes)
                before = seen[max(0, len(seen) - 1 - n)]
                require(acceptor.gave_up or told == before[3], f"{n} back another answer than then")
            is_as_it_was = self._state(acceptor, probes) == seen[-1]
            require(acceptor.gave_up or is_as_it_was, f"after {operation} it is not as it was")

    def _accept(self, acceptor: _kernels.Acceptor, piece: bytes, probes: list[bytes]) -> tuple[object, ...]:
        is_allowed = self.timed("allows", acceptor.allows, piece)
        is_accepted = self.timed("accept", acceptor.accept, piece)
        require(
            acceptor.gave_up or is_allowed == is_accepted == acceptor.is_alive,
            f"{piece!r}: allows is not accept",
        )
        return self._state(acceptor, probes)

    def _state(self, acceptor: _kernels.Acceptor, probes: list[bytes]) -> tuple[object, ...]:
        return (
            acceptor.is_alive,
            acceptor.n_accepted,
            acceptor.n_versions,
            tuple(self.timed("allows", acceptor.allows, probe) for probe in probes),
            self.timed("accepts_whole", acceptor.accepts_whole, b""),
            tuple(self.timed("expected", acceptor.expected)),
        )

    def mask(self, text: bytes, random: Random) -> None:
        """The masks of two places one after the other, of a vocabulary that has pieces of the text."""
        grammar = random.choice(self.language.grammars)
        has_policy = random.random() < 0.7
        pieces = {self.texts_piece(random, text) for _ in range(MAX_TOKEN_PIECES)}
        tokens = [
            *(bytes([byte]) for byte in range(256)),
            *sorted(piece[:MAX_TOKEN_BYTES] for piece in pieces),
        ]
        vocabulary = _kernels.Vocabulary(tokens, len(tokens) + 3)
        spelled = _kernels.GrammarVocabulary(self._tables[grammar.name, has_policy], vocabulary)
        acceptor = self.acceptor(grammar, has_policy)
        words = np.zeros(vocabulary.n_words, np.uint32)
        kept = np.zeros(vocabulary.n_words, np.uint32)
        dictionary = _kernels.MaskDictionary(b"fuzz", MAX_DICTIONARY_BYTES, vocabulary.n_words)
        start, end = sorted(random.randint(0, min(len(text), MAX_MASKED_BYTES)) for _ in range(2))
        for piece in (text[:start], text[start:end]):
            if not acceptor.accept(piece) or acceptor.gave_up:
                return
            # Once through the dictionary first: then it is what the places before and this one have in common.
            self.timed("fill_mask", acceptor.fill_mask, spelled, kept, dictionary)
            outcome = self.timed("fill_mask", acceptor.fill_mask, spelled, words)
            is_decided = outcome == _kernels.MaskOutcome.DECIDED
            again = acceptor.fill_mask(spelled, kept, dictionary, is_walked=False)
            if is_decided and again == _kernels.MaskOutcome.DECIDED:
                self.n["masks found again"] += 1
                require(np.array_equal(words, kept), "the dictionary has another mask")
            self.n["masks"] += 1
            mask = np.unpackbits(words.view(np.uint8), bitorder="little")
            require(not mask[len(tokens) :].any(), "a token that is not there is allowed")
            for token, is_allowed in zip(tokens, mask, strict=False):
                # Characters of one class are one to a mask; a scanner that remembers them may tell them apart.
                if token and is_decided and token.isascii():
                    alone = acceptor.allows(token)
                    require(
                        acceptor.gave_up or alone == is_allowed, f"{token!r}: alone {alone}, in the mask not"
                    )

    def forget(self) -> None:
        """Let go of what was found out for the next texts."""
        for each in self._tables.values():
            each.forget()

    def matcher(self, text: bytes, random: Random) -> None:
        """The same of a completion at some place of the text."""
        document, offset = self._place(text, random)
        matcher = self.timed("matcher_at", matcher_at, document, offset, self.language)
        if isinstance(matcher, OutOfReach):
            self.n["out of reach"] += 1
            return
        self.n["matchers"] += 1
        after = document[offset:].encode(errors="replace")
        probes = [self.texts_piece(random, after) for _ in range(2)]
        seen = [self._matcher_state(matcher, probes)]
        for _ in range(random.randint(1, MAX_OPERATIONS // 2)):
            if matcher.gave_up:
                self.n["gave up"] += 1
                return
            operation = random.choice(["accept", "accept", "rollback", "end", "forced"])
            if operation == "accept":
                piece = after[:4] if random.random() < 0.5 else self.texts_piece(random, after)
                is_allowed = self.timed("Matcher.allows", matcher.allows, piece)
                is_accepted = self.timed("Matcher.accept", matcher.accept, piece)
                require(matcher.gave_up or is_allowed == is_accepted, f"{piece!r}: allows is not accept")
                after = after[len(piece) :] if is_accepted and after.startswith(piece) else after
                if is_accepted:
                    seen.append(self._matcher_state(matcher, probes))
            elif operation == "rollback":
                n = random.randint(0, len(seen))
                matcher.rollback(n)
                seen = seen[: max(1, len(seen) - n)]
            elif operation == "end":
                self.timed("may_end", matcher.may_end, random.choice(probes))
            else:
                self._forced(matcher)
            is_as_it_was = self._matcher_state(matcher, probes) == seen[-1]
            require(matcher.gave_up or is_as_it_was, f"after {operation} it is not as it was")

    def _matcher_state(self, matcher: Matcher, probes: list[bytes]) -> tuple[object, ...]:
        return (
            tuple(self.timed("Matcher.allows", matcher.allows, probe) for probe in probes),
            self.timed("can_stop", matcher.can_stop),
        )

    def _forced(self, matcher: Matcher) -> None:
        forced = self.timed("forced", matcher.forced, 2)
        for n in range(len(forced)):
            require(
                matcher.gave_up or matcher.allows(forced[: n + 1]), f"{forced!r} is forced and not allowed"
            )

    def skeleton(self, text: bytes, random: Random) -> None:
        """That of some place of the text."""
        document, offset = self._place(text, random)
        found = self.timed("skeleton_at", skeleton.skeleton_at, document, offset, self.language)
        n_bytes = sum(
            len(reading)
            for readings in (*found.scopes, found.statements, found.lines, found.rests)
            for reading in readings
        )
        require(n_bytes <= MAX_SKELETON_BYTES + 10 * len(text), f"a skeleton of {n_bytes} bytes")
        self.timed("body_for", found.body_for, text[:40])

    def parsed(self, text: bytes, random: Random) -> None:
        """As the last word on a suggestion has it parsed, within its time."""
        document, offset = self._place(text[:MAX_PARSED_BYTES], random)
        baseline = self.timed("Baseline.of", Baseline.of, document, offset, self.language, "fuzz")
        if isinstance(baseline, Baseline):
            self.n["parsed"] += 1
            piece = self.texts_piece(random, text).decode(errors="replace")
            self.timed("verdict", baseline.verdict, offset, offset, piece)

    def texts_piece(self, random: Random, text: bytes) -> bytes:
        """A few bytes of the text, or of another."""
        if text and random.random() < 0.4:
            at = random.randrange(len(text))
            return text[at : at + random.choice([1, 2, 5, 20])]
        words = self.texts.words
        return random.choice([b"", b" ", b"\n", b"x", b"(", b")", b"1", b"'", random.choice(words)])

    def _place(self, text: bytes, random: Random) -> tuple[str, int]:
        """A document and a place in it; half an emoji is in some."""
        document = text.decode(errors=random.choice(["replace", "surrogateescape", "ignore"]))
        return document, random.choice([0, len(document), random.randint(0, len(document))])

    def _has_fault(self, text: bytes, grammar: Grammar) -> bool | None:
        """What tree-sitter says; None of what it is not asked."""
        try:
            code = text.decode()
        except UnicodeDecodeError:
            return None
        if len(text) > MAX_PARSED_BYTES or hazard(code, grammar):
            return None
        return tree_sitter.Parser(load(grammar).language).parse(text).root_node.has_error

    def acceptor(self, grammar: Grammar, has_policy: bool) -> _kernels.Acceptor:
        """A fresh one; without the policy it reads as tree-sitter does."""
        return _kernels.Acceptor(self._tables[grammar.name, has_policy])

    def timed(self, name: str, call: Callable[..., R], *args: object) -> R:
        """What the call says; it must not take long, and the slowest are remembered."""
        began = time.thread_time()  # whatever else the machine does meanwhile
        answer = call(*args)
        seconds = time.thread_time() - began
        self.n["calls"] += 1
        if len(self.slowest) < N_SLOWEST or seconds > self.slowest[-1][0]:
            others = [each for each in self.slowest if each[1] != name or each[0] > seconds]
            if all(each[1] != name for each in others):
                others.append((seconds, name, self._case))
            self.slowest = sorted(others, key=lambda each: -each[0])[:N_SLOWEST]
        require(seconds <= MAX_CALL_S * self.slowness, f"{name} took {seconds:.1f} s")
        return answer


def require(holds: object, what: str) -> None:
    """Raises `Wrong` where it does not."""
    if not holds:
        raise Wrong(what)
