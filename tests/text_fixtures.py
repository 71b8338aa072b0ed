"""Texts and paths that break careless programs, for the tests of every door.

``BODIES`` and ``PATHS`` are what has to pass through unchanged; ``REFUSED_BODIES`` and
``REFUSED_PATHS`` what has to be refused in words. ``*_TWINS`` are pairs that look or fold alike.
"""

from __future__ import annotations

from typing import Final

MIB: Final = 1024 * 1024

CHINESE_SIMPLIFIED: Final = "发布之前请先检查合同编号，再下载视频。"
CHINESE_TRADITIONAL: Final = "發佈之前請先檢查合約編號，再下載影片。中文合約"
JAPANESE: Final = "リリースの前にデータベースを移行してください。ｶﾀｶﾅも半角で。"
KOREAN: Final = "배포하기 전에 데이터베이스를 마이그레이션하세요."
CYRILLIC: Final = "Перед выпуском проверьте подпись пакета. Ёжик й."
GREEK: Final = "Πριν από την έκδοση ελέγξτε την υπογραφή. Ὀδυσσεύς"
ARABIC: Final = "قبل الإصدار تحقق من التوقيع ١٢٣."
HEBREW: Final = "לפני השחרור בדקו את החתימה."
DEVANAGARI: Final = "प्रकाशन से पहले हस्ताक्षर जाँचें। क्षत्रिय"
THAI: Final = "ก่อนเผยแพร่ให้ตรวจสอบลายเซ็นที่นี่"
VIETNAMESE: Final = "Trước khi phát hành, hãy kiểm tra chữ ký."
GERMAN: Final = "Vor der Veröffentlichung: Größe prüfen, STRASSE und Straße."
TURKISH: Final = "İstanbul ve ısı; I ile i aynı değildir."
EMOJI: Final = "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇨🇭 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 1️⃣"
ASTRAL: Final = "𠮷野家 𝔊𝔯𝔢𝔞𝔱 𒀀"

SCRIPTS: Final[dict[str, str]] = {
    "chinese_simplified": CHINESE_SIMPLIFIED,
    "chinese_traditional": CHINESE_TRADITIONAL,
    "japanese": JAPANESE,
    "korean": KOREAN,
    "cyrillic": CYRILLIC,
    "greek": GREEK,
    "arabic": ARABIC,
    "hebrew": HEBREW,
    "devanagari": DEVANAGARI,
    "thai": THAI,
    "vietnamese": VIETNAMESE,
    "german": GERMAN,
    "turkish": TURKISH,
    "emoji": EMOJI,
    "astral": ASTRAL,
}

NFC: Final = "caf\u00e9 \u00c5ngstr\u00f6m \uac00 \u1eab"
NFD: Final = "cafe\u0301 A\u030angstro\u0308m \u1100\u1161 a\u0302\u0303"
NORMALISATION_TWINS: Final = (NFC, NFD)

LF: Final = "# Title\n\nfirst line\nsecond line\n"
CRLF: Final = "# Title\r\n\r\nfirst line\r\nsecond line\r\n"
LONE_CR: Final = "# Title\r\rfirst line\rsecond line\r"
MIXED_LINE_ENDS: Final = "# Title\n\r\nfirst line\r\nsecond line\rthird\n\rfourth"
NO_FINAL_NEWLINE: Final = "# Title\n\nfirst line\nlast line without end"
OTHER_BREAKS: Final = "# Title\n\na\u2028b\u2029c\x0bd\x0ce\x85f\n"
BOM: Final = "\ufeff# Title\n\nafter a byte order mark\n"
TABS: Final = "# Title\n\n\tindented\n- a\n\t- b\n| a\t| b\t|\n"
TRAILING_SPACE: Final = "# Title  \n\nhard break  \nnext \t \n\n\n"
ZERO_WIDTH: Final = (
    "# Ti\u200btle\n\njoin\u200der non\u200cjoiner word\u2060joiner inner\ufeffbom soft\u00adhyphen\n"
)
BIDI_CONTROLS: Final = (
    "# Title\n\naccess = \u202e\u2066// admin only\u2069 \u2066\u202c \u200e\u200f\u061c end\n"
)
ANSI_ESCAPES: Final = "# Title\n\n\x1b[2J\x1b[31mred\x1b[0m \x07bell \x08backspace \x7fdelete\n"
BRACES_AND_PERCENT: Final = "# {title} %s %(name)s {0} {} %d 100% ${HOME} {{ x }} {% y %} \\N{DASH} \\u00e9\n"
HTML_AND_QUOTES: Final = "# <script>alert('x')</script> & \"quoted\" [bold]x[/bold] <!-- c --> 'a'\n"
SQL_AND_QUERY: Final = '# \'; DROP TABLE resources; -- OR 1=1 title:"x" AND NOT (a* ^2~3 +b -c [1 TO 2]\n'
FENCED_HEADINGS: Final = (
    "intro\n\n```sh\n# not a heading\n```\n\n~~~~\n# nor this\n```\n~~~\n# still code\n~~~~\n\n"
    "# Real Title\n\ntext\n"
)
OPEN_FENCE: Final = "# Title\n\n```python\n# the fence is never closed\n\n## still code\n"
FRONT_MATTER: Final = "---\ntitle: In the header\ntags: [a, b]\n# a comment\n---\n\n# Real Title\n\ntext\n"
BROKEN_FRONT_MATTER: Final = (
    "---\ntitle: [unclosed\n  : : bad\n\n# Real Title\n\ntext without the closing line\n"
)
MALFORMED_YAML: Final = '---\ntitle: "a\nkey: {b\n---\n\n# Real Title\n'

