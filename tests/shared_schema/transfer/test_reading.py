"""From files to documents: what is refused, what is renamed, and what stays byte for byte."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_schema import limits
from shared_schema.errors import InterleafError
from shared_schema.memory import Scope
from shared_schema.rules.hashing import content_hash
from shared_schema.rules.paths import normalise_path
from shared_schema.transfer.documents import Candidate, Document, Refused, SourceFile, refusal_item
from shared_schema.transfer.front_matter import description_of
from shared_schema.transfer.manifest import ExportedResource, Manifest
from shared_schema.transfer.naming import sanitised, slug
from shared_schema.transfer.reading import Entry, ReadOptions, file_candidates, prefix, read_entries

TEXT = b"# Text\n"


def path_rule(path: str) -> str | None:
    try:
        assert normalise_path(path) == path
    except InterleafError as error:
        return str(error.details["rule"])
    return None


def read(
    *files: tuple[str, bytes], manifest: Manifest | None = None, same_place: bool = True, **options: object
) -> list[Entry]:
    given = (SourceFile(path, content) for path, content in files)
    candidates = file_candidates(given, manifest, same_place=same_place)
    return list(read_entries(candidates, ReadOptions(**options)))  # type: ignore[arg-type]


def one(path: str = "a.md", content: bytes = TEXT, **more: object) -> Entry:
    (entry,) = read((path, content), **more)  # type: ignore[arg-type]
    return entry


def refused(entries: Iterable[Entry]) -> list[tuple[str, str]]:
    return [(entry.source, entry.code) for entry in entries if isinstance(entry, Refused)]


@pytest.mark.requirement("transfer.exact")
@pytest.mark.parametrize(
    "body",
    [
        "no final newline",
        "crlf\r\nends\r\n",
        "old mac\rends\r",
        "\ufeffmarked\n",
        "trailing  \n\t\n\n\n",
        unicodedata.normalize("NFD", "Ä é ñ\n"),
        "---\ntitle: x\n---\n[[a wikilink|shown]] ![[image.png]]\n",
        "x" * limits.BODY_BYTES,
    ],
)
def test_a_body_is_byte_for_byte_the_files(body: str) -> None:
    entry = one(content=body.encode())
    assert isinstance(entry, Document)
    assert entry.body.encode() == body.encode()


@pytest.mark.requirement("transfer.refusals")
@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "blank"),
        (b" \r\n\t\n", "blank"),
        ("\ufeff\u200b\n".encode(), "blank"),
        (b"\xff\xfe", "not_utf8"),
        ("é".encode("latin-1"), "not_utf8"),
        (b"half \xed\xa0\x80 a character", "not_utf8"),
        (b"a\0b", "bad_character"),
        (b"x" * (limits.BODY_BYTES + 1), "too_large"),
    ],
)
def test_a_text_that_cannot_be_a_body_is_refused(content: bytes, code: str) -> None:
    assert refused([one(content=content)]) == [("a.md", code)]


def test_half_a_character_that_came_as_text_is_refused_too() -> None:
    entries = list(read_entries([Candidate("g:1", "a.md", "half \ud800")], ReadOptions()))
    assert refused(entries) == [("g:1", "bad_character")]


BAD_PATHS = [
    ("a:b.md", "character_forbidden", "a-b.md"),
    ("what?.md", "character_forbidden", "what-.md"),
    ("back\\slash.md", "character_forbidden", "back-slash.md"),
    ("tab\there.md", "character_control", "tab-here.md"),
    ("hid\u200bden.md", "character_invisible", "hid-den.md"),
    ("raw\udcff.md", "character_surrogate", "raw-.md"),
    ("notes /a.md", "segment_whitespace", "notes/a.md"),
    ("v1./a.md", "segment_trailing_dot", "v1/a.md"),
    ("con.md", "segment_device", "con_.md"),
    ("x/LPT1", "segment_device", "x/LPT1_"),
    ("mem_0192.md", "id_like", "_mem_0192.md"),
    (f"{'n' * 300}.md", "segment_too_long", f"{'n' * 252}.md"),
]


@pytest.mark.requirement("transfer.refusals")
@pytest.mark.parametrize(("path", "rule", "renamed"), BAD_PATHS)
def test_a_path_that_is_not_allowed_is_refused_by_rule_or_renamed(path: str, rule: str, renamed: str) -> None:
    entry = one(path)
    assert isinstance(entry, Refused)
    assert entry.code == "invalid_path"
    assert f"rule {rule}" in entry.reason
    refusal_item(entry).model_dump_json().encode()  # carried by JSON, whatever the name

    again = one(path, rename_paths=True)
    assert isinstance(again, Document)
    assert again.path == renamed
    assert again.note is not None
    assert again.note.startswith("renamed from ")
    again.note.encode()


def test_a_path_that_is_too_long_altogether_is_refused_even_when_renaming() -> None:
    path = "/".join(["d" * 200] * 3) + "/a.md"
    entry = one(path, rename_paths=True)
    assert isinstance(entry, Refused)
    assert "rule too_long" in entry.reason


@given(st.text(max_size=40))
def test_a_path_that_is_sanitised_is_allowed_or_empty_or_too_long(text: str) -> None:
    made = sanitised(text)
    assert path_rule(made) in {None, "empty", "too_long"}
    assert sanitised(made) == made


@given(st.text(max_size=120))
def test_a_slug_is_always_one_allowed_segment(text: str) -> None:
    made = slug(text, "section")
    assert normalise_path(made) == made
    assert "/" not in made


@pytest.mark.requirement("transfer.refusals")
@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ("A.md", "a.md", "path_twin"),
        (unicodedata.normalize("NFC", "é.md"), unicodedata.normalize("NFD", "é.md"), "path_twin"),
        ("straße.md", "STRASSE.md", "path_twin"),
        ("a.md", "A.md/b.md", "path_ancestor"),
        ("A.md/b.md", "a.md", "path_ancestor"),
    ],
)
def test_of_two_paths_that_clash_the_second_is_refused(first: str, second: str, code: str) -> None:
    entries = read((first, TEXT), (second, TEXT))
    assert isinstance(entries[0], Document)
    assert refused(entries) == [(second, code)]
    renamed = read((first, TEXT), (second, TEXT), rename_paths=True)
    assert refused(renamed) == []
    assert all(isinstance(entry, Document) for entry in renamed)


@pytest.mark.requirement("transfer.refusals")
def test_what_is_refused_takes_no_path() -> None:
    assert refused(read(("a.md", b""), ("A.md", TEXT))) == [("a.md", "blank")]


def test_documents_go_below_the_prefix() -> None:
    assert prefix("team/Guides//") == "team/Guides"
    assert prefix("") == ""
    entry = one("a.md", into=prefix("team/"))
    assert isinstance(entry, Document)
    assert entry.path == "team/a.md"
    with pytest.raises(InterleafError, match="invalid_path"):
        prefix("../up")


def test_a_path_is_stored_in_nfc() -> None:
    entry = one(unicodedata.normalize("NFD", "übung.md"))
    assert isinstance(entry, Document)
    assert entry.path == unicodedata.normalize("NFC", "übung.md")
    assert entry.note is None


@pytest.mark.requirement("transfer.description")
@pytest.mark.parametrize(
    ("front", "description"),
    [
        ("description: How we release.", "How we release."),
        ("title: x\ndescription: plain # comment\ntags: [a]", "plain"),
        ('description: "quoted \\"so\\" # kept"', 'quoted "so" # kept'),
        ("description: 'it''s here'", "it's here"),
        ("description: >-\n  folded\n  lines\nother: 1", "folded lines"),
        ("description: |\n  two\n  lines", "two\nlines"),
        ("description: begun\n  and continued", "begun and continued"),
        ("description: https://example.org/#x", "https://example.org/#x"),
        ("description:", None),
        ("description: ~", None),
        ("description: [a, b]", None),
        ("nested:\n  description: inner", None),
        ("descriptions: x", None),
    ],
)
def test_the_description_comes_from_front_matter(front: str, description: str | None) -> None:
    for end in ("\n", "\r\n"):
        body = f"---\n{front}\n---\n# Text\n".replace("\n", end)
        assert description_of(body) == description
        entry = one(content=body.encode())
        assert isinstance(entry, Document)
        assert entry.description == description
        assert entry.body == body


def test_a_description_outside_of_front_matter_is_none() -> None:
    assert description_of("# Text\n\ndescription: no\n") is None
    assert description_of("---\ndescription: never closed\n") is None


@pytest.mark.requirement("transfer.description")
def test_a_longer_description_is_cut_and_said_to_be() -> None:
    body = f"---\ndescription: {'d' * 2_001}\n---\nText\n"
    entry = one(content=body.encode())
    assert isinstance(entry, Document)
    assert entry.description == "d" * 2_000
    assert entry.note == "description cut to 2000 characters"


def test_what_the_manifest_says_of_a_file_goes_with_it() -> None:
    body = "---\ndescription: front\n---\nText\n"
    known = ExportedResource(
        resource_id="mem_1",
        path="a.md",
        scope=Scope.PROJECT,
        description="listed",
        content_hash=content_hash(body),
    )
    manifest = Manifest(name="Web", resources=[known])
    entry = one(content=body.encode(), manifest=manifest)
    assert isinstance(entry, Document)
    assert (entry.resource_id, entry.description) == ("mem_1", "listed")
    # Edited since: what the file says holds.
    edited = one(content=body.replace("front", "newer").encode(), manifest=manifest)
    assert isinstance(edited, Document)
    assert (edited.resource_id, edited.description) == ("mem_1", "newer")
    copy = one(content=body.encode(), manifest=manifest, same_place=False)
    assert isinstance(copy, Document)
    assert (copy.resource_id, copy.description) == (None, "listed")
