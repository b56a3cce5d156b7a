"""A cache of translations, so that a text that was translated before is answered at once."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

from dragoman.decode import Course
from dragoman.tasks.results import Translation

LONGEST = 1000
"""Maximum characters of a text whose translation is cached; bounds the memory of each entry."""


class TranslationCache:
    """The translations of one loaded model that were requested most recently."""

    def __init__(self, most: int, on_hit: Callable[[], None]) -> None:
        """Keep up to `most` translations; `on_hit` is called for each hit."""
        self._most, self._on_hit = most, on_hit
        self._kept = OrderedDict[Hashable, Translation]()
        self._lock = Lock()  # courses run in several threads

    def through(
        self, text: str, key: Hashable, course: Course[Any, Any, Translation]
    ) -> Course[Any, Any, Translation]:
        """Return a course that looks a text up, or translates it and caches the result.

        `key` contains everything else that affects the translation of the text by this model.
        """
        if self._most == 0 or len(text) > LONGEST:
            return (yield from course)
        key = text, key
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
        if known is not None:
            self._on_hit()
            return known
        found = yield from course
        with self._lock:
            self._kept[key] = found
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found
