"""The audit record: which operator did what to which account. Each server writes this record to its own log."""

from typing import Any

from msgspec import Struct

from cloudpar_protocol.account_messages import (
    AccountReply,
    CreateAccount,
    GrantQuota,
    RevokeAccount,
    RotateSeal,
    SetNetwork,
    SetRole,
)
from cloudpar_protocol.client_messages import CancelTasks

from .backend import Backend
from .dispatcher import Call

ADMIN = "the admin token"
"""How the record names the operator if all operators share one token."""


def facts(backend: Backend, call: Call, who: str, outcome: str, reply: Struct | None = None) -> dict[str, Any] | None:
    """Return the fields of the line about an operator's action; None if there is nothing to record.

    Args:
        backend: The backend of the master that carries the call out.
        call: The call.
        who: The operator's name, as the server knows it.
        outcome: "done", or the error's code.
        reply: The reply, if the call was carried out.
    """
    if call.caller.role != "admin":
        return None
    about: dict[str, Any]
    match call.request:
        case CreateAccount(name=name, quota_us=quota_us, idempotency_key=key, role=role, network=network):
            account_id = reply.account.account_id if isinstance(reply, AccountReply) else None
            about = {"account_id": account_id, "name": name, "quota_us": quota_us, "idempotency_key": key}
            about |= {"role": role} if role != "user" else {}
            about |= {"network": network} if network != "outbound" else {}
        case GrantQuota(account_id=account_id, quota_us=quota_us, idempotency_key=key):
            about = {"account_id": account_id, "quota_us": quota_us, "idempotency_key": key}
        case RevokeAccount(account_id=account_id):
            about = {"account_id": account_id}
        case RotateSeal(account_id=account_id, idempotency_key=key):
            about = {"account_id": account_id, "idempotency_key": key}
        case SetRole(account_id=account_id, task_role=task_role):
            about = {"account_id": account_id, "task_role": task_role}
        case SetNetwork(account_id=account_id, network=network):
            about = {"account_id": account_id, "network": network}
        case CancelTasks(package_id=package_id):
            about = {"package_id": package_id, "account_id": _owner(backend, package_id)}
        case _:
            return None
    return {"who": who, "action": call.route.name, "outcome": outcome, **about}


def _owner(backend: Backend, package_id: str) -> str | None:
    try:
        spec = backend.packages.spec(package_id)
    except Exception:  # noqa: BLE001 - a line without the owner is better than none
        return None
    return None if spec is None else spec.account_id
