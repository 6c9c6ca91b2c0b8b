"""Where a model's files come from: a hub's repository, data wheels, a path on this machine.

Each source puts files into a folder and says nothing about what they mean; sizes and hashes of named models
are checked by the store. A source that cannot be had raises `SourceUnavailable`, and the store asks the next.
"""


class SourceUnavailable(Exception):
    """A source cannot be had now; the text says why, in words that fit into a longer sentence."""
