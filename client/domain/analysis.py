"""Words for BM25: one pure function for documents and for queries.

Both sides of the lexical index see exactly these terms, so nothing depends on the search engine's
own tokenizers, which keep a whole run of Han characters as one token. What is done:

* NFKC and case folding, for searching only; invisible format characters are dropped;
* identifiers give the whole run, every part, and the parts of camelCase words; digits stay with
  their letters (``k8s``, ``utf8``);
* plain ASCII words are stemmed (Snowball, English);
* Chinese, Japanese and Korean runs give overlapping bigrams, and a single character only where it
  stands alone;
* combining marks stay with their letters;
* a date gives its ISO form whatever way it is written, a number with separators its digits, and a
  version its number without ``v``, besides their parts.

Terms never hold white space, so they can be joined with spaces for a white-space tokenizer.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final

from py_rust_stemmers import SnowballStemmer  # type: ignore[attr-defined]  # ships no types

ANALYSIS_VERSION: Final = 2
"""Changes when the same text would give other terms; an index of another version is rebuilt."""

_LONGEST_TERM: Final = 128
"""Characters; a longer run (an encoded blob) is no word that anybody asks for."""

_STEMMER: Final = SnowballStemmer("english")

# Invisible characters that may stand inside a word. U+200B stays out: it separates words.
_INVISIBLE: Final = dict.fromkeys(
    [0x00AD, 0x034F, 0x061C, 0xFEFF, *range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)]
)

_CJK: Final = (
    "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af"
)


def _marks() -> str:
    """Return the combining marks as ranges of a regular expression's class."""
    ranges: list[list[int]] = []
    for point in (*range(0x300, 0x1F000), *range(0xE0100, 0xE01F0)):
        if unicodedata.category(chr(point))[0] == "M":
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1][1] = point
            else:
                ranges.append([point, point])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_MARKS: Final = _marks()
