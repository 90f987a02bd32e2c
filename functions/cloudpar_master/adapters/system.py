import secrets
import time


class SystemClock:
    """This machine's wall time."""

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        return time.time()


class RandomIds:
    """The operating system's randomness."""

    def fresh(self) -> str:
        """128 bits in hexadecimal digits."""
        return secrets.token_hex(16)
