"""Masks that were made before: found again by all that they depend on, and believed when they have proved right.

The kernel keeps them (`kernels/syntax/mask_dictionary.h`). Here is what goes on beside it: which file an earlier
process left them in, the thread that makes what is missing while the model computes, and the trust. A dictionary
answers nothing until its first masks were compared with ones that were made without it; afterwards one hit in a hundred
is, beside the way of a request. What is wrong is dropped; where that happens several times in a row the dictionary is
left alone, and tokens are asked about one by one as if there were none.

A new one is not empty for long: while nothing else is to be done, the thread reads the language's preset, code of the
commonest kind (`presets.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import xxhash
from numpy.typing import NDArray

from treefill import __version__, _kernels
from treefill.syntax.grammars import LoadedGrammar
from treefill.syntax.lexers import LEXERS, library_digest
from treefill.syntax.matcher import tables
from treefill.syntax.once import once
from treefill.syntax.presets import places_in, preset_of, words_of
from treefill.syntax.vocabulary import MaskVocabulary, to_bools

log = logging.getLogger(__name__)

Words = NDArray[np.uint32]

MAX_BYTES = 16 << 20
"""Of one language's masks and keys in memory."""
MAX_FILE_BYTES = 64 << 20
"""Of one language's file."""
FORMAT = 1
"""Of keys and masks: another one whenever walk, scanner models or keys change what they say."""
KEPT_S = 60 * 86_400.0
"""Files that nobody has written for so long go."""
MAX_COMPARED = 10_000
"""Masks that are remembered as compared."""
N_TRIALS = 100
"""So many masks are compared before the dictionary is believed,"""
N_PLACES = 20
"""and so many different ones among them."""
SHARE_RECHECKED = 0.01
"""Of the hits, compared once more."""
N_WRONG = 3
"""So many wrong ones in a row, and the dictionary is left alone."""
MAX_WAITING = 16
"""Places that the background is to look at; the newest come first, the oldest are forgotten."""
N_ASKED_ALONE = 128
"""Tokens of a mask that the acceptor is asked about one by one when it is compared."""
NICE = 10
"""How far the background stands back for the model."""
QUIET_S = 0.2
"""What has time begins when nothing was wanted for so long,"""
REST = 3.0
"""and the thread rests so many times as long as it has worked on it."""
SLICE_S = 0.005
"""Of such work, done at once."""
MAX_PRESET_S = 15.0
"""Of the processor, for one grammar's preset."""


@dataclass(frozen=True, slots=True)
class Trust:
    """Whether masks are believed, by how they have fared.

    >>> Trust().noted(True).n_right
    1
    >>> Trust(n_right=100, n_wrong_in_row=2).noted(False).is_lost
    True
    """

    n_right: int = 0
    n_places: int = 0
    """Different masks among them."""
    n_wrong: int = 0
    n_wrong_in_row: int = 0
    is_lost: bool = False

    @property
    def is_given(self) -> bool:
        """True where the dictionary may answer."""
        return self.n_right >= N_TRIALS and self.n_places >= N_PLACES and not self.is_lost

    def noted(self, is_right: bool, is_new: bool = True) -> Trust:
        """After one more mask was compared, which was never compared before where `is_new`."""
        in_row = 0 if is_right else self.n_wrong_in_row + 1
        return Trust(
            self.n_right + is_right,
            self.n_places + (is_right and is_new),
            self.n_wrong + (not is_right),
            in_row,
            self.is_lost or in_row >= N_WRONG,
        )


