"""Where the token of the signed-in account is kept: the OS keyring, else a file for its owner only.

A machine with a ``INTERLEAF_HOME`` of its own keeps everything under it, so the keyring, which is
shared by all homes of a user, is used without one only. A token is never logged, and never stands in
an argument list or in the database.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Final, Protocol

import keyring
import keyring.errors
from keyring.backends import chainer, fail, null

from shared_schema.errors import ErrorCode, InterleafError

SERVICE: Final = "interleaf"


class Credentials(Protocol):
    """Tokens by server address."""

    def get(self, server_url: str) -> str | None:
        """Return the token for a server, or None."""

    def put(self, server_url: str, token: str) -> None:
        """Keep the token for a server; a former one is replaced."""

    def forget(self, server_url: str) -> None:
        """Forget the token for a server; nothing happens without one."""


class KeyringCredentials:
    """Tokens in the keyring of the operating system."""

    def get(self, server_url: str) -> str | None:
        """Return the token for a server, or None. A locked keyring is ``signed_out``."""
        try:
            return keyring.get_password(SERVICE, server_url)
        except keyring.errors.KeyringError as error:
            raise InterleafError(
                ErrorCode.SIGNED_OUT,
                "The keyring of this machine cannot be read. Unlock it, then try again.",
            ) from error

    def put(self, server_url: str, token: str) -> None:
        """Keep the token for a server."""
        try:
            keyring.set_password(SERVICE, server_url, token)
        except keyring.errors.KeyringError as error:
            raise InterleafError(
                ErrorCode.STORAGE_FULL,
                "The keyring of this machine does not take the token. Unlock it, then sign in again.",
            ) from error

    def forget(self, server_url: str) -> None:
        """Forget the token for a server."""
        try:
            keyring.delete_password(SERVICE, server_url)
        except keyring.errors.PasswordDeleteError:
            return  # There was none.
        except keyring.errors.KeyringError as error:
            raise InterleafError(
                ErrorCode.STORAGE_FULL,
                "The keyring of this machine cannot be changed. Unlock it, then sign out again.",
            ) from error


class FileCredentials:
    """Tokens in a JSON file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, server_url: str) -> str | None:
        """Return the token for a server, or None."""
        token = self._read().get(server_url)
        return token if isinstance(token, str) else None

    def put(self, server_url: str, token: str) -> None:
        """Keep the token for a server."""
        self._write({**self._read(), server_url: token})

    def forget(self, server_url: str) -> None:
        """Forget the token for a server."""
        kept = {url: token for url, token in self._read().items() if url != server_url}
        if self._path.exists():
            self._write(kept)

    def _read(self) -> dict[str, object]:
        try:
            found = json.loads(self._path.read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, tokens: dict[str, object]) -> None:
        temporary = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Created with its final mode: at no moment can anybody else open it.
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(json.dumps(tokens).encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise InterleafError(
                ErrorCode.STORAGE_FULL,
                "The token cannot be stored: the disk is full or read-only. Free disk space, then try again.",
            ) from error


def open_credentials(home: Path, *, own_home: bool) -> Credentials:
    """Return the store of this installation; ``own_home``: the user chose the home directory."""
    if not own_home and keyring_works():
        return KeyringCredentials()
    return FileCredentials(home / "credentials.json")


def keyring_works() -> bool:
    """Tell whether this machine has a keyring that keeps anything."""
    backend = keyring.get_keyring()
    if isinstance(backend, chainer.ChainerBackend):
        return bool(backend.backends)
    return not isinstance(backend, fail.Keyring | null.Keyring)
