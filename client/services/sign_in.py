"""Signing in and out, and the connection that belongs to the account."""

from __future__ import annotations

import threading
from collections.abc import Callable

from client.clock import Clock, system_clock
from client.credentials import Credentials
from client.store.account import AccountRow, SyncStateRow
from client.store.revocation import forget_project
from client.store.unit_of_work import Store, UnitOfWork
from client.sync import deliveries
from client.sync.org_client import OrgClient
from client.sync.org_http import check_server_url
from shared_schema.daemon_contract import Account, Count, LoginCall
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import Me
from shared_schema.sync_status import ParkingCause, SyncStatus


class SignIn:
    """The account of this machine; safe to use from any thread.

    ``make_client`` connects to a server with a token. ``woken`` is called after the account
    changed, so that synchronisation goes on at once.
    """

    def __init__(
        self,
        store: Store,
        credentials: Credentials,
        make_client: Callable[[str, str], OrgClient],
        *,
        clock: Clock = system_clock,
        woken: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._credentials = credentials
        self._make_client = make_client
        self._clock = clock
        self._woken = woken
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], OrgClient] = {}

    def login(self, call: LoginCall) -> Account:
        """Check the token with the server, keep it, and let everything that waited for it go on.

        Raises ``invalid_arguments`` for an address without https, ``unauthenticated``,
        ``org_server_unavailable``, and ``account_in_use`` while Drafts of another account are here.
        """
        url = str(check_server_url(call.server_url))
        token = call.token.strip()
        with self._store.read() as uow:
            self._require_free(uow, url, None)
        me = self._connect(url, token).me()
        with self._store.read() as uow:
            self._require_free(uow, url, me)
        self._credentials.put(url, token)
        now = self._clock()
        with self._store.write() as uow:
            before = uow.account.get()
            if before is not None and not _same(before, url, me):
                _start_afresh(uow, keep_server=before.server_url == url)
            uow.account.put(AccountRow(url, me))
            # The new token may also reach what the former one did not.
            for cause in ParkingCause:
                deliveries.restore(uow, cause, now)
        self._woken()
        return Account(server_url=url, me=me)

    def logout(self) -> Count:
        """Forget the token; returns how many operations wait for the next sign-in. Drafts stay."""
        with self._store.read() as uow:
            account = uow.account.get()
        if account is None:
            return Count(count=0)
        self._credentials.forget(account.server_url)
        with self._store.write() as uow:
            deliveries.park(uow, ParkingCause.SIGNED_OUT, deliveries.SIGNED_OUT, self._clock())
            uow.account.set_signed_out(True)
            waiting = uow.outbox.counts()[SyncStatus.RETRYING]
        self._woken()
        return Count(count=waiting)

    def account(self) -> Account:
        """Return who is signed in where, or raise ``signed_out``."""
        with self._store.read() as uow:
            account = uow.account.get()
        if account is None or account.signed_out:
            where = "" if account is None else f" from {account.server_url}"
            raise InterleafError(
                ErrorCode.SIGNED_OUT,
                f"Nobody is signed in{where}. Sign in with: interleaf login --server URL --token-stdin",
            )
        return Account(server_url=account.server_url, me=account.me)

    def client(self) -> OrgClient | None:
        """Return the connection of the signed-in account; None while nobody is."""
        with self._store.read() as uow:
            account = uow.account.get()
        if account is None or account.signed_out:
            return None
        token = self._credentials.get(account.server_url)
        return None if token is None else self._connect(account.server_url, token)

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def _connect(self, url: str, token: str) -> OrgClient:
        # A former connection stays open until the end: the worker may be in the middle of a request.
        with self._lock:
            client = self._clients.get((url, token))
            if client is None:
                client = self._clients[url, token] = self._make_client(url, token)
            return client

    def _require_free(self, uow: UnitOfWork, url: str, me: Me | None) -> None:
        account = uow.account.get()
        if account is None or _same(account, url, me or account.me):
            return
        waiting = uow.outbox.with_status(SyncStatus.QUEUED, SyncStatus.SYNCING, SyncStatus.RETRYING)
        drafts = {draft.draft_id for draft in uow.drafts.list(active_only=True)}
        drafts |= {row.draft_id for row in waiting}
        if drafts:
            raise InterleafError(
                ErrorCode.ACCOUNT_IN_USE,
                f"This machine holds {len(drafts)} unfinished Drafts of {account.me.email} on "
                f"{account.server_url}, and they can only go there. Finish or discard them, then sign in "
                "elsewhere; or use another INTERLEAF_HOME for the other account.",
                details={"server_url": account.server_url, "drafts": len(drafts)},
            )


def _same(account: AccountRow, url: str, me: Me) -> bool:
    return account.server_url == url and account.me.user_id == me.user_id


def _start_afresh(uow: UnitOfWork, *, keep_server: bool) -> None:
    """Forget what the former account could read; the feed begins anew for the next one."""
    for project in uow.projects.all():
        forget_project(uow, project)
    epoch = uow.sync_state.get().epoch if keep_server else None
    uow.sync_state.put(SyncStateRow(epoch=epoch))
