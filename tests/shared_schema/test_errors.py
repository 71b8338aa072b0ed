from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Any

import pytest

from shared_schema.errors import ERRORS, ErrorCode, InterleafError, Kind

STATUSES = {
    Kind.INVALID: {400, 405, 409, 413, 415, 422, 428, 500},
    Kind.NOT_FOUND: {404},
    Kind.DENIED: {401, 403},
    Kind.CONFLICT: {409, 410, 412},
    Kind.NOT_READY: {409, 503},
    Kind.UNAVAILABLE: {409, 429, 503, 507},
    Kind.INTERNAL: {500},
}


@pytest.mark.requirement("errors.table")
def test_every_code_has_a_kind_a_status_and_a_next_step() -> None:
    assert set(ERRORS) == set(ErrorCode)


@pytest.mark.requirement("errors.table")
@pytest.mark.parametrize("code", ErrorCode)
def test_a_code_is_stable_readable_and_answers_what_to_do(code: ErrorCode) -> None:
    kind, status, remedy = ERRORS[code]
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", code.value)
    assert code.name == code.value.upper()
    assert HTTPStatus(status) >= HTTPStatus.BAD_REQUEST
    assert status in STATUSES[kind]
    assert remedy.isprintable()
    assert 10 < len(remedy) <= 120
    assert remedy[0].isupper()
    assert remedy.endswith((".", "PROJECT")) or ": interleaf" in remedy


@pytest.mark.requirement("errors.wire")
@pytest.mark.parametrize("code", ErrorCode)
def test_an_error_survives_the_wire(code: ErrorCode) -> None:
    error = InterleafError(code, "发生了什么: what {happened} 100%", details={"index": 0, "lines": [1, 2]})
    body = json.loads(json.dumps(error.as_wire()))
    assert set(body) == {"code", "message", "details"}
    back = InterleafError.from_wire(body)
    assert (back.code, back.message, back.details) == (error.code, error.message, error.details)
    assert (back.kind, back.status, back.retryable) == (error.kind, error.status, error.retryable)
    assert str(error) == f"{code.value}: {error.message}"


@pytest.mark.parametrize("code", ErrorCode)
def test_without_a_message_the_remedy_stands(code: ErrorCode) -> None:
    error = InterleafError(code)
    assert error.message == error.remedy == ERRORS[code].remedy
    assert error.details == {}


@pytest.mark.requirement("errors.retry")
@pytest.mark.parametrize("code", ErrorCode)
def test_only_unavailable_and_not_ready_may_be_retried(code: ErrorCode) -> None:
    error = InterleafError(code)
    assert error.retryable == (error.kind in {Kind.UNAVAILABLE, Kind.NOT_READY})


def test_details_are_copied() -> None:
    details = {"index": 1}
    error = InterleafError(ErrorCode.INVALID_ARGUMENTS, details=details)
    details["index"] = 2
    assert error.details == {"index": 1}


@pytest.mark.requirement("errors.unknown")
@pytest.mark.parametrize("code", ["brand_new", "", None, 7, ["x"], "INTERNAL_ERROR"])
def test_an_unknown_code_is_an_internal_error_that_names_it(code: Any) -> None:
    error = InterleafError.from_wire({"code": code, "message": "m", "details": {"a": 1}})
    assert error.code is ErrorCode.INTERNAL_ERROR
    assert str(code) in error.message
    assert error.details == {"a": 1}
    assert not error.retryable


@pytest.mark.requirement("errors.fields")
def test_the_fields_of_invalid_arguments_travel_as_a_list() -> None:
    fields = [{"field": "body", "problem": "is blank"}]
    error = InterleafError(ErrorCode.INVALID_ARGUMENTS, details={"fields": fields})
    assert error.as_wire()["details"] == fields
    assert InterleafError.from_wire(error.as_wire()).details == {"fields": fields}


@pytest.mark.parametrize("details", [None, "text", 3, {}])
def test_a_body_with_odd_parts_still_becomes_an_error(details: Any) -> None:
    error = InterleafError.from_wire({"code": "not_found", "message": None, "details": details})
    assert (error.code, error.message) == (ErrorCode.NOT_FOUND, ERRORS[ErrorCode.NOT_FOUND].remedy)
    assert error.details == {}
    assert InterleafError.from_wire({}).code is ErrorCode.INTERNAL_ERROR
