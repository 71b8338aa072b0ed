"""Paths of resources: one spelling each, safe on every file system, and unique by a folded key.

A path is a name in a namespace, never joined to a directory by these rules. It still has to
survive an export to any file system and a reader's eye, hence the Windows rules and the refusal
of characters that cannot be seen.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Never, TypeVar

from shared_schema import limits
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import is_id, is_resource_id

_FORBIDDEN: Final = frozenset('\\<>:"|?*')
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[1-9¹²³]|lpt[1-9¹²³]) *\Z", re.IGNORECASE)
"""Stems that Windows keeps for devices; it reads the superscript digits as digits."""
_VISIBLE_FORMAT: Final = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""The format characters that have a glyph (Unicode's Prepended_Concatenation_Mark)."""
_BLANK_LETTERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Letters and marks without a glyph: Hangul fillers, the grapheme joiner, Khmer inherent vowels."""
_SHOWN_CHARACTERS: Final = 200

_V = TypeVar("_V")


def normalise_path(raw: str) -> str:
    """Check a path against every rule and return it in NFC, the form that is stored and shown.

    Raises ``invalid_path``; its details are ``path`` (printable, cut at 200 characters) and
    ``rule``, one of ``empty``, ``too_long``, ``segment_empty``, ``segment_dot``,
    ``segment_whitespace``, ``segment_trailing_dot``, ``segment_device``, ``segment_too_long``,
    ``character_surrogate``, ``character_control``, ``character_invisible``,
    ``character_forbidden`` and ``id_like``.
    """
    if not raw:
        _refuse(raw, "empty", "it is empty")
    # No path of 512 bytes has more than 768 code points in any normal form.
    if len(raw) > limits.IDENTIFIER_CHARACTERS:
        _refuse(raw, "too_long", f"it is longer than {limits.PATH_BYTES} bytes")
    # Composing first: "<" and a combining stroke are one harmless letter, and the Greek question
    # mark is a semicolon, so only the composed form shows what the path is made of.
    path = unicodedata.normalize("NFC", raw)
    for character in path:
        _check_character(raw, character)
    if len(path.encode()) > limits.PATH_BYTES:
        _refuse(raw, "too_long", f"it is longer than {limits.PATH_BYTES} bytes")
    for segment in path.split("/"):
        _check_segment(raw, segment)
    if is_resource_id(path) or is_id(path, "drf"):
        _refuse(raw, "id_like", "it reads like an id, and ids and paths are accepted in the same place")
    return path


def allowed_character(character: str) -> bool:
    """Tell whether a path may hold this character; ``/`` separates its segments."""
    try:
        _check_character(character, character)
    except InterleafError:
        return False
    return True


def path_key(path: str) -> str:
    """Return the form by which paths are compared: case-folded, in NFC.

    Equal for spellings that differ by case or normalisation only (canonical caseless matching of
    the Unicode Standard, section 3.13). Folding works on the decomposed form, because some
    combining marks fold to letters, and its result is composed again, because folding undoes
    compositions. A key is its own key.
    """
    decomposed = unicodedata.normalize("NFD", path)
    folded = unicodedata.normalize("NFD", decomposed.casefold()).casefold()
    return unicodedata.normalize("NFC", folded)


def ancestors(path: str) -> list[str]:
    """Return the paths above ``path``, outermost first: ``a/b/c`` has ``a`` and ``a/b``."""
    return [path[:index] for index, character in enumerate(path) if character == "/"]


def find_clash(path: str, taken: Mapping[str, str], own_id: str | None = None) -> str | None:
    """Return the id of a resource that keeps ``path`` from being used, or None.

    ``taken`` maps path keys to resource ids. A clash is an equal key, an ancestor or a
    descendant of another resource than ``own_id``. It reads all of ``taken`` to find descendants;
    for repeated questions build a `PathSet`.
    """
    key = path_key(path)
    for candidate in (key, *ancestors(key)):
        if (owner := taken.get(candidate)) is not None and owner != own_id:
            return owner
    below = f"{key}/"
    return next(
        (owner for other, owner in taken.items() if other.startswith(below) and owner != own_id), None
    )


class PathSet:
    """Paths with the resources that hold them, asked for clashes in time proportional to depth.

    Built once from ``(path, resource id)`` pairs and kept by `add` and `remove`. It can hold
    clashing paths itself, as a state does in which somebody else published first.
    """

    def __init__(self, items: Iterable[tuple[str, str]] = ()) -> None:
        # Inner dictionaries are ordered sets: the first holder is named, whatever the hash seed.
        self._at: dict[str, dict[str, None]] = {}
        self._below: dict[str, dict[tuple[str, str], None]] = {}
        for path, resource_id in items:
            self.add(path, resource_id)

    def add(self, path: str, resource_id: str) -> None:
        """Note that the resource holds the path; doing so twice is the same as once."""
        key = path_key(path)
        self._at.setdefault(key, {})[resource_id] = None
        for ancestor in ancestors(key):
            self._below.setdefault(ancestor, {})[key, resource_id] = None

    def remove(self, path: str, resource_id: str) -> None:
        """Forget that the resource holds the path; unknown pairs are ignored."""
        key = path_key(path)
        _drop(self._at, key, resource_id)
        for ancestor in ancestors(key):
            _drop(self._below, ancestor, (key, resource_id))

    def find_clash(self, path: str, own_id: str | None = None) -> str | None:
        """Return the id of another resource at, above or below ``path``, or None."""
        return next((holder for holder in self.holders(path) if holder != own_id), None)

    def holders(self, path: str) -> Iterator[str]:
        """Yield the id of every resource at, above or below ``path``; one may come repeatedly."""
        return self._around(path_key(path))

    def _around(self, key: str) -> Iterator[str]:
        for candidate in (key, *ancestors(key)):
            yield from self._at.get(candidate, ())
        for _, resource_id in self._below.get(key, ()):
            yield resource_id


def _drop(table: dict[str, dict[_V, None]], key: str, value: _V) -> None:
    if (entries := table.get(key)) is not None:
        entries.pop(value, None)
        if not entries:
            del table[key]


def _check_character(raw: str, character: str) -> None:
    category = unicodedata.category(character)
    name = f"U+{ord(character):04X}"
    if category == "Cs":
        _refuse(raw, "character_surrogate", f"it holds half a character ({name})")
    if category in {"Cc", "Zl", "Zp"}:
        _refuse(raw, "character_control", f"it holds the control character {name}")
    if character in _BLANK_LETTERS or (category == "Cf" and character not in _VISIBLE_FORMAT):
        _refuse(raw, "character_invisible", f"it holds the invisible or direction-changing character {name}")
    if character in _FORBIDDEN:
        _refuse(raw, "character_forbidden", f"it holds {character}, which some file systems refuse")


def _check_segment(raw: str, segment: str) -> None:
    if not segment:
        _refuse(raw, "segment_empty", "it starts or ends with / or holds //; it has to be relative")
    if segment in {".", ".."}:
        _refuse(raw, "segment_dot", "a segment is . or ..")
    if segment != segment.strip():
        _refuse(raw, "segment_whitespace", "a segment starts or ends with white space")
    if segment.endswith("."):
        _refuse(raw, "segment_trailing_dot", "a segment ends in a dot")
    if _DEVICE.match(segment.partition(".")[0]):
        _refuse(raw, "segment_device", "a segment is the name of a Windows device")
    if len(segment.encode()) > limits.SEGMENT_BYTES:
        _refuse(raw, "segment_too_long", f"a segment is longer than {limits.SEGMENT_BYTES} bytes")


def _refuse(raw: str, rule: str, why: str) -> Never:
    # repr() escapes what cannot be printed, so the details are safe in JSON and on a terminal.
    shown = repr(raw[:_SHOWN_CHARACTERS])[1:-1]
    raise InterleafError(
        ErrorCode.INVALID_PATH,
        f"This path cannot be used: {why}. Use a relative path such as guides/release.md.",
        details={"path": shown, "rule": rule},
    )
