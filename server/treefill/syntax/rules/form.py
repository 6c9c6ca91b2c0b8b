"""What a rule is, and what is against one."""

from collections.abc import Iterator
from dataclasses import dataclass

from treefill.syntax.languages import Language
from treefill.syntax.rules.patterns import Pattern, Patterns

PROSE = frozenset(
    {"plaintext", "text", "restructuredtext", "asciidoc", "git-commit", "gitcommit", "scminput", "log"}
)
"""What editors call texts that are no code: only rules that name them are for them."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, as it is written in a file. What is None or empty says nothing."""

    name: str
    because: str = ""
    """What the user is told beside the name."""
    languages: tuple[str, ...] = ()
    """Their ids; all of them where there are none."""
    names: Patterns | None = None
    """Identifiers."""
    calls: Patterns | None = None
    """What is called, as it is written but for white space: `os.system`."""
    strings: Patterns | None = None
    """What is between the quotes of a string, as it is written."""
    kinds: tuple[str, ...] = ()
    """Kinds of nodes of the language's grammar that may not come: `global_statement`, or the word `global` itself."""
    docs: tuple[Pattern, ...] = ()
    """One of them is how a docstring, or a comment that documents, begins."""
    header: tuple[Pattern, ...] = ()
    """The first lines of a new file, one after the other."""
    is_read_only: bool = False
    """SQL may only read."""
    file: str = ""
    """Where it is written."""

    def is_for(self, language: Language) -> bool:
        """Whether it holds in that language."""
        if self.languages:
            return language.id in self.languages
        return not language.fences and language.id not in PROSE

    def breach(self, what: str, at: int = 0) -> "Breach":
        """What is told where something is against it, which begins `at` so many characters of what was put in."""
        return Breach(self.name, what, self.because, max(0, at))


@dataclass(frozen=True, slots=True)
class Rules:
    """All that hold for a request."""

    each: tuple[Rule, ...] = ()
    note: str = ""
    """Which file was not read and why, as one sentence; empty where each was."""

    def in_language(self, language: Language) -> tuple[Rule, ...]:
        """Those that hold there."""
        return tuple(rule for rule in self.each if rule.is_for(language))

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.each)


NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Breach:
    """Something that a rule is against."""

    rule: str
    what: str
    """As in: the rule is against WHAT."""
    because: str = ""
    at: int = 0
    """Where in what was put in it begins, in characters: no part of the text that is longer is any better."""

    @property
    def sentence(self) -> str:
        """What the user reads."""
        return f"T{self.told[1:]}."

    @property
    def told(self) -> str:
        """The same as a part of another sentence."""
        because = f": {self.because.rstrip('.')}" if self.because else ""
        return f"the rule “{self.rule}” is against {self.what}{because}"


class CannotTell(Exception):
    """A rule can't be judged; the text says why, to come after "because"."""
