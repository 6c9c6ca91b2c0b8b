"""Grammars and languages: what a language is, as data. `languages` is the front door."""
