from cloudpar_master.core.policy import Policy
from cloudpar_master.core.recent import Recent
from cloudpar_master.core.token_bucket import Bucket, take
from cloudpar_master.ports import AccountRecord, Clock
from cloudpar_protocol.errors import RateLimited

KNOWN = 1_000
"""How many accounts are remembered: the accounts that sent requests last. The buckets of the others are probably
full."""


class RequestRate:
    """Bounds how often each account sends requests to this process. Nothing is stored, so a request costs no write.

    On AWS each process serves one request at a time, so this bound has little effect there. The throttling limit of API
    Gateway bounds all processes together.
    """

    def __init__(self, clock: Clock, policy: Policy) -> None:
        self._clock = clock
        self._policy = policy
        self._buckets = Recent[str, Bucket](KNOWN)

    def admit(self, account: AccountRecord) -> None:
        """Count a request of an account.

        Raises:
            RateLimited: The account sends requests too often.
        """
        now, policy = self._clock.now(), self._policy
        bucket = self._buckets.get(account.account_id, Bucket(policy.request_burst, now))
        bucket, wait_s = take(bucket, now, policy.requests_per_s, policy.request_burst)
        self._buckets[account.account_id] = bucket
        if wait_s:
            text = f"account {account.name!r} sends over {policy.requests_per_s:g} requests a second"
            raise RateLimited(f"{text}: wait as long as the answer says, or ask the operator for more", wait_s)