class Background:
    """One thread that works off what is wanted, the newest first; what waits too long is forgotten.

    What has time is done when nothing else is, a step now and then.
    """

    def __init__(self, max_waiting: int = MAX_WAITING, quiet_s: float = QUIET_S, rest: float = REST) -> None:
        self._waiting: deque[Callable[[], None]] = deque(maxlen=max_waiting)
        self._with_time: deque[Iterator[None]] = deque()
        self._quiet_s, self._rest = quiet_s, rest
        self._next_step_s = 0.0  # on the monotonic clock
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_busy = False
        self._is_stepping = False
        self._is_stopping = False
        self._is_closed = False

    def want(self, work: Callable[[], None]) -> None:
        """Have it done some time."""
        with self._changed:
            if not self._is_closed:
                self._waiting.append(work)
                self._begin()

    def when_quiet(self, work: Iterator[None]) -> None:
        """Have it done step by step while nothing is wanted; each step should take some milliseconds."""
        with self._changed:
            if not self._is_closed:
                self._with_time.append(work)
                self._begin()

    def stop(self) -> None:
        """Finish what is being done and forget what is wanted. Once something is wanted again, it goes on, also with
        what has time.
        """
        with self._changed:
            self._is_stopping = True
            self._waiting.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()
        with self._changed:
            if self._thread is thread:
                self._thread, self._is_stopping = None, False
                atexit.unregister(self._close)
                if self._waiting:  # wanted meanwhile
                    self._begin()

    def _close(self) -> None:
        """Stop for good: native code does not outlive its interpreter well."""
        with self._changed:
            self._is_closed = True
        self.stop()

    def wait(self, seconds: float, is_all: bool = False) -> bool:
        """Until nothing that was wanted is left to do, nor what has time where `is_all`; False where that takes
        longer.
        """
        with self._changed:
            return self._changed.wait_for(
                lambda: (
                    not self._waiting
                    and not self._is_busy
                    and not (is_all and (self._with_time or self._is_stepping))
                ),
                seconds,
            )

    def _begin(self) -> None:
        """Under the lock, after there is more to do."""
        self._next_step_s = max(self._next_step_s, time.monotonic() + self._quiet_s)
        if self._thread is None:
            atexit.register(self._close)
            self._thread = threading.Thread(target=self._run, name="treefill-masks", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        if sys.platform == "linux":  # elsewhere a thread has no priority of its own
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while (work := self._next()) is not None:
            try:
                work()
            except Exception as error:  # nobody waits for it, and nothing hangs on it
                log.warning("A mask could not be made in the background (%s).", type(error).__name__)

    def _next(self) -> Callable[[], None] | None:
        """What is to be done now, once there is something; None when it is to stop."""
        with self._changed:
            self._is_busy = self._is_stepping = False
            self._changed.notify_all()
            while not self._is_stopping:
                if self._waiting:
                    self._is_busy = True
                    return self._waiting.pop()
                rest_s = self._next_step_s - time.monotonic() if self._with_time else None
                if rest_s is not None and rest_s <= 0:
                    self._is_stepping = True
                    work = self._with_time.popleft()
                    return lambda: self._step(work)
                self._changed.wait(rest_s)
            return None

    def _step(self, work: Iterator[None]) -> None:
        start_s = time.thread_time()
        try:
            next(work)
        except StopIteration:
            return
        with self._changed:
            self._with_time.append(work)  # several take turns
            rest_s = self._rest * (time.thread_time() - start_s)
            self._next_step_s = max(self._next_step_s, time.monotonic() + rest_s)


class MaskDictionary:
    """One grammar's masks for one vocabulary. Any thread may use it."""

    def __init__(
        self,
        loaded: LoadedGrammar,
        vocabulary: MaskVocabulary,
        background: Background,
        folder: Path | None = None,
        max_bytes: int = MAX_BYTES,
        random: Random | None = None,
    ) -> None:
        """`folder` is where masks are kept from one process to the next; nowhere where it is None.

        Raises `GrammarError` where the grammar cannot read the vocabulary.
        """
        self._grammar = tables(loaded)
        self._vocabulary = vocabulary
        self._background = background
        self._random = random or Random()
        self._lock = threading.Lock()
        self._trust = Trust()
        self._follower: _Follower | None = None
        self._compared: set[bytes] = set()
        environment = environment_of(loaded, vocabulary)
        self._kernel = _kernels.MaskDictionary(environment, max_bytes, vocabulary.n_words)
        is_kept = folder is not None and bool(library_digest(loaded))
        self._file = kept_at(folder, loaded, environment) if folder is not None and is_kept else None
        self._read_file()

    def known(
        self, acceptor: _kernels.Acceptor, text: Callable[[], bytes], is_again: bool = False
    ) -> Words | None:
        """The mask `[n_words]` of where the acceptor is, which has read `text`; None where it is not known.

        It never makes one: what is missing is made in the background, as is what there is to compare, unless that was
        begun already because it `is_again` asked in one place.
        """
        trust = self._trust
        if trust.is_lost:
            return None
        words = np.empty(self._vocabulary.n_words, np.uint32)
        spelled = self._vocabulary.for_grammar(self._grammar)
        outcome = acceptor.fill_mask(spelled, words, self._kernel, is_walked=False)
        is_found = outcome == _kernels.MaskOutcome.DECIDED
        if outcome == _kernels.MaskOutcome.GAVE_UP:
            return None
        is_to_learn = not is_found or not trust.is_given or self._random.random() < SHARE_RECHECKED
        if is_to_learn and not is_again:
            read = text()
            self._background.want(lambda: self._learn(read))
        return words if is_found and trust.is_given else None

    def fill(self, acceptor: _kernels.Acceptor) -> Words:
        """The mask `[n_words]` of where the acceptor is, made where it is not known or not believed; it is kept."""
        words = np.empty(self._vocabulary.n_words, np.uint32)
        spelled = self._vocabulary.for_grammar(self._grammar)
        if not self._trust.is_lost:
            acceptor.fill_mask(spelled, words, self._kernel)
        if not self._trust.is_given:
            acceptor.fill_mask(spelled, words)
        return words

    def read_preset(self, texts: Sequence[bytes]) -> Iterator[None]:
        """Make what is not known of the masks in these texts, some at each step, and keep them for the next process.

        They are cut where the vocabulary's tokens end, about as a tokenizer would. What is there already counts for the
        trust. Ends early where it takes too much of the processor (`MAX_PRESET_S`).
        """
        spelled = self._vocabulary.for_grammar(self._grammar)
        yield
        known: set[bytes] = set()
        for some in words_of(self._vocabulary.spelled):
            known |= some
            yield
        n_before, spent_s, start_s = self._kernel.counts["n_new"], 0.0, time.thread_time()
        words = np.empty(self._vocabulary.n_words, np.uint32)
        for acceptor in places_in(self._grammar, texts, known):
            if self._trust.is_given:
                acceptor.fill_mask(spelled, words, self._kernel)
            else:
                with self._lock:
                    self._compare_at(acceptor)
            took_s = time.thread_time() - start_s
            if spent_s + took_s >= MAX_PRESET_S or self._trust.is_lost:
                break
            if took_s >= SLICE_S:
                spent_s += took_s
                yield
                start_s = time.thread_time()
        if self._kernel.counts["n_new"] > n_before:
            self.save()

    def compare(self, text: bytes) -> bool:
        """Whether the mask after `text` is what it is without the dictionary; what is wrong is dropped, and told.

        What is missing is made. Trust is earned by what was there.
        """
        with self._lock:
            return self._compare_at(self._at(text))

    def _compare_at(self, acceptor: _kernels.Acceptor) -> bool:
        """The same where the acceptor is; under the lock."""
        spelled = self._vocabulary.for_grammar(self._grammar)
        known, made = (np.empty(self._vocabulary.n_words, np.uint32) for _ in range(2))
        outcome = acceptor.fill_mask(spelled, known, self._kernel, is_walked=False)
        if outcome == _kernels.MaskOutcome.UNKNOWN:
            acceptor.fill_mask(spelled, known, self._kernel)
        if outcome != _kernels.MaskOutcome.DECIDED:
            return True
        keys = acceptor.mask_keys
        if acceptor.fill_mask(spelled, made) != _kernels.MaskOutcome.DECIDED:
            return True
        is_right = np.array_equal(known, made) and self._is_right_alone(acceptor, made)
        place = self._place(keys)
        self._trust = self._trust.noted(is_right, place not in self._compared)
        if len(self._compared) < MAX_COMPARED:
            self._compared.add(place)
        if not is_right:
            for key in keys:
                self._kernel.evict(key)
            self._remove_file()
            names = ", ".join(self._kernel.hash(key).hex() for key in keys)
            log.warning("A mask was wrong and is dropped (%s).", names)
            if self._trust.is_lost:
                log.warning("Masks are no longer looked up: %d in a row were wrong.", N_WRONG)
        return is_right

    def save(self) -> None:
        """Keep what there is for the next process. Of what a user wrote nothing is in it."""
        if self._file is None or not self._trust.is_given:
            return
        data = self._kernel.dump(MAX_FILE_BYTES)
        new = None
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                dir=self._file.parent, prefix=self._file.name, delete=False
            ) as new:
                new.write(data)
            os.replace(new.name, self._file)
        except OSError as error:
            log.warning(
                "Masks are not kept for the next start: %s cannot be written (%s). Make room there, or remove it.",
                self._file,
                error.strerror,
            )
            if new is not None:
                Path(new.name).unlink(missing_ok=True)
            return
        _remove_old(self._file.parent)

    def shrink(self) -> None:
        """Give back what memory is there for making masks quickly; the masks are kept."""
        with self._lock:
            self._follower = None
        self._grammar.forget()

    @property
    def vocabulary(self) -> MaskVocabulary:
        """The one that its masks are of."""
        return self._vocabulary

    @property
    def trust(self) -> Trust:
        """How its masks have fared."""
        return self._trust

    @property
    def counts(self) -> Mapping[str, int]:
        """What was found where, and how much is kept."""
        return self._kernel.counts

    @property
    def hashes(self) -> list[bytes]:
        """Of the keys in memory, 16 bytes each."""
        return self._kernel.hashes

    def _read_file(self) -> None:
        if self._file is None or not is_there(self._file):
            return
        try:
            self._kernel.open_file(str(self._file))
        except (RuntimeError, TypeError) as error:  # a name that is no UTF-8 is none for the kernel
            log.info("The masks in %s are not used: %s.", self._file, error)

    def _remove_file(self) -> None:
        """What gives wrong masks is not to do so in the next process, too."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink(missing_ok=True)

    def _learn(self, text: bytes) -> None:
        if not self._trust.is_lost:
            self.compare(text)

    def _place(self, keys: Sequence[bytes]) -> bytes:
        """The keys' hashes, as one."""
        return b"".join(self._kernel.hash(key) for key in keys)

    def _is_right_alone(self, acceptor: _kernels.Acceptor, words: Words) -> bool:
        """Whether the acceptor says the same of some of the tokens when asked about each alone."""
        allowed = to_bools(words, len(self._vocabulary.spelled))
        some = (self._random.randrange(len(allowed)) for _ in range(N_ASKED_ALONE))
        return all(
            acceptor.allows(self._vocabulary.spelled[token]) == allowed[token] or bool(acceptor.gave_up)
            for token in some
            # Characters of one class are one to a mask; a scanner that remembers them may tell them apart.
            if self._vocabulary.spelled[token] and self._vocabulary.spelled[token].isascii()
        )

    def _at(self, text: bytes) -> _kernels.Acceptor:
        """An acceptor that has read `text`."""
        if self._follower is None:
            self._follower = _Follower(self._grammar)
        return self._follower.at(text)


