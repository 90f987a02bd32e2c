"""Repeats requests to a master or blob store that does not answer or asks to wait, and logs warnings about it."""

import errno
import logging
import time
from typing import NamedTuple

from cloudpar.errors import MasterUnreachable, RateLimited, RequestError, Unavailable
from cloudpar_protocol.transport.payload_folder import NO_ROOM, PayloadFolder
from cloudpar_protocol.transport.socket_pool import Timeouts

from .retry_policy import RequestAttempts, RetryPolicy
from .storage_watch import folder_unwritable

CONNECT_S = 10.0

log = logging.getLogger("cloudpar")


class Peer(NamedTuple):
    """A server that requests go to, and how it answered recently.

    Attributes:
        kind: "master" or "blob store".
        address: The server's address, for messages.
        policy: How the server answered recently, and how long the client repeats requests to it. The master and each
            store have separate policies, so that a failing store does not look like a failing master.
    """

    kind: str
    address: str
    policy: RetryPolicy


class Waiting:
    """One request and its attempts: decides after each attempt whether to wait, and how long.

    Args:
        peer: The server that gets the request.
        folder: The payload folder of the pool's own master; None for other masters.
        answer_s: How long each attempt waits for an answer, in seconds. If the peer has never answered, an attempt
            waits instead for as long as the request may still take.
        allowance_s: How long to try, in seconds. None means as long as the peer's policy says.
    """

    def __init__(self, peer: Peer, folder: PayloadFolder | None, answer_s: float, allowance_s: float | None) -> None:
        self._peer = peer
        self._folder = folder
        self._is_limited = allowance_s is not None
        self._attempts = RequestAttempts(peer.policy, answer_s, allowance_s, time.monotonic())

    def timeouts(self) -> Timeouts:
        """Return how long the next attempt may take."""
        answer_s = self._attempts.timeout_s(time.monotonic())
        return Timeouts(min(CONNECT_S, answer_s), answer_s)

    def answered(self) -> None:
        """Record that the peer has answered. If the log says that the peer is away, log that it is back."""
        away_s = self._peer.policy.answered(time.monotonic())
        if away_s is not None:
            log.warning("cloudpar: the %s at %s is back after %.0f s", self._peer.kind, self._peer.address, away_s)

    def failed(self, error: OSError | RequestError) -> float:
        """Record a failed attempt; return the delay before the next attempt, in seconds.

        If the peer has been away for a while, or has delayed the request for a while, also log a warning, but not for
        each attempt.

        Raises:
            RequestError: The peer refused the request, or could not serve it within the time that the request may take.
            MasterUnreachable: The peer has not answered within the time that this request may take, or another
                program answers at its address.
            FolderUnwritable: The payload folder of the pool's own master has no space left. Either this process could
                not write to the folder, or the master could not serve the request within the time.
        """
        self._raise_final(error)
        asked_s = error.retry_after_s if isinstance(error, RequestError) else None
        # Before the first contact, an answer that asks the client to wait, but names no time, may come from another
        # program.
        is_master = self._peer.policy.met or asked_s is not None
        if isinstance(error, RateLimited) and not self._is_limited and is_master:
            self.answered()
            return self._paced(error)
        now = time.monotonic()
        delay_s = self._attempts.failed(now, asked_s)
        if delay_s is None:
            raise self._given_up(error, now - self._attempts.started_at) from None  # the new text quotes `error`
        if self._peer.policy.failed(now):
            what = "cannot serve requests now" if isinstance(error, RequestError) else "does not answer"
            log.warning(
                "cloudpar: the %s at %s %s (%s); waiting for it up to %.0f s",
                self._peer.kind, self._peer.address, what, _brief(error), self._attempts.allowance_s,
            )  # fmt: skip
        return delay_s

    def _raise_final(self, error: OSError | RequestError) -> None:
        """If repeating the request cannot help, raise the error or a clearer one."""
        if isinstance(error, RequestError) and not error.retryable:
            if type(error) is RequestError and not self._peer.policy.met:  # another program answers at this address
                raise self._given_up(error, 0.0) from None
            self.answered()
            raise error from None
        if self._folder is not None and isinstance(error, OSError) and error.errno in NO_ROOM:
            # This error comes from a write of this process. Repeating the write does not free space.
            raise folder_unwritable(self._folder, error.errno) from None

    def _paced(self, error: RateLimited) -> float:
        """Return the delay after an answer that asks the client to wait.

        Because the master answers, the client never gives up here.
        """
        now = time.monotonic()
        delay_s = self._attempts.paced(now, error.retry_after_s)
        if self._peer.policy.paced(self._attempts.paced_at, now):
            waited_s = now - self._attempts.paced_at
            log.warning(
                "cloudpar: the %s has delayed a request for %.0f s: %s", self._peer.kind, waited_s, _brief(error)
            )
        return delay_s

    def _given_up(self, error: Exception, waited_s: float) -> Exception:
        policy = self._peer.policy
        if self._folder is not None and isinstance(error, Unavailable):
            # Only a full disk makes the pool's own master unavailable for so long.
            return folder_unwritable(self._folder, errno.ENOSPC)
        if isinstance(error, RequestError) and policy.met:
            return error
        fix = (
            f"waited {waited_s:.0f} s for it (patience_s={policy.patience_s:g})"
            if policy.met
            else "check the endpoint, and that its master runs (on one machine: `cloudpar up`)"
        )
        return MasterUnreachable(f"no {self._peer.kind} answers at {self._peer.address}: {_brief(error)}; {fix}")


def _brief(error: Exception) -> str:
    return str(error) or type(error).__name__
