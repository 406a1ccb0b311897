"""Neural models beside what others reported."""

from pathlib import Path

from emea.reporting.neural_alone import table
from emea.reporting.paper_numbers import PaperNumbers, load_paper_numbers
from emea.reporting.records import load_records

from .fabricated import scores, write_run

MODELS = Path(__file__).resolve().parents[2] / "experiments" / "models"


def test_either_direction_is_compared_over_splits(tmp_path: Path) -> None:
    reported: PaperNumbers = {
        ("dbp15k_zh", 0.3, "alinet"): {"hit@1": 0.5},
        ("dbp15k_ja", 0.3, "alinet"): {"hit@1": 0.6},
        ("dbp15k_zh", 0.3, "dual_amn"): {"hit@1": 0.7},
    }
    alone = {"method": "neural", "ratio": 0.3, "model": "alinet"}
    for seed, hit in enumerate((0.4, 0.5)):
        reverse = {"final": scores(hit), "final_reverse": scores(hit + 0.1)}
        write_run(tmp_path, f"zh{seed}", split_seed=seed, **alone, **reverse)
    write_run(tmp_path, "ja", data="dbp15k_ja", **alone, final_reverse=scores(0.7))
    write_run(tmp_path, "em", ratio=0.3, model="dual_amn")
    runs = load_records(tmp_path / "records")
    assert table(runs, reported).splitlines()[2:] == [
        "| alinet | dbp15k_zh | 30% | 2 | 0.500 | 0.450 ± 0.071 | -0.050 "
        "| 0.550 ± 0.071 | +0.050 |",
        "| alinet | dbp15k_ja | 30% | 1 | 0.600 | 0.500 (1 split) | -0.100 "
        "| 0.700 (1 split) | +0.100 |",
        "| dual_amn | dbp15k_zh | 30% | 0 | 0.700 | no record |  | no record |  |",
    ]


def test_three_models_on_three_pairs_were_reported() -> None:
    reported = load_paper_numbers(MODELS / "reported.csv")
    assert {model for _, _, model in reported} == {"dual_amn", "alinet", "iptranse"}
    assert len(reported) == 9