BACKGROUND = Background()
"""What all dictionaries of this process have done beside the way of a request."""
_KNOWN: list[MaskDictionary] = []


def dictionary_for(loaded: LoadedGrammar, vocabulary: MaskVocabulary) -> MaskDictionary:
    """The process's own for a grammar and a vocabulary, kept where its lexers are. Raises `GrammarError`.

    Where it is kept the grammar's preset is read when there is time: a process that keeps nothing has no use for it.
    """
    return _dictionary_for((loaded, vocabulary))


@once
def _dictionary_for(key: tuple[LoadedGrammar, MaskVocabulary]) -> MaskDictionary:
    loaded, vocabulary = key
    made = MaskDictionary(loaded, vocabulary, BACKGROUND, LEXERS.folder)
    _KNOWN.append(made)
    if LEXERS.folder and (texts := preset_of(loaded.grammar)):
        BACKGROUND.when_quiet(made.read_preset(texts))
    return made


def put_dictionaries_away() -> None:
    """Keep what all of them have for the next process, and give back what making masks takes."""
    for each in list(_KNOWN):
        each.save()
        each.shrink()


def is_there(file: Path) -> bool:
    """Whether a file can be looked at; where it cannot, masks are made anew."""
    try:
        return file.exists()
    except OSError:
        return False


