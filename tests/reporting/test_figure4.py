"""Figure 4 from fabricated runs."""

from pathlib import Path

from emea.reporting.figure4 import MODELS, found_runs, study
from emea.reporting.study import RATIOS

from .fabricated import line_of, made, reasoned, rows_of, scores

ANEW = {"em.num_candidates": 50, "em.iterations": 1}


def test_rows_tell_the_lift_of_every_model(tmp_path: Path) -> None:
    runs = [made("rrea"), made("amn", model="dual_amn", initial=scores(0.5))]
    runs += [made("lower", model="lightea", initial=scores(0.6), ratio=0.05)]
    rows = rows_of(study(runs, tmp_path).parts[-1])
    assert len(rows) == len(MODELS) * len(RATIOS)
    told = {(row[0], row[1]): row[2:] for row in rows}
    link = "[1](../study/runs.jsonl#L{})"
    one = " (1 split)"
    assert told["RREA", "1%"] == [
        "1",
        f"0.123{one}",
        f"0.500{one}",
        "+0.377",
        link.format(line_of("rrea")),
    ]
    assert told["Dual-AMN", "1%"][3] == "+0.000 (**no lift**)"
    assert told["LightEA", "5%"][3] == "-0.100 (**no lift**)"
    assert told["AliNet", "1%"] == ["", "not run", "not run", "", ""]


def test_models_that_train_anew_have_settings_of_their_own() -> None:
    runs = [made("fifty", model="alinet", params=ANEW), made("ten", model="alinet", started=9)]
    assert [one.run.folder.name for one in found_runs(runs, "alinet")[0.01]] == ["fifty"]
    runs = [made("fifty", params=ANEW, started=9), made("ten")]
    assert [one.run.folder.name for one in found_runs(runs, "rrea")[0.01]] == ["ten"]


def test_a_panel_per_model_and_one_of_them_all(tmp_path: Path) -> None:
    runs = [made(), made("b", ratio=0.3), reasoned("paris", 0.3), made("c", model="dual_amn")]
    figure = study(runs, tmp_path).figure
    assert figure is not None
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == [
        "(a) RREA",
        "(b) Dual-AMN",
        "(c) AliNet",
        "(d) IPTransE",
        "(e) LightEA",
        "(f) after EM",
    ]
    assert {axis.get_ylabel() for axis in figure.axes} == {"Hit@1"}
    before, after, paris = (line[0] for line in figure.axes[0].containers)
    assert before.get_xydata().tolist() == [[0, 0.1234], [4, 0.1234]]
    assert after.get_xydata().tolist() == [[0, 0.5], [4, 0.5]]
    assert paris.get_xydata().tolist() == [[0, 0.3]]
    of_all = [line[0].get_xydata().tolist() for line in figure.axes[-1].containers]
    assert of_all == [[[0, 0.5], [4, 0.5]], [[0, 0.5]], [], [], []]
