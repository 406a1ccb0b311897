"""What happens to lines of a file that cannot be used."""

import logging

from emea.errors import ConfigError, DataError, one_line

log = logging.getLogger(__name__)

ON_ERROR = ("stop", "skip")
NUM_NAMED = 5
"""Lines that are named when they are passed over; the others are counted."""


class BadLines:
    """Stops at the first line that cannot be used, or counts such lines and goes on.

    Args:
        label: what messages call the file.
        on_error: ``stop`` or ``skip``.
        unit: what the file consists of, where that is not lines.

    Attributes:
        num_lines: how many lines were passed over.
    """

    def __init__(self, label: str, on_error: str = "stop", unit: str = "line") -> None:
        if on_error not in ON_ERROR:
            raise ConfigError(f"on_error must be {' or '.join(ON_ERROR)}, got {on_error!r}")
        self.label = label
        self.unit = unit
        self.num_lines = 0
        self._skips = on_error == "skip"

    def add(self, line: int, reason: str) -> None:
        """Meet a line that cannot be used.

        Raises:
            DataError: where reading stops at such lines.
        """
        problem = f"{self.label}, {self.unit} {line}: {reason}"
        if not self._skips:
            raise DataError(f"{problem} (data.on_error=skip passes over such {self.unit}s)")
        self.num_lines += 1
        if self.num_lines <= NUM_NAMED:
            log.warning("%s: passed over", one_line(problem))

    def tell(self) -> None:
        """Say how many lines were passed over without being named."""
        if self.num_lines > NUM_NAMED:
            unnamed = self.num_lines - NUM_NAMED
            log.warning("%s: %d more %ss passed over", self.label, unnamed, self.unit)
