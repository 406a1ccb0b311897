"""Limits of the service, and the error that a request causes if it exceeds one."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one request.

    Args:
        num_bytes: Maximum size of a body.
        num_queries: Maximum number of queries of a batch, and of entities to extend.
        num_results: Maximum number of results of one query.
        num_values: Maximum number of values of a property of an entity.
        seconds: Maximum CPU time of a computation, which other programs do not prolong.
        connection_seconds: Maximum time from the first byte of a request to the end of its
            response. A slower client is disconnected.
        num_connections: Maximum number of clients at a time.
    """

    num_bytes: int = 4 * 2**20
    num_queries: int = 1000
    num_results: int = 100
    num_values: int = 100
    seconds: float = 20.0
    connection_seconds: float = 60.0
    num_connections: int = 64


class RequestError(Exception):
    """Raised if a request cannot be answered.

    Args:
        status: The status of the response.
        message: What is wrong, and what to do.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Deadline:
    """The CPU time of this thread at which a computation must end.

    Args:
        seconds: The time from now.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds
        self._seconds = seconds

    def check(self) -> None:
        """Raise an error if the time is over."""
        if time.thread_time() > self._end:
            raise RequestError(
                503,
                f"The request took longer than {self._seconds:g} seconds. Send smaller batches.",
            )
