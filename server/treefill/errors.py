"""Every exception that treefill raises on purpose.

    TreefillError                  one clear sentence: what, where, and the remedy
    ├── BadInput                   the caller named a file, position, option or language that cannot be used
    │   ├── BadSetting             a setting has a value that it cannot have
    │   ├── BadRules               a file of rules is not what it should be
    │   └── SchemaError            a JSON Schema cannot be read or followed
    ├── ModelError                 something about a model
    │   ├── UnknownModel           no model of that name is in the manifest or the store
    │   ├── BrokenModel            a model's file is cut, altered or not what it says it is
    │   └── UnsupportedModel       a sound model that this version cannot run
    ├── StoreError                 the model store could not do its work and is as it was before
    │   ├── NoNetwork              no source of a model answered
    │   ├── NoSpace                the disk is too full
    │   ├── NoPermission           a folder or file may not be read or written
    │   ├── WrongHash              what arrived is not what the manifest names
    │   └── StoreBusy              another process holds the store's lock
    ├── GrammarError               a language's grammar is not there or cannot be used
    ├── EngineError                the model could not be run
    ├── CoreError                  the core process could not be reached or started
    ├── StatisticsError            the numbers that are kept could not be read or written
    └── PeerError                  a program that is measured beside this one could not be used, or answers otherwise

A completion never raises because there is nothing to suggest: it declines, with a reason.
`str(error)` is the sentence shown to the user; the command line prints it and exits with 2.
`library_errors` makes one of them of what a library in Rust raises.
"""

import contextlib
from collections.abc import Callable, Iterator


class TreefillError(Exception):
    """The root: its text is one clear sentence for the user."""


class BadInput(TreefillError):
    """The caller named something that cannot be used."""


class BadSetting(BadInput):
    """A setting has a value that it cannot have."""


class BadRules(BadInput):
    """A file of rules is not what it should be."""


class SchemaError(BadInput):
    """A JSON Schema cannot be read or followed."""


class ModelError(TreefillError):
    """Something about a model."""


class UnknownModel(ModelError):
    """No model of that name is in the manifest or the store."""


class BrokenModel(ModelError):
    """A model's file is cut, altered or not what it says it is."""


class UnsupportedModel(ModelError):
    """A sound model that this version cannot run."""


class StoreError(TreefillError):
    """The model store could not do its work and is as it was before."""


class NoNetwork(StoreError):
    """No source of a model answered."""


class NoSpace(StoreError):
    """The disk is too full."""


class NoPermission(StoreError):
    """A folder or file may not be read or written."""


class WrongHash(StoreError):
    """What arrived is not what the manifest names."""


class StoreBusy(StoreError):
    """Another process holds the store's lock."""


class GrammarError(TreefillError):
    """A language's grammar is not there or cannot be used."""


class EngineError(TreefillError):
    """The model could not be run."""


class CoreError(TreefillError):
    """The core process could not be reached or started."""


class StatisticsError(TreefillError):
    """The numbers that are kept could not be read or written."""


class PeerError(TreefillError):
    """A program that is measured beside this one could not be used, or answers otherwise."""


@contextlib.contextmanager
def library_errors(make: Callable[[str], TreefillError]) -> Iterator[None]:
    """Raise what `make` makes of a Rust library's words. Its panics are no `Exception`, and no class to import."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise make(str(error)[:120]) from None
