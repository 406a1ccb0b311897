"""Settings shared by all tests."""

import contextlib
import os

# tiny models: a second thread costs more than it brings
os.environ.setdefault("OMP_NUM_THREADS", "1")

with contextlib.suppress(ImportError):  # machines that only run the GPU tests may lack hypothesis
    from hypothesis import settings

    # a busy machine is no failure
    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")
