"""Rules that hold for what is suggested, on top of the grammar: which names, calls, statements and strings, how what is
told of code begins, a new file's header, and SQL that only reads.

They come from TOML (`read.py`), are kept while a completion is written as well as can be told then (`guard.py`), and
judged at last by a parse of the whole (`judge.py`): what can't be told then is refused. Neither models nor editors are
known here. Nothing heavy is loaded before there is a rule.
"""

from treefill.syntax.rules.form import NO_RULES, Breach, Rule, Rules

__all__ = ["NO_RULES", "Breach", "Rule", "Rules"]