BODIES: Final[dict[str, str]] = {
    **{name: f"# {text}\n\n{text}\n" for name, text in SCRIPTS.items()},
    "nfc": NFC,
    "nfd": NFD,
    "lf": LF,
    "crlf": CRLF,
    "lone_cr": LONE_CR,
    "mixed_line_ends": MIXED_LINE_ENDS,
    "no_final_newline": NO_FINAL_NEWLINE,
    "other_breaks": OTHER_BREAKS,
    "bom": BOM,
    "tabs": TABS,
    "trailing_space": TRAILING_SPACE,
    "zero_width": ZERO_WIDTH,
    "bidi_controls": BIDI_CONTROLS,
    "ansi_escapes": ANSI_ESCAPES,
    "braces_and_percent": BRACES_AND_PERCENT,
    "html_and_quotes": HTML_AND_QUOTES,
    "sql_and_query": SQL_AND_QUERY,
    "fenced_headings": FENCED_HEADINGS,
    "open_fence": OPEN_FENCE,
    "front_matter": FRONT_MATTER,
    "broken_front_matter": BROKEN_FRONT_MATTER,
    "malformed_yaml": MALFORMED_YAML,
}
"""Small bodies that have to be stored, shown, synced and published byte for byte."""

NUL: Final = "before\0after"
LONE_HIGH_SURROGATE: Final = "before \ud83d after"
LONE_LOW_SURROGATE: Final = "before \ude00 after"
SURROGATE_PAIR: Final = "before \ud83d\ude00 after"
"""Two code points that no UTF-8 text can hold, as a careless JSON reader leaves them."""

REFUSED_BODIES: Final[dict[str, str]] = {
    "empty": "",
    "blank": " \t\r\n\n\u3000\u00a0",
    "only_bom": "\ufeff\n",
    "only_zero_width": "\u200b\n\u2060\u200d",
    "nul": NUL,
    "lone_high_surrogate": LONE_HIGH_SURROGATE,
    "lone_low_surrogate": LONE_LOW_SURROGATE,
    "surrogate_pair": SURROGATE_PAIR,
}

PATHS: Final[dict[str, str]] = {
    "plain": "guides/release.md",
    "flat": "README.md",
    "no_suffix": "notes/todo",
    "spaces": "team notes/how we work.md",
    "dots": ".github/a..b/v1.2.3.md",
    "chinese": "指南/发布流程.md",
    "chinese_traditional": "指南/發佈流程.md",
    "japanese": "ガイド/公開.md",
    "korean": "안내/배포.md",
    "cyrillic": "руководства/выпуск.md",
    "greek": "οδηγοί/έκδοση.md",
    "arabic": "أدلة/الإصدار.md",
    "devanagari": "मार्गदर्शक/प्रकाशन.md",
    "thai": "คู่มือ/เผยแพร่.md",
    "emoji": "notes/🚀 launch 👍🏽.md",
    "astral": "𠮷/野.md",
    "braces_and_percent": "a%20b/{name} %s {}.md",
    "punctuation": "a'b&c;d#e=f+g,h!i@j$k(l)[m]~`^.md",
    "dashes": "-rf/--help.md",
    "device_like": "console/com10/nullable/auxiliary.md",
    "id_prefix_below": "notes/mem_0192.md",
}
"""Paths that are accepted exactly as they stand (they are in NFC)."""

