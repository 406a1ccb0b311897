"""Settings of the evaluation tests."""

from hypothesis import settings

# a deadline per example measures how busy the machine is
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
