"""Old names work for a while, with a warning."""

import importlib
import warnings

import pytest

from emea.runtime.deprecated import warn_deprecated

RENAMED = [
    ("emea.fit.training_parts", "EarlyStopping", "FitStopping"),
    ("emea.results.recorded_run", "load_run", "load_record"),
    ("emea.results.recorded_run", "load_run_folders", "load_record_folders"),
]


@pytest.mark.parametrize(("module", "old", "new"), RENAMED)
def test_an_old_name_is_the_new_one(module: str, old: str, new: str) -> None:
    home = importlib.import_module(module)
    with pytest.warns(FutureWarning) as shown:
        found = getattr(home, old)
    assert found is getattr(home, new)
    (warning,) = shown
    assert str(warning.message) == (
        f"{module}.{old} is deprecated and will be removed in version 0.4. Use {module}.{new}."
    )
    assert warning.filename == __file__


def test_new_and_unknown_names_do_not_warn() -> None:
    home = importlib.import_module("emea.fit.training_parts")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert home.FitStopping is not None
        with pytest.raises(AttributeError, match="has no attribute 'Stopping'"):
            _ = home.Stopping


def test_each_use_is_one_warning_at_the_line_of_the_caller() -> None:
    with pytest.warns(
        FutureWarning, match=r"^a is deprecated .* 9\.9\. Use b\.$"
    ) as shown:
        warn_deprecated("a", "b", "9.9", stacklevel=1)
    assert [one.filename for one in shown] == [__file__]
