"""A chunk as the text of a queue message."""

from typing import NamedTuple

from cloudpar_master.core.head import Head, OpenRange
from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import Message, Sending

FIELDS = 6
"""How many numbers of a text are read. Further numbers, which a master of a later release may add, are ignored."""

SMALLEST_COST_US = 1_000
"""The least work, in microseconds, that a chunk counts for when packages take turns. If a chunk counted for 0, a
package whose tasks take no time would never lose its turn."""


class ChunkText(NamedTuple):
    """The content of a queue message.

    Attributes:
        package_id, start, end, generation: The chunk: tasks [start, end), cut at this version of its package's head.
        losses: The number of workers that were lost with these tasks before this message was sent.
        queue_losses: The number of these workers that were lost after the chunk was cut. Such a worker may still run
            the chunk.
        waits_since_ms: When the chunk started to wait, in milliseconds of Unix time, if the chunk was put back because
            a worker could not run it. None: the chunk has waited since its message was sent.
    """

    package_id: str
    start: int
    end: int
    generation: int
    losses: int = 0
    queue_losses: int = 0
    waits_since_ms: int | None = None

    @classmethod
    def of(cls, package_id: str, chunk: OpenRange) -> "ChunkText":
        """Make the text of a chunk that its package sends."""
        return cls(package_id, chunk.start, chunk.end, chunk.generation, chunk.losses)

    @classmethod
    def parse(cls, body: str) -> "ChunkText":
        """Read a text.

        Raises:
            ValueError: The body is not the text of a chunk.

        >>> ChunkText.parse(ChunkText("p1", 0, 5, 7, losses=2).text)
        ChunkText(package_id='p1', start=0, end=5, generation=7, losses=2, queue_losses=0, waits_since_ms=None)
        """
        package_id, *numbers = body.split("#")
        if len(numbers) < 3:
            raise ValueError(f"{body[:100]!r} is not the text of a chunk")
        return cls(package_id, *map(int, numbers[:FIELDS]))

    @property
    def text(self) -> str:
        """The body of the message. Before the chunk is put back, the body is also the group and the deduplication id.

        >>> ChunkText("p1", 0, 5, 7).text, ChunkText("p1", 0, 5, 7, 2, 1, 1000).text
        ('p1#0#5#7', 'p1#0#5#7#2#1#1000')
        """
        fields = [self.package_id, self.start, self.end, self.generation]
        if self.waits_since_ms is not None:
            fields += [self.losses, self.queue_losses, self.waits_since_ms]
        elif self.losses:
            fields.append(self.losses)
        return "#".join(map(str, fields))

    @property
    def name(self) -> tuple[str, int, int, int]:
        """The chunk's name, which is the same in every message about the chunk."""
        return self.package_id, self.start, self.end, self.generation

    def is_untouched(self, message: Message) -> bool:
        """Whether no worker has received this chunk before, so that no worker can still run it."""
        return message.receives == 1 and not self.queue_losses

    def waited_us(self, message: Message, now: float) -> int:
        """Return the microseconds for which the chunk has waited since it was first sent.

        If a worker was lost with the chunk since then, return the time since the chunk came back into the queue, or 0
        if the queue does not know it.
        """
        if self.waits_since_ms is None or message.receives > 1:
            return message.wait_us
        return max(0, round(now * 1e6) - 1000 * self.waits_since_ms)

    def put_back(self, message: Message, now: float) -> "ChunkText":
        """Return the chunk for a new message, whose count of deliveries starts again."""
        lost = message.receives - 1
        return self._replace(
            losses=self.losses + lost,
            queue_losses=self.queue_losses + lost,
            waits_since_ms=round(now * 1000) - self.waited_us(message, now) // 1000,
        )


def sending(head: Head, chunk: ChunkText, policy: Policy, *, express: bool) -> Sending:
    """Make the message that sends a chunk to the queue."""
    tasks, pace = chunk.end - chunk.start, head.pace
    cost_us = round(pace.mean_us * tasks) if pace.measured else policy.chunk_target_us
    return Sending(
        chunk.text,
        chunk.text,
        head.account_id,
        head.package_id,
        first=chunk.start == 0,
        cost_us=max(cost_us, SMALLEST_COST_US),
        python=head.python,
        express=express,
    )
