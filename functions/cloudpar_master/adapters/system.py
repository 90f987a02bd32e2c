import secrets
import time


class SystemClock:
    """The wall clock of this machine."""

    def now(self) -> float:
        """Return the seconds since 1970, UTC."""
        return time.time()

    def date(self, at: float) -> float:
        """Return `at` unchanged, because this clock is the machine's clock."""
        return at


class RandomIds:
    """Ids from the operating system's randomness."""

    def fresh(self) -> str:
        """Return 128 bits in hexadecimal digits."""
        return secrets.token_hex(16)
