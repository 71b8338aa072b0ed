from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from client.credentials import FileCredentials
from client.services.sign_in import SignIn
from client.sync.org_client import OrgClient
from shared_schema.daemon_contract import LoginCall
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.sync_world import URL, Machine
from tests.org_server.harness import Server

OTHER_URL = "http://127.0.0.1:10"


@pytest.fixture
def sign_in(machine: Machine, tmp_path: Path) -> SignIn:
    def connect(url: str, token: str) -> OrgClient:
        return OrgClient(url, token, transport=machine.network, burst=1)

    made = SignIn(machine.store, FileCredentials(tmp_path / "credentials.json"), connect, clock=machine.clock)
    # The engine of the machine works with this account's connection from now on.
    machine.engine._client_source = made.client
    return made


def login(org: Server, url: str = URL, token: str | None = None) -> LoginCall:
    return LoginCall(server_url=url, token=token or org.ada.token)


@pytest.mark.requirement("client.sign-in")
def test_signing_in_checks_the_token_and_tells_who_it_is(
    org: Server, machine: Machine, sign_in: SignIn
) -> None:
    account = sign_in.login(login(org, token=f" {org.ada.token}\n"))
    assert (account.server_url, account.me.email) == (URL, "ada@example.org")
    assert sign_in.account() == account
    assert machine.step().complete
    sign_in.close()


@pytest.mark.requirement("client.sign-in")
def test_a_wrong_token_leaves_the_present_account_alone(org: Server, sign_in: SignIn) -> None:
    before = sign_in.login(login(org))
    with pytest.raises(InterleafError) as refused:
        sign_in.login(login(org, token="ilt_wrong"))
    assert refused.value.code is ErrorCode.UNAUTHENTICATED
    assert sign_in.account() == before
    assert sign_in.client() is not None


@pytest.mark.requirement("client.sign-in")
def test_signing_out_parks_the_queue_and_signing_in_again_lets_it_go_on(
    org: Server, machine: Machine, sign_in: SignIn
) -> None:
    sign_in.login(login(org))
    project = org.project(org.ada)
    machine.settle()
    draft = machine.create(project, "a.md", "# A\n")
    assert sign_in.logout().count == 1
    assert sign_in.client() is None
    with pytest.raises(InterleafError) as refused:
        sign_in.account()
    assert refused.value.code is ErrorCode.SIGNED_OUT
    result = machine.step()
    assert result.error is not None
    assert result.error.code is ErrorCode.SIGNED_OUT
    later = machine.create(project, "b.md", "# B\n")
    machine.step()
    sign_in.login(login(org))
    machine.settle()
    assert machine.statuses(draft.draft_id) == machine.statuses(later.draft_id) == ["synced"]
    assert [row.attempts for row in machine.rows(draft.draft_id)] == [1]


@pytest.mark.requirement("client.sign-in.other-server")
def test_another_server_or_person_is_refused_while_drafts_wait(
    org: Server, machine: Machine, sign_in: SignIn
) -> None:
    sign_in.login(login(org))
    project = org.project(org.ada)
    machine.settle()
    machine.create(project, "a.md", "# A\n")
    bob = org.user("bob")
    asked = len(machine.network.log)
    with pytest.raises(InterleafError) as refused:
        sign_in.login(login(org, OTHER_URL))
    assert refused.value.code is ErrorCode.ACCOUNT_IN_USE
    assert len(machine.network.log) == asked
    with pytest.raises(InterleafError) as refused:
        sign_in.login(login(org, token=bob.token))
    assert refused.value.code is ErrorCode.ACCOUNT_IN_USE
    assert sign_in.account().me.email == "ada@example.org"


@pytest.mark.requirement("client.sign-in.other-server")
def test_another_account_sees_nothing_of_the_former_one(
    org: Server, machine: Machine, sign_in: SignIn
) -> None:
    sign_in.login(login(org))
    mine = org.project(org.ada, "Mine")
    machine.settle()
    bob = org.user("bob")
    theirs = org.project(bob, "Theirs")
    sign_in.login(login(org, OTHER_URL, bob.token))
    machine.settle()
    with machine.store.read() as uow:
        access = {project.project_id: project.access for project in uow.projects.all()}
    assert access == {mine: False, theirs: True}


def test_an_unreachable_server_changes_nothing(org: Server, machine: Machine, sign_in: SignIn) -> None:
    def gone(_request: httpx.Request) -> None:
        raise httpx.ConnectError("gone")

    machine.network.standing = gone
    with pytest.raises(InterleafError) as refused:
        sign_in.login(login(org))
    assert refused.value.code is ErrorCode.ORG_SERVER_UNAVAILABLE
    assert sign_in.client() is None