def _remove_old(folder: Path) -> None:
    """What nobody has written for long, and what an end in the middle of writing has left."""
    for older in folder.glob("*.masks*"):
        with contextlib.suppress(OSError):  # somebody else's, or no file
            if older.lstat().st_mtime < time.time() - KEPT_S:
                older.unlink()


class _Follower:
    """An acceptor of the background's own, which goes on from one text to the next where that begins with it."""

    def __init__(self, grammar: _kernels.Grammar) -> None:
        self._grammar = grammar
        self._acceptor = _kernels.Acceptor(grammar)
        self._read = b""

    def at(self, text: bytes) -> _kernels.Acceptor:
        if not text.startswith(self._read):
            self._acceptor, self._read = _kernels.Acceptor(self._grammar), b""
        if len(text) > len(self._read):
            self._acceptor.accept(text[len(self._read) :])
        self._read = text
        return self._acceptor


def kept_at(folder: Path, loaded: LoadedGrammar, environment: bytes) -> Path:
    """The file that masks of such an environment are kept in."""
    return folder / f"{loaded.name}-{environment.hex()}.masks"


def environment_of(loaded: LoadedGrammar, vocabulary: MaskVocabulary) -> bytes:
    """What masks belong to besides their keys, as 16 bytes: engine, grammar, its policies and model, vocabulary."""
    digest = xxhash.xxh3_128()
    for part in (__version__, str(FORMAT), loaded.name, library_digest(loaded), repr(loaded.grammar)):
        digest.update(f"{part}\0".encode())
    digest.update(vocabulary.digest)
    return digest.digest()
