from __future__ import annotations

import json
from typing import Any

import pytest

from shared_schema import limits
from shared_schema.org_contract import API_PREFIX, ErrorAnswer
from tests.org_server.harness import Server


def error_of(answer: Any) -> str:
    """Return the code of an error that has the contract's form and this request's id."""
    body = ErrorAnswer.model_validate_json(answer.get_data())
    assert body.error.request_id == answer.headers["X-Request-ID"]
    assert body.error.message
    return body.error.code


def post_raw(server: Server, raw: bytes, content_type: str = "application/json") -> Any:
    return server.ada.request("POST", "/projects", data=raw, content_type=content_type)


@pytest.mark.requirement("server.http.errors")
def test_an_unknown_address_and_a_wrong_method_answer_in_the_contracts_form(server: Server) -> None:
    client = server.app.test_client()
    assert error_of(client.get("/nowhere")) == "not_found"
    assert error_of(client.get(f"{API_PREFIX}/projects/")) == "not_found"
    refused = client.delete(f"{API_PREFIX}/me")
    assert error_of(refused) == "method_not_allowed"
    assert refused.status_code == 405
    assert "GET" in refused.headers["Allow"]


@pytest.mark.requirement("server.http.limits")
def test_a_body_over_four_mebibytes_is_too_large(server: Server) -> None:
    answer = post_raw(server, b" " * (limits.REQUEST_BYTES + 1))
    assert (answer.status_code, error_of(answer)) == (413, "payload_too_large")
    assert post_raw(server, b'{"name": "Web"}' + b" " * (limits.REQUEST_BYTES - 15)).status_code == 201


def test_a_body_that_is_no_json_by_its_type_is_refused(server: Server) -> None:
    answer = post_raw(server, b'{"name": "Web"}', "text/plain")
    assert (answer.status_code, error_of(answer)) == (415, "unsupported_media_type")


@pytest.mark.requirement("server.http.strict_json")
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"name": "a", "name": "b"}',
        b'{"name": NaN}',
        b'{"name": Infinity}',
        b'{"name": 5}',
        b'{"name": null}',
        b'{"name": "a", "unknown": 1}',
        b'{"name": ""}',
        b'{"name": "a\\u0000b"}',
        b'{"name": "\\ud800"}',
        b'{"name": "\xff"}',
        b'\xef\xbb\xbf{"name": "a"}',
        '{"name": "a"}'.encode("utf-16"),
        b'{"name": "' + b"a" * 121 + b'"}',
        b"[" * 100_000,
        b'{"name": ' + b"9" * 5_000 + b"}",
    ],
    ids=lambda raw: repr(raw[:24]),
)
def test_a_body_that_is_not_strictly_the_contract_is_refused(server: Server, raw: bytes) -> None:
    answer = post_raw(server, raw)
    assert (answer.status_code, error_of(answer)) == (400, "invalid_arguments")


def test_an_escaped_backslash_before_u0000_is_ordinary_text(server: Server) -> None:
    assert post_raw(server, rb'{"name": "the \\u0000 escape"}').get_json()["name"] == r"the \u0000 escape"


def test_wrong_fields_are_named_and_their_values_are_not_repeated(server: Server) -> None:
    answer = post_raw(server, b'{"name": 5, "secret": "hunter2"}')
    assert [item["field"] for item in answer.get_json()["error"]["details"]] == ["name", "secret"]
    assert "hunter2" not in answer.get_data(as_text=True)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=x", "limit=1&limit=2", "unknown=1", "name=%00"]
)
def test_a_query_that_is_not_the_contract_is_refused(server: Server, query: str) -> None:
    assert error_of(server.ada.get(f"/projects?{query}")) == "invalid_arguments"


@pytest.mark.parametrize("part", ["prj_%00", "prj_x", "%F0%9F%A6%8A", "prj_" + "x" * 5_000])
def test_an_id_that_names_nothing_is_no_server_error(server: Server, part: str) -> None:
    assert server.ada.get(f"/projects/{part}").status_code in {400, 404}


