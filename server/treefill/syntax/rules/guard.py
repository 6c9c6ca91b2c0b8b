"""Rules while the model writes: a token is refused by which a text would be against one of them.

Best-effort, unlike the last word (`ruling.py`): it looks at words, and asks a tree of the lines before the cursor only
where a word is suspect. What is judged when:

- a name, a call, a string, a kind of node: when it has ended, which the token that ends it is refused for. A name that
  is forbidden may go on to become another one, as `eval` may become `evaluate`, but only where the model wants that in
  the first place: once its end was refused, so is everything else there, and the model takes back the token before;
- a name or a string that must be among what is allowed: also while it grows, as soon as it can become nothing that is;
- SQL: word by word; a header: character by character.

It makes no masks: what it says of a token takes the text before it.
"""

from __future__ import annotations

import logging
import re
from codecs import getincrementaldecoder
from time import thread_time

from treefill.errors import GrammarError
from treefill.syntax.hazards import hazard
from treefill.syntax.parse import Parsed, encoded, parse
from treefill.syntax.rules.form import Breach, CannotTell, Rule
from treefill.syntax.rules.header import header_breach, headers_at, open_header_line
from treefill.syntax.rules.judge import (
    LEAD_CHARS,
    Placed,
    breach_in_tree,
    breach_in_words,
    doc_inside,
    is_doc,
    quoted,
)
from treefill.syntax.rules.kinds import KindsOfNodes, kinds_in
from treefill.syntax.rules.lexemes import CLOSERS, Kind, Lexeme, calls_in, lead_start, lexemes, open_brackets
from treefill.syntax.rules.read_only import statement_start, writing
from treefill.syntax.rules.ruling import Place

log = logging.getLogger(__name__)

MAX_WORK_S = 0.5
"""So much processor time is spent on one completion; then everything may come, and is judged at last."""
MAX_SQL_CHARS = 100_000
"""So much before the cursor is looked at for the beginning of its statement."""
PARSE_LIMIT_S = 0.1
"""A tree that takes longer is not waited for."""
MAX_TOLD = 8
_PATH = re.compile(r"(?:[^\W\d][\w$]*(?:\.|::|->|\?\.))*[\w$]*\Z")
_Utf8Decoder = getincrementaldecoder("utf-8")


