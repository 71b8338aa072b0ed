from __future__ import annotations

import pytest

from org_server.http.conditional import etag_of, matches, ref_etag, ref_from, version_from
from shared_schema.errors import ErrorCode, InterleafError

COMMIT = "0f" * 32


@pytest.mark.parametrize("sent", ["7", '"7"', ' "7" ', 'W/"7"', etag_of(b"body", 7), f"W/{etag_of(b'x', 7)}"])
def test_a_version_is_read_from_every_form_that_a_client_may_send(sent: str) -> None:
    assert version_from(sent) == 7


@pytest.mark.parametrize("sent", ["seven", "-7", "7.0", '"7-zz"', "*", "7, 8", "9" * 30, "٧"])
def test_what_is_no_version_is_refused(sent: str) -> None:
    with pytest.raises(InterleafError) as refused:
        version_from(sent)
    assert refused.value.code is ErrorCode.INVALID_ARGUMENTS


def test_a_ref_is_read_as_it_was_answered() -> None:
    assert ref_from(ref_etag(COMMIT)) == COMMIT
    assert ref_from(ref_etag(None)) is None


@pytest.mark.parametrize("sent", [COMMIT, "none", '"short"', "*", f'"{COMMIT.upper()}"'])
def test_what_is_no_ref_is_refused(sent: str) -> None:
    with pytest.raises(InterleafError) as refused:
        ref_from(sent)
    assert refused.value.code is ErrorCode.INVALID_ARGUMENTS


@pytest.mark.parametrize("reader", [version_from, ref_from])
@pytest.mark.parametrize("sent", [None, "", "  "])
def test_a_missing_precondition_is_required(reader: object, sent: str | None) -> None:
    assert callable(reader)
    with pytest.raises(InterleafError) as refused:
        reader(sent)
    assert refused.value.code is ErrorCode.PRECONDITION_REQUIRED


def test_a_tag_is_found_among_others_and_weakly() -> None:
    tag = etag_of(b"body")
    assert matches(tag, tag)
    assert matches(f'"a", W/{tag}', tag)
    assert matches("*", tag)
    assert not matches(None, tag)
    assert not matches('"a"', tag)
    assert not matches(tag.strip('"'), tag)