def test_a_request_id_is_taken_over_when_it_is_harmless(server: Server) -> None:
    given = server.ada.get("/me", headers={"X-Request-ID": "abc-1.2_3"})
    assert given.headers["X-Request-ID"] == "abc-1.2_3"
    for bad in ("a b", "x" * 65, "<script>"):
        assert server.ada.get("/me", headers={"X-Request-ID": bad}).headers["X-Request-ID"].startswith("req_")


@pytest.mark.requirement("server.http.errors")
def test_an_unexpected_failure_is_logged_by_place_without_the_text_of_it(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the body was hunter2")

    monkeypatch.setattr("org_server.http.routes.me.read_me", fail)
    answer = server.ada.get("/me")
    assert (answer.status_code, error_of(answer)) == (500, "internal_error")
    logged = capsys.readouterr()
    assert answer.headers["X-Request-ID"] in logged.out + logged.err
    assert "RuntimeError" in logged.out + logged.err
    assert "hunter2" not in logged.out + logged.err + answer.get_data(as_text=True)
    assert server.ada.token not in logged.out + logged.err


@pytest.mark.requirement("server.http.conditional")
def test_a_single_object_is_not_sent_again_while_it_is_the_same(server: Server) -> None:
    project = server.project(server.ada)
    for path in (
        "/me",
        f"/projects/{project}",
        f"/projects/{project}/org-selections",
        f"/projects/{project}/adaptations",
        f"/admin/users/{server.ada.user_id}",
        "/admin/policy",
    ):
        etag = server.ada.get(path).headers["ETag"]
        again = server.ada.get(path, headers={"If-None-Match": f'"other", W/{etag}'})
        assert (again.status_code, again.get_data()) == (304, b""), path
        assert again.headers["ETag"] == etag
        assert server.ada.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_a_tag_changes_with_anything_that_is_answered(server: Server) -> None:
    project = server.project(server.ada)
    before = server.ada.get(f"/projects/{project}").headers["ETag"]
    member = server.user("bob")
    server.ada.post(f"/projects/{project}/members", {"email": member.email, "role": "admin"})
    assert server.ada.get(f"/projects/{project}").headers["ETag"] == before
    assert member.get(f"/projects/{project}").headers["ETag"] != before


def test_the_probes_need_no_token(server: Server) -> None:
    client = server.app.test_client()
    assert client.get("/health").get_json() == {"status": "ok"}
    assert client.get("/ready").get_json() == {"status": "ready"}
    server.ada.get("/projects/prj_secret")
    metrics = client.get("/metrics").get_data(as_text=True)
    assert f'route="GET {API_PREFIX}/projects/<project_id>",status="404"' in metrics
    assert "prj_secret" not in metrics


@pytest.mark.requirement("server.openapi")
def test_the_api_document_names_every_route_and_every_reference_resolves(server: Server) -> None:
    document = server.app.test_client().get(f"{API_PREFIX}/openapi.json").get_json()
    assert document["openapi"] == "3.1.0"
    listed = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    routed = {
        (method, rule.rule.replace("<", "{").replace(">", "}"))
        for rule in server.app.url_map.iter_rules()
        if rule.rule.startswith(API_PREFIX) and not rule.rule.endswith("openapi.json")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert listed == routed
    text = json.dumps(document)
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in document["components"]["schemas"], name
    ids = [
        operation["operationId"] for methods in document["paths"].values() for operation in methods.values()
    ]
    assert len(ids) == len(set(ids))


@pytest.mark.requirement("server.http.precondition")
def test_a_change_without_if_match_is_refused_and_so_is_one_without_a_version(server: Server) -> None:
    project = server.project(server.ada)
    for path, body in (
        (f"/projects/{project}", {"name": "Other"}),
        (f"/admin/users/{server.ada.user_id}", {"role": "owner"}),
        ("/admin/policy", {"required_approvals": 2}),
    ):
        missing = server.ada.request("PATCH", path, json=body)
        assert (missing.status_code, error_of(missing)) == (428, "precondition_required"), path
        assert error_of(server.ada.patch(path, body, "soon")) == "invalid_arguments"
    put = server.ada.request("PUT", f"/projects/{project}/org-selections", json={"resource_ids": []})
    assert (put.status_code, error_of(put)) == (428, "precondition_required")
