"""Grammars and languages; `languages` reads what a language is, as data."""
