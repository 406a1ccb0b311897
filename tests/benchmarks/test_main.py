"""``python -m benchmarks``: names and errors."""

from unittest.mock import Mock

import pytest

from benchmarks import __main__ as command


@pytest.mark.parametrize("arguments", [[], ["all"]])
def test_without_a_name_the_usual_benchmarks_run(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Mock()
    monkeypatch.setattr(command, "import_module", loaded)
    assert command.main(arguments) == 0
    names = [call.args[0].removeprefix("benchmarks.") for call in loaded.call_args_list]
    assert names == [name.replace("-", "_") for name in command.USUAL]


def test_an_unknown_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["nothing"]) == 2
    assert "unknown benchmark 'nothing'" in capsys.readouterr().err
    assert command.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in command.BENCHMARKS)