class RuleGuard:
    """Follows one completion. One thread at a time."""

    def __init__(self, place: Place, dialect: str | None = None) -> None:
        self._place = place
        self._dialect = dialect
        self._before = place.code[: place.offset]
        self._after = place.code[place.offset :]
        window = self._before[-LEAD_CHARS:]
        self._window = window[window.find("\n") + 1 :] if len(self._before) > LEAD_CHARS else window
        self._starts = [lead_start(self._window, place.language)]
        """Where in the window and what was written a line begins in code, from which on words are looked at: before
        anything was written, and after each piece."""
        sql = self._before[-MAX_SQL_CHARS:] if place.read_only else ""
        self._statement = sql[statement_start(sql) :]
        self._headers = headers_at(self._before, self._after, place.rules_of_headers)
        self._written: list[bytes] = []
        self._said: dict[bytes, Breach | None] = {}
        """What was said of bytes that might come next."""
        self._is_dead_end = False
        """True once the end of what is forbidden was refused here."""
        self._seconds_left = MAX_WORK_S
        self._window_parsed: Parsed | None = None
        self.refused: list[Breach] = []
        """What was refused, each once."""

    def allows(self, more: bytes) -> bool:
        """Whether `more` may come next."""
        if self._is_dead_end:
            return False
        if more not in self._said:
            self._said[more] = self._breach(more)
        return self._said[more] is None

    def accept(self, more: bytes) -> bool:
        """Take `more`; False, and nothing taken, where it may not come next."""
        if not self.allows(more):
            return False
        self._written.append(more)
        whole, start = self._window + self._text(b""), self._starts[-1]
        self._starts.append(start + lead_start(whole[start:], self._place.language))
        self._move()
        return True

    def rollback(self, n: int) -> None:
        """Take the last `n` accepted pieces back."""
        n_left = max(0, len(self._written) - n)
        del self._written[n_left:], self._starts[n_left + 1 :]
        self._move()

    def can_stop(self) -> bool:
        """Whether the text may end after what was accepted."""
        return not self._is_dead_end and self._breach(b"", is_end=True) is None

    def forced(self) -> bytes:
        """What must come next in a header."""
        if not self._headers:
            return b""
        return open_header_line(self._before, self._text(b""), self._after, self._headers)

    def without_torn(self, text: str) -> str:
        """What was written, where it could not go on: without the name or string that may not end as it would."""
        found = lexemes((self._window + self._place.code_of(text))[self._starts[-1] :], self._place.language)
        if not self.refused or not found:
            return text
        last = found[-1]
        if last.kind is Kind.STRING and not last.is_closed:
            return text[: max(0, len(text) - len(last.text))]
        torn = _PATH.search(text)
        return text[: torn.start()] if torn else text

    def _move(self) -> None:
        self._said.clear()
        self._is_dead_end = False

    def _text(self, more: bytes) -> str:
        """The code that was written, with `more`; a character that is not whole yet is left out."""
        return self._place.code_of(_Utf8Decoder(errors="replace").decode(b"".join((*self._written, more))))

    def _breach(self, more: bytes, is_end: bool = False) -> Breach | None:
        if self._seconds_left <= 0:
            return None
        began_s = thread_time()
        try:
            found = self._found(self._text(more), len(self._text(b"")), is_end)
        except Exception as error:  # the last word is still to come
            log.warning(
                "The rules could not be asked (%s).", type(error).__name__
            )  # its text may quote the user's
            self._seconds_left = 0.0
            return None
        self._seconds_left -= thread_time() - began_s
        if found is not None and found not in self.refused and len(self.refused) < MAX_TOLD:
            self.refused.append(found)
        return found

    def _found(self, text: str, n_old: int, is_end: bool) -> Breach | None:
        place = self._place
        header = header_breach(self._before, text, self._after, self._headers, is_growing=not is_end)
        if header:
            return header
        if rule := place.read_only:
            statement = self._statement + text
            written = writing(statement, len(self._statement), len(statement), is_growing=not is_end)
            if written:
                return self._ends_here(rule.breach(written.what), written.at < len(self._statement) + n_old)
        return self._found_in_words(text, n_old, is_end) if place.rules_of_trees else None

    def _found_in_words(self, text: str, n_old: int, is_end: bool) -> Breach | None:
        whole, start = self._window + text, self._starts[-1]
        found = lexemes(whole[start:], self._place.language)
        cursor, first_new = len(self._window) - start, len(self._window) + n_old - start
        is_open = bool(found) and not is_end and _may_go_on(found[-1])
        ended = found[:-1] if is_open else found
        if (
            is_open
            and found[-1].end > cursor
            and (grown := self._grows_wrong(found[-1], whole[:start], found))
        ):
            return grown
        ended_now = [each for each in ended if each.end >= first_new and each.end > cursor]
        suspects = self._suspects(ended_now, found, first_new)
        if not suspects or ended[-1].end <= cursor:
            return None
        was_begun = any(each.start < first_new and each.end > cursor for each in suspects)
        return self._ends_here(self._confirmed(text[: ended[-1].end - cursor]), was_begun)

    def _ends_here(self, found: Breach | None, was_begun: bool) -> Breach | None:
        """Where what is refused was begun by what was accepted, nothing else may come: that is to be taken back."""
        self._is_dead_end |= found is not None and was_begun and bool(self._written)
        return found

    def _grows_wrong(self, lexeme: Lexeme, above: str, found: list[Lexeme]) -> Breach | None:
        """Whether what is still open can become nothing that is allowed; `above` is what the lexemes come after."""
        text, kind = lexeme.text, lexeme.kind
        is_name = kind is Kind.WORD and not self._may_become_keyword(text)
        is_string = kind is Kind.STRING and not lexeme.is_closed
        documents = is_string and self._documents(above + "".join(each.text for each in found[:-1]))
        doc = self._doc_inside(lexeme, documents)
        for rule in self._place.rules_of_trees:
            if rule.names and is_name and not rule.names.may_begin(text):
                return rule.breach(f"a name that begins with {quoted(text)}")
            if rule.strings and is_string and not documents and not rule.strings.may_begin(lexeme.inside):
                return rule.breach(f"a string that begins with {quoted(lexeme.inside)}")
            if rule.docs and doc and not any(each.may_begin(doc) for each in rule.docs):
                return rule.breach(f"what documents code to begin with {quoted(doc)}")
        return None

    def _doc_inside(self, lexeme: Lexeme, documents: bool) -> str:
        if documents:
            return lexeme.inside.lstrip()
        is_comment = lexeme.kind is Kind.COMMENT and is_doc(lexeme.text, self._place.language)
        return doc_inside(lexeme.text) if is_comment else ""

    def _documents(self, before: str) -> bool:
        """Whether a string after that is the first statement of what it documents, as far as lines tell."""
        above, _, line = before.rpartition("\n")
        if line.strip() or not self._place.language.kinds.docstrings:
            return False
        lines = [each for each in above.split("\n") if each.strip() and not each.lstrip().startswith("#")]
        return not lines or lines[-1].rstrip().endswith(":")

    def _suspects(self, ended: list[Lexeme], found: list[Lexeme], first_new: int) -> list[Lexeme]:
        """What may be against a rule, of what has ended just now."""
        kinds, language = self._kinds, self._place.language
        keywords = kinds.keywords if kinds else frozenset()
        suspects = []
        for rule in self._place.rules_of_trees:
            words = {word for kind in rule.kinds for word in (kinds.words_of(kind) if kinds else ())}
            suspects += [
                each
                for each in ended
                if _is_suspect(rule, each, keywords)
                or (each.kind is Kind.WORD and each.text in words)
                or (rule.docs and each.kind is Kind.COMMENT and is_doc(each.text, language))
            ]
            for call in calls_in(found, language) if rule.calls else ():
                is_new = call.bracket >= first_new and call.callee not in keywords
                if is_new and rule.calls and rule.calls.refuses(call.callee):
                    suspects += [each for each in found if call.start <= each.start < call.bracket]
        return suspects

    def _confirmed(self, text: str) -> Breach | None:
        """What a tree says of the text up to there, with what closes the brackets that are open."""
        try:
            return self._by_tree(text)
        except (CannotTell, GrammarError):
            return None  # the last word is stricter

    def _by_tree(self, text: str) -> Breach | None:
        place, rules = self._place, self._place.rules_of_trees
        grammar = place.grammar(self._dialect)
        if grammar is None or hazard(self._window + text, grammar.grammar):
            return breach_in_words(self._before, text, "", place.language, rules, self._kinds)
        window, middle = encoded(self._window), encoded(text)
        deadline_s = thread_time() + PARSE_LIMIT_S
        if self._window_parsed is None:
            self._window_parsed = parse(window, grammar, None, deadline_s)
        opened = open_brackets(lexemes(self._window + text, place.language))
        closing = "".join(CLOSERS[bracket] for bracket in reversed(opened))
        parsed = parse(window + middle + encoded(closing) + b"\n", grammar, self._window_parsed, deadline_s)
        if parsed is None:
            return None
        placed = Placed(parsed, len(window), len(window) + len(middle), self._window_parsed)
        return breach_in_tree(placed, place.language, rules)

    @property
    def _kinds(self) -> KindsOfNodes | None:
        try:
            return kinds_in(self._place.language) if self._place.language.grammars else None
        except GrammarError:
            return None

    def _may_become_keyword(self, word: str) -> bool:
        return self._kinds is not None and any(keyword.startswith(word) for keyword in self._kinds.keywords)


def _may_go_on(lexeme: Lexeme) -> bool:
    """Whether the last lexeme of a text that grows may become a longer one."""
    if lexeme.kind is Kind.STRING:
        return not lexeme.is_closed or not lexeme.inside  # two quotes may be the beginning of three
    return lexeme.kind in (Kind.WORD, Kind.COMMENT) and not (lexeme.kind is Kind.COMMENT and lexeme.is_closed)


def _is_suspect(rule: Rule, lexeme: Lexeme, keywords: frozenset[str]) -> bool:
    """Whether something that has ended may be against a rule; of kinds of nodes it is asked at each line's end."""
    if lexeme.kind is Kind.WORD:
        return rule.names is not None and lexeme.text not in keywords and rule.names.refuses(lexeme.text)
    if lexeme.kind is Kind.STRING:
        return bool(rule.docs) or (rule.strings is not None and rule.strings.refuses(lexeme.inside))
    return bool(rule.kinds) and lexeme.kind is Kind.BLANK and "\n" in lexeme.text
