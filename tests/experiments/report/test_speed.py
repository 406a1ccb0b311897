from experiments.archive.measurements import read_measurements
from experiments.archive.study import EXPERIMENTS

MEASUREMENTS = EXPERIMENTS / "speed"


def test_what_is_shown_was_measured_on_committed_code() -> None:
    found = read_measurements(MEASUREMENTS)
    assert len(found) >= 15
    for name, measurement in found.items():
        assert measurement["dirty"] == "false", name
