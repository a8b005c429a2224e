"""One run: the real batcher and queue, a policy, replicas that take as long as their profile says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from bench.batching.clock import SimulatedClock
from forecastle.messages import Part, Request, Response
from forecastle.serving.batcher import Batcher
from forecastle.serving.link import ReplicaLink
from forecastle.serving.policy import BatchPolicy
from forecastle.serving.queue import Queue
from forecastle.serving.slot import Slot
from forecastle.serving.ticket import Result, Ticket

PARTS = [Part("", "", b"")]
ANSWER = Response(b"", "text/plain")
WARM_UP = 0.25
"""The share of the requests that come before those that count."""

Work = Callable[[int, float], float]
"""Runs a batch of a size at a time, and says how many seconds it took."""


@dataclass
class Run:
    """What came of a run; ``latencies`` are by request in the order of arrival, infinite where there was no answer.

    ``waited`` is how long a request was in the queue, on average.
    """

    seconds: float
    latencies: list[float]
    sizes: list[int] = field(default_factory=list)
    waited: float = 0.0

    @property
    def in_time(self) -> float:
        """The share of the requests that were answered; whatever is answered is so within its objective."""
        return sum(latency < math.inf for latency in self.latencies) / len(self.latencies)

    @property
    def rate(self) -> float:
        """Requests answered in time, per second."""
        return sum(latency < math.inf for latency in self.latencies) / self.seconds

    @property
    def mean_size(self) -> float:
        """How many requests a batch had, on average."""
        return sum(self.sizes) / len(self.sizes)

    def quantile(self, share: float) -> float:
        """Return the latency that this share of the requests does not exceed; infinite where too few were answered."""
        return sorted(self.latencies)[min(len(self.latencies) - 1, int(share * len(self.latencies)))]


def pooled(runs: Sequence[Run]) -> Run:
    """Return several runs as one."""
    return Run(
        sum(run.seconds for run in runs),
        [latency for run in runs for latency in run.latencies],
        [size for run in runs for size in run.sizes],
        max(run.waited for run in runs),
    )


class SimulatedReplica(ReplicaLink):
    """A replica that works off its batches one after the other."""

    def __init__(self, clock: SimulatedClock, work: Work) -> None:
        self._clock = clock
        self._work = work
        self._free = 0.0
        self.sizes: list[int] = []
        self.batcher: Batcher
        self.slot: Slot

    def send(self, batch: int, requests: Sequence[Request], now: float) -> None:
        """Take a batch, and answer it once it would be done."""
        size = len(requests)
        self.sizes.append(size)
        begins = max(now, self._free)
        seconds = self._work(size, begins)
        self._free = begins + seconds

        def answer() -> None:
            results: list[Result] = [ANSWER] * size
            assert self.batcher.answered(self.slot, batch, results, seconds)

        self._clock.call_at(self._free, answer)

    def close(self) -> None:
        """Do nothing: there is no connection."""


def simulate(policy: BatchPolicy, work: Work, times: Sequence[float], slo: float, replicas: int = 1) -> Run:
    """Send requests at ``times``, each with ``slo`` seconds to its deadline, and see what comes of them."""
    clock = SimulatedClock()
    batcher = Batcher("m", policy=policy, queue=Queue(10_000), clock=clock, limit=math.inf)
    links = [SimulatedReplica(clock, work) for _ in range(replicas)]
    for link in links:
        link.batcher, link.slot = batcher, Slot(link, lambda: None)
        batcher.attach(link.slot)
    latencies = [math.inf] * len(times)

    def ticket(i: int, when: float) -> Ticket:
        def done(result: Result) -> None:
            if isinstance(result, Response):
                latencies[i] = clock.time - when

        return Ticket(Request("r", "m", PARTS, "*/*", when + slo), done, when)

    for i, when in enumerate(times):
        if when > clock.time:
            clock.run(when)
        batcher.submit(ticket(i, when))
    clock.run(times[-1] + 2 * slo + 60.0)
    first = int(WARM_UP * len(times))
    sizes = [size for link in links for size in link.sizes[int(WARM_UP * len(link.sizes)) :]]
    waited = batcher.stats.queue_seconds.total / len(times)
    return Run(times[-1] - times[first], latencies[first:], sizes, waited)


def chance(*seed: object) -> Random:
    """Return a source of chance that is the same for the same seed, in every process."""
    return Random(repr(seed))
