"""The paper's tables and figures from fabricated runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from emea.results.recorded_run import RecordedRun
from emea.results.report import Report, Spec
from experiments.report.filling import made_report
from experiments.report.methods import DUAL_PARTS, EMEA
from experiments.report.run_table import run_table
from experiments.report.significance import shown_p
from experiments.report.studies import STUDIES
from experiments.report.studies.headline import HEADLINE
from experiments.report.study_spec import DBP15K, DWY100K, RATIOS
from experiments.report.violins import distribution, outline

from .fabricated import alone, history, made, reasoned, scores, texts, viewed, write_run

Texts = dict[tuple[str, ...], dict[str, str]]
ZH = ("dbp15k_zh", "1%")
TIMES = "initial,neural,neural_sd,joint"
PUBLISHED = {
    "table1": (
        "hit@1,mrr,mr",
        ["dbp15k_zh,0.01,rrea,0.14,0.2,6.5", "dbp15k_zh,0.01,emea,0.517,,116.4"],
    ),
    "table2": (
        "hit@1,mrr",
        ["dbp15k_zh,0.01,rrea_semi,0.3,0.35", "dbp15k_zh,0.01,emea_semi,0.49,"],
    ),
    "table3": (
        "hit@1,mrr",
        ["dbp15k_zh,0.3,rsn_sup,0.508,0.591", "dbp15k_zh,0.3,dual_amn_semi,0.808,"],
    ),
    "table4": (TIMES, [f"dbp15k_zh,{ratio},emea,250.4,100,2,90" for ratio in RATIOS]),
    "table5": (TIMES, [f"dwy100k_dbp_wd,{ratio},emea,250.4,100,2,90" for ratio in RATIOS]),
    "dual": ("hit@1", ["dbp15k_zh,0.01,Best,0.6", "dbp15k_zh,0.01,Second,0.5"]),
}


@pytest.fixture
def published(tmp_path: Path) -> Path:
    for study, (titles, lines) in PUBLISHED.items():
        (tmp_path / study).mkdir()
        name = "published.csv" if study == "dual" else "paper.csv"
        text = "\n".join([f"data,ratio,method,{titles}", *lines]) + "\n"
        (tmp_path / study / name).write_text(text)
    return tmp_path


def report_of(name: str, runs: Iterable[RecordedRun], published: Path) -> Report:
    spec = HEADLINE if name == "summary" else STUDIES[name]
    return made_report(spec, run_table(runs), published)


def tables(report: Report) -> dict[str, Texts]:
    """The tables of a report by heading."""
    return {part.title: texts(part.table) for part in report.parts if part.table}


def drawn(spec: Spec) -> dict[str, dict[str, list[tuple[str, float]]]]:
    """The points of a single chart by panel and series."""
    found: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for panel in spec["concat"]:
        for value in panel["data"]["values"]:
            series = found.setdefault(panel.get("title", ""), {})
            series.setdefault(value["series"], []).append((value["x"], value["y"]))
    return found


def test_table1_has_every_cell_and_the_all_target_ranking(published: Path) -> None:
    runs = [alone(0.2), reasoned("paris", 0.3), made("s0", final=scores(0.4))]
    runs += [made("s1", final=scores(0.5), split_seed=1), made("dual", em="dual")]
    report = report_of("table1", runs, published)
    found = tables(report)
    assert len(found["Hit@1 among test targets"]) == 5 * 5 * 5
    assert found["Hit@1 among test targets"][*ZH, "EMEA"]["verdict, strict"] == "below"
    assert found["MR among test targets"][*ZH, "EMEA"]["paper"] == "116.4"
    everywhere = found["Hit@1 among all targets"]
    assert everywhere[*ZH, "EMEA"]["strict"] == "0.225 ± 0.035"
    assert {labels[0] for labels in everywhere}.isdisjoint(DWY100K)
    large = [
        e for part in report.parts for e in part.entries if e.line and e.line["data"] in DWY100K
    ]
    assert large and all(entry.cell is None for entry in large)
    assert report.provenance.startswith("5 recorded runs. ")


def test_reasoning_has_precision_time_and_memory(published: Path) -> None:
    cost = {"seconds": {"total": 4.0}, "peak_memory_mb": 400.0}
    runs = [reasoned("paris", 0.4, data="other", **cost)]
    runs += [reasoned("paris", 0.5, data="other", split_seed=1, **cost), reasoned("paris", 0.4)]
    runs += [reasoned("paris", 0.4, data="official", ratio=None)]
    found = tables(report_of("table1", runs, published))
    assert found["Answers of PARIS and PRASE"] == {
        ("PARIS", *ZH): {"precision": "0.500", "F1": "0.450"},
        ("PRASE", *ZH): {"precision": "not run", "F1": "not run"},
    }
    assert found["PARIS and PRASE on other pairs"]["PARIS", "other", "1%"] == {
        "machine": "some GPU",
        "Hit@1": "0.450 ± 0.071",
        "precision": "0.550 ± 0.071",
        "F1": "0.500 ± 0.071",
        "whole run, s": "4.0",
        "peak memory, MB": "400",
    }


def test_the_headline_shows_the_effect_of_test_links(published: Path) -> None:
    runs = [alone(0.2), alone(0.2, split_seed=1), made("s0", final=scores(0.4))]
    runs += [made("s1", final=scores(0.5), split_seed=1), made("dual", em="dual")]
    runs += [made("released", final=scores(0.6), protocol="released")]
    report = report_of("summary", runs, published)
    row = tables(report)["Hit@1 on DBP15K"][ZH]
    assert row == {
        "RREA (paper)": "0.140",
        "RREA": "0.200 ± 0.000",
        "EMEA (paper)": "0.517",
        "EMEA released": "0.600",
        "EMEA strict": "0.450 ± 0.071",
        "released - strict": "+0.150",
        "em=dual": "0.500",
        "em=one_to_one": "not run",
        "three encoders": "not run",
        "splits": "2, 1, 2, 1, 0, 0",
    }
    assert report.chart is not None
    assert drawn(report.chart)["dbp15k_zh"]["EMEA (paper)"] == [("1%", 0.517)]


def test_the_headline_compares_mean_ranks_with_the_paper(published: Path) -> None:
    runs = [alone(0.13), made("r", protocol="released", final=scores(0.5) | {"mr": 93.12})]
    row = tables(report_of("summary", runs, published))["Mean ranks on DBP15K"][ZH]
    assert (row["RREA (paper)"], row["RREA"], row["RREA, difference"]) == ("6.5", "1.3", "-80%")
    assert (row["EMEA released"], row["released, difference"]) == ("93.1", "-20%")
    assert (row["EMEA strict"], row["strict, difference"]) == ("not run", "")


def test_table2_shows_both_stages_of_a_run(published: Path, tmp_path: Path) -> None:
    semi = {"training": "semi", "initial": scores(0.31)}
    ranks = {"initial": [2, 2, 2, 1], "final": [1, 1, 2, 2]}
    runs = [write_run(tmp_path / "study", "a", ranks, protocol="released", **semi)]
    runs += [made("sup", protocol="released"), alone(0.32, training="semi", ratio=0.05)]
    found = tables(report_of("table2", runs, published))
    hit = found["Hit@1 among test targets"]
    assert len(hit) == 3 * 5 * 2
    rrea, emea = hit[*ZH, "RREA (semi)"], hit[*ZH, "EMEA (semi)"]
    assert (rrea["released"], rrea["verdict, released"], rrea["strict"]) == (
        "0.310",
        "within",
        "not run",
    )
    assert (emea["released"], emea["released - paper"]) == ("0.500", "+0.010")
    assert found["MRR among test targets"][*ZH, "RREA (semi)"]["verdict, released"] == "below"
    # a model without EM counts under both protocols, if there is no run with EM
    five = hit["dbp15k_zh", "5%", "RREA (semi)"]
    assert (five["released"], five["strict"]) == ("0.320", "0.320")
    assert list(found["Significance"][ZH].values()) == ["0.638", "0.638", "", ""]


def test_table3_has_reported_models_and_the_other_direction(published: Path) -> None:
    kind: dict[str, Any] = {"ratio": 0.3, "final_reverse": scores(0.79)}
    runs = [
        alone(0.8, "dual_amn", model="dual_amn", training="semi", **kind),
        alone(0.6, "lightea", model="lightea", data="dbp15k_fr", **kind),
        made("em", ratio=0.3, initial=scores(0.72)),
        alone(0.9, "few labels", model="dual_amn", training="semi"),
    ]
    found = tables(report_of("table3", runs, published))
    hit = found["Hit@1 among test targets, 30% of the links"]
    zh, fr = ("dbp15k_zh", "30%"), ("dbp15k_fr", "30%")
    expected = {(*zh, name) for name in ("RSN (sup)", "RREA (sup)", "Dual-AMN (semi)")}
    assert set(hit) == expected | {(*fr, "LightEA (sup)")}
    assert hit[*zh, "RSN (sup)"]["strict"] == "not run"
    assert hit[*zh, "Dual-AMN (semi)"]["strict - paper"] == "-0.008"
    assert hit[*zh, "RREA (sup)"]["strict"] == "0.720"  # the first model of an EM run
    reverse = {
        labels: row for labels, row in found["The other direction"].items() if row["difference"]
    }
    assert reverse == {
        (*zh, "Dual-AMN (semi)"): {
            "reported": "0.808",
            "Hit@1, target → source": "0.790",
            "difference": "-0.018",
        }
    }


def test_times_are_means_over_iterations(published: Path) -> None:
    hits = ((0.1, 0.2), (0.3, 0.4), (0.5, 0.6))
    whole = made("whole", history=history(*hits, neural=(100.0, 20.0, 30.0)))
    taken = {"params": {"initial_from": "file"}, "split_seed": 1}
    later = made("later", history=history(*hits, neural=(0.0, 40.0, 50.0)), **taken)
    found = tables(report_of("table4", [whole, later], published))[""]
    # weights that were read took no training, and iteration 0 is the first training
    assert found[ZH] == {
        "first, paper": "250",
        "neural, paper": "100 ± 2",
        "joint, paper": "90",
        "first": "100.00",
        "neural": "35.00 ± 12.91",
        "joint": "0.75 ± 0.00",
        "machine": "some GPU",
    }
    own = made("own", "table4", split_seed=2, history=history(*hits, neural=(9.0, 1.0, 1.0)))
    assert tables(report_of("table4", [whole, own], published))[""][ZH]["first"] == "9.00"


def test_minutes_of_the_paper_become_seconds(published: Path) -> None:
    kind = {"data": "contea_fr_en", "ratio": 0.2}
    runs = [made("five", params={"em.iterations": 5}, **kind), made("ten", split_seed=1, **kind)]
    row = tables(report_of("table5", runs, published))[""]["contea_fr_en", "20%"]
    assert (row["first, paper"], row["neural, paper"]) == ("15024", "6000 ± 120")
    assert row["neural"] == "1.00"


def test_figure4_shows_the_lift_of_every_model(published: Path) -> None:
    runs = [made("rrea"), made("b", ratio=0.3), reasoned("paris", 0.3)]
    runs += [made("amn", model="dual_amn", initial=scores(0.5))]
    own = {"em.num_candidates": 50, "em.iterations": 1}
    runs += [made("fifty", model="alinet", params=own), made("ten", model="alinet", started=9)]
    ten = {"em.num_candidates": 50, "em.iterations": 10}
    runs += [made("usual stopping", model="alinet", params=ten, started=9)]
    ten |= {"model.early_stopping.patience": 2, "model.early_stopping.held_out": 0.2}
    runs += [made("released stopping", model="alinet", params=ten, final=scores(0.6))]
    runs += [made("rrea50", params=own, started=9)]
    report = report_of("figure4", runs, published)
    found = tables(report)["Hit@1, protocol `strict`"]
    assert len(found) == 7 * len(RATIOS)
    assert found["RREA", "1%"] == {
        "model": "0.123",
        "EMEA": "0.500",
        "lift": "+0.377",
        "PARIS": "0.300",
    }
    assert found["Dual-AMN", "1%"]["lift"] == "+0.000"
    assert found["AliNet (1 iteration)", "1%"]["EMEA"] == "0.500"
    assert found["AliNet (10, released stopping)", "1%"]["EMEA"] == "0.600"
    assert found["IPTransE (1 iteration)", "1%"]["EMEA"] == "not run"
    assert report.chart is not None
    panels = drawn(report.chart)
    names = ["RREA", "Dual-AMN", "AliNet (1 iteration)", "AliNet (10, released stopping)"]
    assert list(panels) == names
    assert panels["RREA"] == {
        "model": [("1%", 0.1234), ("30%", 0.1234)],
        "EMEA": [("1%", 0.5), ("30%", 0.5)],
        "PARIS": [("1%", 0.3)],
    }


def test_figure5_follows_the_iterations(published: Path) -> None:
    short, long = ((0.1, 0.2), (0.5, 0.4)), ((0.2, 0.3), (0.6, 0.5))
    runs = [made("a", history=history(*short)), made("b", history=history(*long), split_seed=1)]
    runs += [made("c", history=history(*long), protocol="released", ratio=0.05)]
    report = report_of("figure5", runs, published)
    found = tables(report)[""]
    assert found["1%, strict", "1"] == {
        "neural model": "0.550 ± 0.071",
        "joint distribution": "0.450 ± 0.071",
    }
    assert found["5%, released", "0"]["joint distribution"] == "0.300 (1 split)"
    assert report.chart is not None
    panels = drawn(report.chart)
    assert list(panels) == ["1%, strict", "5%, released"]
    assert panels["1%, strict"]["neural model"] == [("0", 0.15), ("1", 0.55)]


def test_figure6_compares_sets_of_rules(published: Path) -> None:
    conflict = {"rule": "avoid_conflict", "final": scores(0.3)}
    more = {"rule.num_neighbours": 20}
    runs = [made(), made("b", **conflict), made("c", training="semi", ratio=0.05, **conflict)]
    runs += [made("more", params=more, started=9, **conflict)]
    runs += [made("released", protocol="released", **conflict)]
    report = report_of("figure6", runs, published)
    found = tables(report)
    row = found["Hit@1, protocol `strict`"]["supervised", "1%"]
    assert row == {"RREA": "0.123", "PARIS": "0.500", "AvoidConf": "0.300", "both": "not run"}
    assert found["Hit@1, protocol `released`"]["supervised", "1%"]["AvoidConf"] == "0.300"
    assert report.chart is not None
    panels = drawn(report.chart)
    assert panels["semi-supervised"] == {"RREA": [("5%", 0.1234)], "AvoidConf": [("5%", 0.3)]}


def with_k(value: int, hit: float, **changes: float) -> RecordedRun:
    return made(f"k{value}", params={"em.num_candidates": value}, final=scores(hit), **changes)


def test_figure7_compares_values_on_common_splits(published: Path) -> None:
    runs = [with_k(10, hit, split_seed=seed) for seed, hit in enumerate((0.1, 0.2, 0.5))]
    runs += [with_k(20, 0.6, split_seed=seed) for seed in (1, 2)] + [with_k(50, 0.7, split_seed=2)]
    n15 = {"params": {"rule.num_neighbours": 15}, "rule": "avoid_conflict", "ratio": 0.1}
    report = report_of("figure7", [*runs, made("n15", **n15)], published)
    found = tables(report)["Hit@1 and mean rank, protocol `strict`"]
    assert len(found) == 3 * 4 * 3
    assert found["K, PARIS", "10", "1%"] == {"Hit@1": "0.500", "MR": "5.0"}
    assert found["N, AvoidConf", "15", "10%"]["Hit@1"] == "0.500"
    assert found["K, PARIS", "5", "1%"] == {"Hit@1": "not run", "MR": "not run"}
    assert report.chart is not None
    hit, rank = report.chart["vconcat"]
    assert drawn(hit)["K, PARIS"] == {"1%": [("10", 0.5), ("20", 0.6), ("50", 0.7)]}
    assert drawn(rank)["K, PARIS"] == {"1%": [("10", 5.0), ("20", 6.0), ("50", 7.0)]}


def stage(mean: float, conflicts: float, num_entities: int = 100) -> dict[str, Any]:
    """A share ``mean`` of the entities has compatibility 1, the others have 0."""
    high = round(mean * num_entities)
    histogram = [num_entities - high, *[0] * 48, high]
    return {"mean": mean, "conflicts": conflicts, "histogram": histogram, "num_unmatched": 0}


def compatible(initial: float, final: float, num_entities: int = 100) -> dict[str, Any]:
    stages = {"initial": initial, "final": final}
    section = {name: stage(mean, 1 - mean, num_entities) for name, mean in stages.items()}
    return section | {"oracle": stage(0.9, 0.0, num_entities)}


def test_figure8_shows_compatibility_and_conflicts(published: Path) -> None:
    five = {"ratio": 0.05, "split_seed": 1}
    runs = [made("a", ratio=0.05, compatibility=compatible(0.2, 0.6))]
    runs += [made("b", compatibility=compatible(0.4, 0.8, 1000), **five)]
    runs += [made("later", ratio=0.05, started=9)]  # has no compatibility
    for number, other in enumerate(({"model": "lightea"}, {"em": "dual"}, {"ratio": None})):
        kind: dict[str, Any] = {"ratio": 0.05, "compatibility": compatible(0.1, 0.1), "started": 9}
        runs.append(made(f"other{number}", **kind | other))
    report = report_of("figure8", runs, published)
    row = tables(report)["Compatibility and conflicts, protocol `strict`"]["5%",]
    assert row == {
        "compatibility, RREA": "0.300 ± 0.141",
        "compatibility, EMEA": "0.700 ± 0.141",
        "compatibility, oracle": "0.900 ± 0.000",
        "conflicts, RREA": "0.700 ± 0.141",
        "conflicts, EMEA": "0.300 ± 0.141",
        "splits": "2",
    }
    assert report.chart is not None
    means, violin = report.chart["vconcat"]
    assert [part["title"] for part in means["hconcat"]][1] == "Conflicting predictions"
    assert [part["title"]["text"] for part in violin["hconcat"]] == ["5%", "oracle"]
    assert report_of("figure8", [made()], published).chart is None


def test_splits_have_equal_weight_in_a_distribution() -> None:
    runs = [made("a", compatibility=compatible(0.2, 0.6))]
    runs += [made("b", compatibility=compatible(0.4, 0.8, 1000), split_seed=1)]
    found = viewed(runs).of(EMEA, "strict", "dbp15k_zh", 0.01)
    shares = distribution(found, "initial")
    assert len(found) == 2
    assert shares[[0, -1]] == pytest.approx([0.7, 0.3])
    assert shares.sum() == pytest.approx(1)


def test_an_outline_keeps_the_shares() -> None:
    shares = np.zeros(50)
    shares[[0, 25]] = 0.5
    height, width = outline(shares)
    assert (height[0], height[-1]) == (0, 1)
    assert width.max() == pytest.approx(1)
    # the part that is reflected at the end stays inside: both halves hold the same
    assert width[1:14].sum() == pytest.approx(width[14:-1].sum(), rel=1e-3)


def dual(name: str, hit: float, params: dict[str, Any] | None = None, **more: Any) -> RecordedRun:
    value = {**scores(hit), "hit@10": 0.9}
    costs = {"calibration": {"ece": 0.02}, "peak_memory_mb": 100.0, "seconds": {"total": 5.0}}
    measured = {"final": value, "final_reverse": value, "em": "dual", **costs}
    return made(name, params=DUAL_PARTS | (params or {}), **(measured | more))


OFF = {"em.two_way.propagation": 0}


def test_dual_is_next_to_the_papers_em_and_the_best_published(published: Path) -> None:
    runs = [dual("s0", 0.7), dual("s1", 0.72, split_seed=1), alone(0.15)]
    runs += [made("em", final=scores(0.46)), made("released", protocol="released")]
    found = tables(report_of("dual", runs, published))
    results = found["Hit@1 among test targets"]
    assert results[ZH] == {
        "RREA": "0.150 (1 split)",
        "em=paper": "0.460 (1 split)",
        "encoder": "0.500 (2 splits)",
        "em=dual": "0.710 ± 0.014 (2 splits)",
        "published": "0.600 Best *",
        "difference": "+0.110",
    }
    assert results["dbp15k_zh", "5%"]["published"] == "not available to us"
    assert results["dbp15k_ja", "5%"]["published"] == ""
    rest = found["Other metrics, time and memory"][ZH]
    assert (rest["Hit@10"], rest["all targets"], rest["seconds"]) == ("0.900", "0.355", "5")
    assert (rest["calibration error"], rest["splits"]) == ("0.020", "2")


def test_paired_tests_use_the_splits_that_both_methods_have(published: Path) -> None:
    runs = [dual(f"d{seed}", 0.7 + seed / 100, split_seed=seed) for seed in range(5)]
    papers = [0.5, 0.52, 0.51]
    runs += [
        made(f"p{seed}", split_seed=seed, final=scores(hit)) for seed, hit in enumerate(papers)
    ]
    found = tables(report_of("dual", runs, published))
    row = found["`em=dual` against `em=paper`, paired over splits"][ZH]
    assert (row["em=paper"], row["em=dual"], row["gain"]) == ("0.510", "0.710", "+0.200")
    p = ttest_rel([0.7, 0.71, 0.72], papers).pvalue
    assert (row["p"], row["splits"]) == (shown_p([p]), "3")
    assert "One-to-one inference against `em=dual`, paired over splits" not in found


def test_variants_appear_once_they_were_run(published: Path) -> None:
    title = "Dense evidence, protocol `released`"
    usual = [made(f"u{seed}", protocol="released", split_seed=seed) for seed in range(3)]
    assert title not in tables(report_of("table1", usual, published))
    steps = history((0.1234, 0.2), (0.5, 0.4))
    steps[0]["candidate_prob"] = 0.33
    settings = {"protocol": "released", "params": {"em.evidence": "dense"}, "history": steps}
    dense = [made(f"d{seed}", split_seed=seed, final=scores(0.6), **settings) for seed in (1, 2)]
    found = tables(report_of("table1", [*usual, *dense], published))
    row = found[title][ZH]
    assert (row["Hit@1, paper"], row["Hit@1, usual"]) == ("0.517", "0.500 ± 0.000")
    assert (row["Hit@1, dense"], row["Hit@1, change"]) == ("0.600 ± 0.000", "+0.100")
    assert (row["in candidates"], row["Hit@1, p"], row["splits"]) == ("0.330 ± 0.000", "", "2")
    # the usual rows do not change
    results = found["Hit@1 among test targets"]["dbp15k_zh", "1%", "EMEA"]
    assert results["released"] == "0.500 ± 0.000"


def test_the_test_pool_has_a_table_of_its_own(published: Path) -> None:
    known = dual("pool", 0.8, {"protocol.test_pool": True}, protocol="released")
    known.metrics["test_pool"] = {"hit@1": 0.9}
    others = [dual("usual", 0.7), dual("other", 0.1, split_seed=1)]
    found = tables(report_of("dual", [*others, known], published))
    row = found["`em=dual` with knowledge of the test pool"][ZH]
    assert (row["assignment"], row["ranking"], row["strict"]) == ("0.900", "0.800", "0.700")
    assert row["splits"] == "1"
    assert found["Hit@1 among test targets"][ZH]["em=dual"] == "0.400 ± 0.424 (2 splits)"
    assert "`em=one_to_one` with knowledge of the test pool" not in found


def test_validation_links_are_priced_on_the_same_splits(published: Path) -> None:
    runs = [dual("usual", 0.7), dual("other", 0.1, split_seed=1)]
    runs += [dual("train", 0.65, {"split.validation_from": "train"})]
    runs += [dual("none", 0.6, {"split.num_validation": 0})]
    found = tables(report_of("dual", runs, published))
    row = found["`em=dual` without additional validation links"][ZH]
    assert (row["validation from train"], row["validation from train: change"]) == (
        "0.650",
        "-0.050",
    )
    assert (row["no validation"], row["no validation: change"]) == ("0.600", "-0.100")


def test_other_pairs_have_paris_on_the_same_splits(published: Path) -> None:
    place = {"data": "contea_fr_en", "ratio": 0.2}
    runs = [dual("a", 0.7, **place), reasoned("paris", 0.3, **place)]
    runs += [reasoned("paris", 0.9, split_seed=1, **place)]
    found = tables(report_of("dual", runs, published))
    row = found["Pairs that were not used during development"]["contea_fr_en", "20%"]
    assert (row["PARIS"], row["RREA"], row["em=dual"]) == ("0.300", "0.123", "0.700")
    assert (row["all targets"], row["GPU memory, MB"]) == ("0.350", "100")


@pytest.mark.parametrize("turned", [False, True])
def test_changes_are_relative_to_the_complete_method(published: Path, turned: bool) -> None:
    runs = [dual("s0", 0.7), dual("s1", 0.9, split_seed=1)]
    runs += [dual("early", 0.6, OFF, started=1), dual("late", 0.65, OFF, started=2)]
    runs += [dual("alone", 0.66, OFF, ratio=0.3)]
    for number, other in enumerate(
        ({"protocol": "released"}, {"split_seed": 1}, {"data": DBP15K[2]}, {"em": "paper"})
    ):
        runs.append(dual(f"other{number}", 0.1, {"em.two_way.memory": 0.5}, **other))
    found = tables(report_of("dual", runs[::-1] if turned else runs, published))
    changes = found["One setting changed"]
    assert set(changes) == {("nothing",), ("no propagation of candidates",)}
    row = changes["no propagation of candidates",]
    assert (row["1%"], row["change at 1%"]) == ("0.650", "-0.050")
    assert (row["30%"], row["change at 30%"], row["5%"]) == ("0.660", "", "")


def labelled(arm: str, asked: int, hit: float, iterations: int = 1, **changes: Any) -> RecordedRun:
    """A run of the benchmark of suggested labels on ja."""
    marks = {"data.benchmark": f"labels {arm} {asked}", "data.benchmark_ratio": 0.01}
    kind = {"data": "dbp15k_ja", "em": "one_to_one", "split": "known", "ratio": None}
    kind |= {"final": scores(hit), "num_links": {"train": 150 + asked, "test": 9}}
    return made(f"{arm}-{asked}", params={"em.iterations": iterations, **marks}, **(kind | changes))


def test_suggested_labels_are_compared_with_more_random_ones(published: Path) -> None:
    runs = [labelled("start", 0, 0.5), labelled("suggested", 50, 0.6)]
    runs += [labelled("suggested", 50, 0.7, split_seed=1), labelled("control", 50, 0.55)]
    runs += [labelled("random", 50, 0.61), labelled("more", 75, 0.63), labelled("more", 50, 0.1)]
    found = tables(report_of("dual", runs, published))["Suggested and random labels"]
    assert list(found) == [("dbp15k_ja", "50"), ("dbp15k_ja", "100"), ("dbp15k_ja", "200")] + [
        ("dbp15k_fr", asked) for asked in ("50", "100", "200")
    ]
    row = found["dbp15k_ja", "50"]
    assert (row["at the start"], row["no labels"], row["random"]) == ("0.500", "0.550", "0.610")
    assert (row["suggested"], row["random, 1.5 times"]) == ("0.650 ± 0.071", "0.630")
    assert (row["gain"], row["margin"]) == ("+0.040", "+0.020")
    assert (row["training links"], row["splits"]) == ("200", "2")


def test_runs_of_a_benchmark_are_in_no_other_table(published: Path) -> None:
    run = labelled("start", 0, 0.5, iterations=5)
    parts = report_of("dual", [run], published).parts
    shown = [part.title for part in parts if part.table and part.table.reduced().rows]
    assert shown == ["Suggested and random labels"]


def test_updates_are_compared_with_new_runs(published: Path) -> None:
    runs = [
        made(
            part,
            params={"data.benchmark": f"growth {part} 10%", "data.benchmark_ratio": 0.2},
            data="contea_fr_en",
            final=scores(hit),
            seconds={"total": seconds},
        )
        for part, hit, seconds in (("fresh", 0.7, 100.0), ("update", 0.695, 40.0))
    ]
    row = tables(report_of("dual", runs, published))["Growing graphs"]["contea_fr_en", "10%"]
    assert (row["new run"], row["update"], row["difference"]) == ("0.700", "0.695", "-0.005")
    assert (row["seconds, update"], row["time"]) == ("40", "-60%")
