"""The compute time of one package: what it has used, and what it has reserved from its account's quota."""

from msgspec import Struct, field
from msgspec.structs import replace

GIVEN_BACK = 20
"""How many give-backs a package remembers. A worker repeats a give-back within seconds, and few other give-backs come
in between."""


class Quota(Struct, kw_only=True):
    """Compute time in microseconds. The account grants it in slices, numbered from 0.

    Attributes:
        used_us: The sum of the execution times of committed results, of tasks that were stopped, and of tasks that a
            worker gave back with a time to charge.
        reserved_us: The sum of the slices; after settling, the charge.
        next_slice: The number of the slice that the package requests now or next.
        wanted_us: The compute time that the package requests for the slice `next_slice`; 0: it requests none.
        ask_again_at: The package requests no slice before this time.
        exhausted: Whether the account granted nothing at the last request, and waiting for more was useless.
        given_back: The numbers (`GaveBack.number`) of the last GIVEN_BACK give-backs whose time was counted.
    """

    used_us: int = 0
    reserved_us: int = 0
    next_slice: int = field(name="slice", default=0)
    wanted_us: int = field(name="slice_us", default=0)
    ask_again_at: float = field(name="slice_at", default=0.0)
    exhausted: bool = field(name="wall", default=False)
    given_back: list[int] = []

    def draft(self) -> "Quota":
        """Return a copy that a fold may change. It shares no list with the original."""
        return replace(self, given_back=list(self.given_back))

    @property
    def reserve_spent(self) -> bool:
        """Whether the reserve is used up. Then new chunks are neither cut nor sent until the account grants a slice."""
        return self.used_us >= self.reserved_us

    @property
    def charged_us(self) -> int:
        """The charge to the account so far: the time used, but at most the time reserved.

        A task can use more time than was left. The account does not pay for the excess, because its quota is a hard
        limit.
        """
        return min(self.used_us, self.reserved_us)
