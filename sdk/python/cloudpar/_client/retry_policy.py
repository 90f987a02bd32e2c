"""Decides how long to repeat requests to a server that does not answer or asks to wait. A state machine without I/O."""

from dataclasses import dataclass

from cloudpar_protocol.transport.retries import Backoff

FIRST_CONTACT_S = 8.0
"""How long the client repeats a request to a master that has never answered, in seconds. With this limit, a program
with a wrong endpoint gets an error within 10 s."""

NOTICE_S, NOTICE_EVERY_S = 5.0, 60.0
"""If a server delays a request for at least NOTICE_S seconds, the client logs a warning, at most once in NOTICE_EVERY_S
seconds."""

SHORTEST_S, LONGEST_S = 0.02, 5.0


@dataclass
class RetryPolicy:
    """How one server answered recently, and how long the client repeats requests to the server.

    All requests to the server share this object.

    `met` is True once the server has answered, and for a blob store from the start. `away_at` is the time of the
    monotonic clock at which requests to the server started to fail; None while the server answers.
    """

    patience_s: float
    first_contact_s: float = FIRST_CONTACT_S
    met: bool = False
    away_at: float | None = None
    warned: bool = False
    noticed_at: float | None = None

    def answered(self, now: float) -> float | None:
        """Record an answer. If users were warned that the server is away, return how long it was away, in seconds.

        Otherwise return None.
        """
        self.met = True
        away, self.away_at = self.away_at, None
        if not self.warned or away is None:
            return None
        self.warned = False
        return now - away

    def failed(self, now: float) -> bool:
        """Record a failed request; return whether to tell the user now."""
        if self.away_at is None:
            self.away_at = now
        if not self.met or self.warned or now - self.away_at < 1.0:
            return False
        self.warned = True
        return True

    def paced(self, paced_at: float, now: float) -> bool:
        """Record that the server has delayed a request since `paced_at`; return whether to tell the user now."""
        if now - paced_at < NOTICE_S or (self.noticed_at is not None and now - self.noticed_at < NOTICE_EVERY_S):
            return False
        self.noticed_at = now
        return True


class RequestAttempts:
    """The attempts of one request: how long each may take, how long to wait between them, and when to give up.

    If the server has never answered, the time until the client gives up starts at the first attempt. Otherwise it
    starts at the first failure. If the server asks the client to wait, the time starts again at the first failure after
    that.
    """

    def __init__(self, policy: RetryPolicy, answer_s: float, allowance_s: float | None, now: float) -> None:
        self._policy = policy
        self._answer_s = answer_s
        self._strange = not policy.met
        self._allowance_s = allowance_s
        self._is_first = True
        self._is_paced = False
        self._failures = Backoff(SHORTEST_S, LONGEST_S)
        self._paces = Backoff(SHORTEST_S, LONGEST_S)
        self.started_at = now
        self.paced_at = now

    def timeout_s(self, now: float) -> float:
        """How long to wait for the next answer, in seconds."""
        if self._strange:
            return max(0.1, self.started_at + self.allowance_s - now)
        return self._answer_s

    @property
    def allowance_s(self) -> float:
        """How long to repeat the request before giving up, in seconds."""
        usual = self._policy.first_contact_s if self._strange else self._policy.patience_s
        return usual if self._allowance_s is None else self._allowance_s

    def failed(self, now: float, asked_s: float | None = None) -> float | None:
        """Record a failed attempt; return the delay before the next attempt, in seconds, or None to give up.

        `asked_s` is the delay that the server requires; None if it requires none.
        """
        if self._is_first and not self._strange:
            self.started_at = now
        self._is_first = False
        delay_s = self._failures.next_s(asked_s)
        return delay_s if now + delay_s - self.started_at <= self.allowance_s else None

    def paced(self, now: float, asked_s: float | None = None) -> float:
        """Record that the server asks the client to wait; return the delay before the next attempt, in seconds.

        Because the server answers, the client never gives up here. The delays grow, since `asked_s` is only the
        earliest time at which another attempt can succeed. No delay is shorter than `asked_s`.
        """
        if not self._is_paced:
            self.paced_at = now
        self._is_paced, self._is_first, self._strange = True, True, False
        self._failures.reset()
        return self._paces.next_s(asked_s)
