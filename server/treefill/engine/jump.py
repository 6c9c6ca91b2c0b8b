"""Tokens that the guard alone decides: what must come next is written without asking the model.

The bytes are certain, but not how the model would cut them into tokens: `import` may be one token or two, and what
follows may be merged into the last one. So only those tokens are taken that the tokenizer makes of the bytes whatever
comes after them, where the text before them is cut as it would cut it, too (jump-forward decoding as SGLang and
llguidance have it; their tail of tokens that are held back is measured here instead of being of one length).
"""

from itertools import takewhile

from treefill.engine.api import TokenId, Vocabulary

ENDINGS = ("", " ", "\n", "a", "A", "_", "1", "(", ".", '"', "é")
"""What may come after: a token that is the same before all of them is taken for certain."""


def certain_tokens(vocabulary: Vocabulary, last: TokenId, forced: bytes) -> list[TokenId]:
    """The tokens of `forced` after the token `last`, as far as they do not depend on what follows."""
    try:
        text = (vocabulary.token_bytes(last) + forced).decode()
    except UnicodeDecodeError:
        return []
    readings = [vocabulary.encode(text + ending) for ending in ENDINGS]
    alike = takewhile(lambda tokens: len(set(tokens)) == 1, zip(*readings, strict=False))
    shared = [tokens[0] for tokens in alike]
    if not shared or shared[0] != last:
        return []
    n_bytes = len(vocabulary.token_bytes(last)) + len(forced)
    tokens: list[TokenId] = []
    for token in shared[1:]:
        n_bytes -= len(vocabulary.token_bytes(token))
        if n_bytes < len(vocabulary.token_bytes(last)):
            break
        tokens.append(token)
    return tokens
