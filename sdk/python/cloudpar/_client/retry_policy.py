"""How long to go on asking a master that does not answer: a state machine without I/O."""

import random
from dataclasses import dataclass, field

FIRST_CONTACT_S = 8.0
"""A master that never answered is given up after this: a wrong endpoint shall be an error within 10 s."""

NOTICE_S, NOTICE_EVERY_S = 5.0, 60.0
"""A request that the master has asked to wait for so long is worth a line, and one in so long at most."""

GROWTH, SHORTEST_S, LONGEST_S = 2.0, 0.02, 5.0


@dataclass
class RetryPolicy:
    """One master's recent history, shared by all requests to it.

    `met` says whether it ever answered, `away_since` when it stopped to.
    """

    patience_s: float
    first_contact_s: float = FIRST_CONTACT_S
    met: bool = False
    away_since: float | None = None
    warned: bool = False
    noticed_at: float | None = None
    jitter: random.Random = field(default_factory=random.Random)

    def answered(self, now: float) -> float | None:
        """The master answered; for how long it was away, if that had been said."""
        self.met = True
        away, self.away_since = self.away_since, None
        if not self.warned or away is None:
            return None
        self.warned = False
        return now - away

    def failed(self, now: float) -> bool:
        """No answer, or none that helps; whether to tell the user now."""
        if self.away_since is None:
            self.away_since = now
        if not self.met or self.warned or now - self.away_since < 1.0:
            return False
        self.warned = True
        return True

    def paced(self, since: float, now: float) -> bool:
        """The master has been asking somebody to wait since then; whether to tell the user now."""
        if now - since < NOTICE_S or (self.noticed_at is not None and now - self.noticed_at < NOTICE_EVERY_S):
            return False
        self.noticed_at = now
        return True


class Attempts:
    """The repetitions of one request: how long each may take, how long to wait before the next, when to give up.

    The time that counts against a master that never answered runs from the first try on; otherwise from its failure.
    """

    def __init__(self, policy: RetryPolicy, answer_s: float, allowance_s: float | None, now: float) -> None:
        self._policy = policy
        self._answer_s = answer_s
        self._strange = not policy.met
        self._allowance_s = allowance_s
        self._count = 0
        self._paces = 0
        self.began = now
        self.paced_since = now

    def timeout_s(self, now: float) -> float:
        """How long to wait for the next answer."""
        if self._strange:
            return max(0.1, self.began + self.allowance_s - now)
        return self._answer_s

    @property
    def allowance_s(self) -> float:
        """How long to go on in all."""
        usual = self._policy.first_contact_s if self._strange else self._policy.patience_s
        return usual if self._allowance_s is None else self._allowance_s

    def failed(self, now: float, asked_s: float | None = None) -> float | None:
        """How long to wait before the next try; None: give up. `asked_s` is the master's own wish."""
        self._count += 1
        if self._count == 1 and not self._strange:
            self.began = now
        delay_s = max(asked_s or 0.0, _grown_s(self._count)) * self._policy.jitter.uniform(0.75, 1.25)
        return delay_s if now + delay_s - self.began <= self.allowance_s else None

    def paced(self, now: float, asked_s: float | None = None) -> float:
        """How long to wait because the master says so: it is there, so this is no failure and never the end.

        It is asked ever more seldom, since its wish is only the soonest; not before that.
        """
        if not self._paces:
            self.paced_since = now
        self._paces += 1
        self._count, self._strange = 0, False
        return max(asked_s or 0.0, _grown_s(self._paces)) * self._policy.jitter.uniform(1.0, 1.25)


def _grown_s(count: int) -> float:
    return min(LONGEST_S, SHORTEST_S * GROWTH ** min(count - 1, 30))
