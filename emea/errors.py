"""Errors that are the user's to mend: shown as one sentence, without a traceback."""


class UserError(Exception):
    """Something the user gave cannot be used; the message says what and how to mend it."""


class DataError(UserError):
    """A file, folder or graph cannot be used as it is."""


class DivergedError(UserError, FloatingPointError):
    """Training left the range of numbers."""


class ConfigError(UserError):
    """A configuration value or combination is not allowed."""