REFUSED_PATHS: Final[dict[str, str]] = {
    "empty": "",
    "absolute": "/etc/passwd",
    "trailing_slash": "guides/",
    "double_slash": "guides//release.md",
    "dot": "./release.md",
    "dot_dot": "guides/../release.md",
    "only_dot_dot": "..",
    "leading_space": "guides/ release.md",
    "trailing_space": "guides /release.md",
    "trailing_ideographic_space": "guides\u3000/release.md",
    "trailing_dot": "guides./release.md",
    "three_dots": ".../release.md",
    "newline": "guides/a\nb.md",
    "tab": "guides/a\tb.md",
    "nul": "guides/a\0b.md",
    "delete": "guides/a\x7fb.md",
    "c1_control": "guides/a\x85b.md",
    "line_separator": "guides/a\u2028b.md",
    "escape": "guides/\x1b[31mred.md",
    "backslash": "guides\\release.md",
    "drive": "C:/release.md",
    "angle": "guides/<a>.md",
    "quote": 'guides/"a".md',
    "pipe": "guides/a|b.md",
    "question": "guides/a?.md",
    "star": "guides/*.md",
    "colon": "guides/a:b.md",
    "device": "guides/CON",
    "device_lower": "nul",
    "device_suffix": "aux.md",
    "device_two_suffixes": "guides/com1.tar.gz",
    "device_space": "guides/prn .md",
    "device_superscript": "lpt\u00b2.md",
    "bidi_override": "guides/a\u202egnp.md",
    "bidi_isolate": "guides/a\u2066b\u2069.md",
    "right_to_left_mark": "guides/a\u200fb.md",
    "zero_width_space": "guides/a\u200bb.md",
    "zero_width_joiner": "guides/a\u200db.md",
    "inner_bom": "guides/\ufeffa.md",
    "soft_hyphen": "guides/a\u00adb.md",
    "tag_character": "guides/a\U000e0067b.md",
    "hangul_filler": "guides/\u3164.md",
    "lone_surrogate": "guides/a\ud83db.md",
    "id": "mem_0192f0c4a1b27c3d8e4f5a6b7c8d9e0f",
    "id_with_suffix": "mem_guide.md",
    "old_id": "ctx_12",
    "old_rule_id": "rul_12",
    "old_workflow_id": "wfl_12",
    "draft_id": "drf_0192f0c4",
    "long_segment": f"guides/{'a' * 256}",
    "long_segment_in_bytes": f"guides/{'指' * 86}",
    "long": "/".join(["a" * 100] * 6),
    "very_long": "a/" * 100_000 + "a",
}

PATH_TWINS: Final[dict[str, tuple[str, str]]] = {
    "case": ("guides/release.md", "Guides/RELEASE.md"),
    "normalisation": ("caf\u00e9.md", "cafe\u0301.md"),
    "case_and_normalisation": ("\u00c5.md", "a\u030a.md"),
    "kelvin": ("K.md", "\u212a.md"),
    "sharp_s": ("Stra\u00dfe.md", "STRASSE.md"),
    "final_sigma": ("\u03c3.md", "\u03c2.md"),
    "ypogegrammeni": ("\u1f80.md", "\u1f88.md"),
    "ligature": ("\ufb01le.md", "file.md"),
    "hangul": ("\uac00.md", "\u1100\u1161.md"),
}
"""Pairs of spellings that name the same path: only one of each may exist."""

NEEDLE: Final = "zebra-quartz-0417"


def body_of_size(size: int, line: str = "An ordinary line of a long document.\n") -> str:
    """Return a body of exactly ``size`` UTF-8 bytes (``line`` is ASCII)."""
    return (line * (size // len(line) + 1))[:size]


def body_with_needle(at: int, size: int = MIB) -> str:
    """Return a body of ``size`` bytes with `NEEDLE` on its own line at (about) byte ``at``."""
    filler = body_of_size(size)
    insert = f"\n{NEEDLE}\n"
    start = min(at, size - len(insert))
    return filler[:start] + insert + filler[start + len(insert) :]


NEEDLE_POSITIONS: Final = (100, 10_000, 100_000, 1_000_000)


def largest_body() -> str:
    """Return a body of exactly 1 MiB."""
    return body_of_size(MIB)


def oversized_body() -> str:
    """Return a body of one byte too many."""
    return body_of_size(MIB + 1)


def oversized_in_bytes_only() -> str:
    """Return a body with fewer than 1 Mi characters and more than 1 MiB in UTF-8."""
    return "发" * (MIB // 3 + 1)
