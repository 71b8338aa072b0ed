from __future__ import annotations

from pathlib import Path

import keyring
import keyring.backend
import keyring.backends.fail
import keyring.errors
import pytest

from client.credentials import FileCredentials, KeyringCredentials, keyring_works, open_credentials
from shared_schema.errors import ErrorCode, InterleafError

A, B = "https://a.example", "https://b.example"


class MemoryKeyring(keyring.backend.KeyringBackend):
    priority = 1  # type: ignore[assignment] - the base declares a property

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.held.pop((service, username), None) is None:
            raise keyring.errors.PasswordDeleteError


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> MemoryKeyring:
    backend = MemoryKeyring()
    monkeypatch.setattr(keyring.core, "_keyring_backend", backend)
    return backend


@pytest.mark.requirement("client.credentials")
def test_a_token_s_file_is_for_its_owner_only_and_keeps_one_token_a_server(tmp_path: Path) -> None:
    path = tmp_path / "home" / "credentials.json"
    credentials = FileCredentials(path)
    assert credentials.get(A) is None
    credentials.put(A, "one")
    credentials.put(B, "two")
    credentials.put(A, "three")
    assert (credentials.get(A), credentials.get(B)) == ("three", "two")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    credentials.forget(A)
    credentials.forget(A)
    assert (credentials.get(A), credentials.get(B)) == (None, "two")
    assert [each.name for each in path.parent.iterdir()] == ["credentials.json"]


def test_a_damaged_file_means_no_token(tmp_path: Path) -> None:
    path = tmp_path / "credentials.json"
    path.write_text("{")
    assert FileCredentials(path).get(A) is None


@pytest.mark.requirement("client.credentials")
def test_the_keyring_holds_the_token_where_there_is_one(ring: MemoryKeyring, tmp_path: Path) -> None:
    credentials = open_credentials(tmp_path, own_home=False)
    assert isinstance(credentials, KeyringCredentials)
    credentials.put(A, "one")
    assert credentials.get(A) == "one"
    credentials.forget(A)
    credentials.forget(A)
    assert credentials.get(A) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("client.credentials")
def test_a_home_of_its_own_keeps_the_token_in_it(ring: MemoryKeyring, tmp_path: Path) -> None:
    open_credentials(tmp_path, own_home=True).put(A, "one")
    assert ring.held == {}
    assert (tmp_path / "credentials.json").exists()


def test_a_keyring_that_keeps_nothing_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring.core, "_keyring_backend", keyring.backends.fail.Keyring())
    assert not keyring_works()


def test_a_locked_keyring_is_said_so(ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_arguments: str) -> None:
        raise keyring.errors.KeyringLocked

    monkeypatch.setattr(ring, "get_password", locked)
    with pytest.raises(InterleafError) as refused:
        KeyringCredentials().get(A)
    assert refused.value.code is ErrorCode.SIGNED_OUT
