"""The operator, and callers that only look."""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from cloudpar_master.services.backend import hash_token
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import CreateAccount, GrantQuota, ListAccounts, RevokeAccount
from cloudpar_protocol.client_messages import ListPackages, PrepareUploads, Upload
from cloudpar_protocol.errors import RequestError
from support.backends import ADMIN_TOKEN

from .passing import Passing
from .sides import ACCOUNTS

REMEMBERED_S = 11.0
"""Seconds for which an adapter may remember the account of a token."""


class Operator(Passing):
    """Grants and revokes."""

    @rule(account=st.sampled_from(sorted(ACCOUNTS)), key=st.integers(0, 3), us=st.integers(-20_000, 20_000))
    def grant(self, account: str, key: int, us: int) -> None:
        request = GrantQuota(idempotency_key=f"{key}", account_id=account, quota_us=us)
        self.ask(ADMIN_TOKEN, routes.GRANT_QUOTA, request)

    @rule(account=st.sampled_from(sorted(ACCOUNTS)), sure=st.integers(0, 9))
    def revoke(self, account: str, sure: int) -> None:
        if sure:
            return
        self.ask(ADMIN_TOKEN, routes.REVOKE_ACCOUNT, RevokeAccount(account_id=account))
        self.revoked.add(account)
        for package in self.reference.packages.values():
            assert package.ended or package.account != account
        self.pass_time(REMEMBERED_S)

    @rule(key=st.sampled_from(["ann", "cid"]), account=st.sampled_from([*sorted(ACCOUNTS), ADMIN_TOKEN]))
    def look_around(self, key: str, account: str) -> None:
        self.create_account(key)
        self.ask(ADMIN_TOKEN, routes.LIST_ACCOUNTS, ListAccounts())
        self.list_packages(account)
        self.prepare_uploads(account, 10**6)

    def create_account(self, key: str) -> None:
        request = CreateAccount(idempotency_key=key, name=key, token_hash=hash_token(f"token {key}"), quota_us=7)
        self.ask(ADMIN_TOKEN, routes.CREATE_ACCOUNT, request)

    def list_packages(self, account: str) -> None:
        reply = self.ask(account, routes.LIST_PACKAGES, ListPackages())
        if not isinstance(reply, RequestError):
            known = [
                package_id for package_id in reversed(self.order)
                if account in {ADMIN_TOKEN, self.reference.packages[package_id].account}
            ]  # fmt: skip
            found = [summary.package_id for summary in reply.packages]
            assert found == [package_id for package_id in known if package_id in found]

    def prepare_uploads(self, account: str, size: int) -> None:
        uploads = [Upload(kind="code", size=size, crc32=7, hash="1" * 64)]
        self.ask(account, routes.PREPARE_UPLOADS, PrepareUploads(uploads=uploads))