# A letter or digit of a script with spaces: \w without "_" and without CJK; then marks may follow.
_WORD: Final = rf"(?:(?![{_CJK}])[^\W_][{_MARKS}]*)+"
_RUNS: Final = re.compile(rf"(?P<cjk>(?:[{_CJK}][{_MARKS}]*)+)|(?P<run>{_WORD}(?:[._/:\\-]{{1,3}}{_WORD})*)")
_CJK_RUN: Final = re.compile(f"[{_CJK}]+")
_PART: Final = re.compile(_WORD)
_CHARACTER: Final = re.compile(rf".[{_MARKS}]*", re.DOTALL)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = (
    r"(?P<{0}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY: Final = r"(?P<{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_SPELLING: Final = re.compile(
    "|".join(
        (
            rf"\b{_DAY.format('d1')}[ ]{_MONTH.format('m1')},?[ ](?P<y1>\d{{4}})\b",
            rf"\b{_MONTH.format('m2')}[ ]{_DAY.format('d2')},?[ ](?P<y2>\d{{4}})\b",
            r"(?<!\d)(?P<y3>\d{4})[ ]?年[ ]?(?P<m3>\d{1,2})[ ]?月[ ]?(?P<d3>\d{1,2})[ ]?日",
            r"(?<![\w.,/-])(?P<y4>\d{4})[/.-](?P<m4>\d{1,2})[/.-](?P<d4>\d{1,2})(?![\w/-]|[.,]\d)",
            r"(?<![\w.,])(?P<number>\d{1,3}(?:[,_']\d{3})+)(?![\w]|[.,]\d)",
            r"\bv(?P<version>\d+(?:\.\d+)+)",
        )
    ),
    re.IGNORECASE,
)

STOP_WORDS: Final = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can cannot could d did do does doing don down during each few for from
    further get had has have having he her here hers him his how i if in into is it its itself just
    ll m me more most my no nor not now of off on once only or other our out over own please re s
    same shall she should so some such t than that the their them then there these they this those
    through to too under until up us ve very was we were what when where which while who whom why
    will with would you your
    """.split()  # noqa: SIM905 - a hundred quoted words read worse
)


def normalise(text: str) -> str:
    """Return ``text`` as it is compared in searching, case kept: NFKC, format characters dropped."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_INVISIBLE))


def _fold(text: str) -> str:
    folded = text.casefold()
    return folded if folded.isascii() else unicodedata.normalize("NFKC", folded)


@lru_cache(maxsize=65_536)
def _word_term(word: str) -> str:
    """Return the term of one folded word: stemmed when it is ASCII letters only."""
    if word.isascii() and word.isalpha():
        return sys.intern(_STEMMER.stem_word(word))
    return word


@lru_cache(maxsize=65_536)
def _run_terms(run: str, drop_stop_words: bool) -> tuple[str, ...]:
    """Return the terms of one run of words: parts, parts of camelCase, and the whole."""
    terms: list[str] = []
    parts = _PART.findall(run)
    for part in parts:
        pieces = _CAMEL.split(part) if part.isascii() else [part]
        terms.extend(
            _word_term(word)
            for word in dict.fromkeys([_fold(part), *map(_fold, pieces)])
            if len(word) <= _LONGEST_TERM and not (drop_stop_words and word in STOP_WORDS)
        )
    whole = _fold(run)
    if len(parts) > 1 and len(whole) <= _LONGEST_TERM:
        terms.append(whole)
    return tuple(terms)


def _cjk_terms(run: str) -> list[str]:
    characters = [_fold(character) for character in _CHARACTER.findall(run)]
    if len(characters) == 1:
        return characters
    return [left + right for left, right in pairwise(characters)]


def _spelling_term(match: re.Match[str]) -> str | None:
    """Return the one spelling that a date, a number or a version is also known by."""
    found = {name: value for name, value in match.groupdict().items() if value is not None}
    if (number := found.get("number")) is not None:
        return re.sub(r"\D", "", number)
    if (version := found.get("version")) is not None:
        return version
    year, month, day = (next(value for name, value in found.items() if name[0] == key) for key in "ymd")
    number_of_month = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
    if not (1 <= number_of_month <= 12 and 1 <= int(day) <= 31):
        return None
    iso = f"{year}-{number_of_month:02}-{int(day):02}"
    # The analysis of runs has given this one already.
    return None if iso == match.group() else iso


def _terms(text: str, *, drop_stop_words: bool) -> Iterator[str]:
    text = normalise(text)
    for spelled in _SPELLING.finditer(text):
        if (term := _spelling_term(spelled)) is not None and len(term) <= _LONGEST_TERM:
            yield term
    for match in _RUNS.finditer(text):
        if match.lastgroup == "cjk":
            yield from _cjk_terms(match.group())
        elif len(run := match.group()) <= _LONGEST_TERM:
            yield from _run_terms(run, drop_stop_words)
        else:  # Too long to be one identifier: its parts only, and nothing worth remembering.
            for part in _PART.findall(run):
                if len(part) <= _LONGEST_TERM:
                    yield from _run_terms(part, drop_stop_words)


def holds_cjk(text: str) -> bool:
    """Tell whether any letter is Chinese, Japanese or Korean."""
    return not text.isascii() and _CJK_RUN.search(text) is not None


def is_cjk(text: str) -> bool:
    """Tell whether a twentieth or more of the letters are Chinese, Japanese or Korean."""
    if text.isascii():
        return False
    found = sum(map(len, _CJK_RUN.findall(text)))
    return found > 0 and found * 20 >= sum(1 for character in text if character.isalnum())


def tokens(text: str) -> list[str]:
    """Return the terms of a document's text, in order, repetitions kept."""
    return list(_terms(text, drop_stop_words=False))


def query_terms(text: str) -> list[str]:
    """Return the distinct terms of a query, in order.

    Stop words are left out unless nothing else is left; a repeated word counts once.
    """
    terms = dict.fromkeys(_terms(text, drop_stop_words=True))
    return list(terms or dict.fromkeys(_terms(text, drop_stop_words=False)))
