"""Methods that tables and figures compare: which recorded runs represent each of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from emea.data.settings import RandomSplitSettings
from emea.em.settings import (
    ALL_FEATURES,
    FEATURES,
    IndependentSettings,
    OneToOneSettings,
    OneToOneTwoWaySettings,
    PaperSettings,
    TwoWaySettings,
)
from emea.encoders.settings import RREASettings
from emea.fit.settings import StoppingSettings
from emea.results.recorded_run import RecordedRun
from emea.rules.settings import AvoidConflictSettings, ParisRuleSettings
from emea.run.settings import RunSettings


def _defaults(schema: type, prefix: str, *names: str) -> dict[str, Any]:
    """Return the defaults of some settings of a schema, by their full keys."""
    return {f"{prefix}.{name}": getattr(schema, name) for name in names}


USUAL: dict[str, Any] = {
    **_defaults(PaperSettings, "em", "iterations", "num_candidates", "m_step"),
    "em.sampling": "argmax",  # settings of earlier versions
    "em.two_way.tolerance": 0.002,
    **_defaults(PaperSettings, "em", "ridge"),
    "em.evidence": "candidates",  # and this one, too
    **_defaults(PaperSettings, "em", "normaliser", "patience", "keep"),
    **_defaults(TwoWaySettings, "em.two_way", "max_candidates", "ridge"),
    **_defaults(ParisRuleSettings, "rule", "markov_blanket"),
    **_defaults(ParisRuleSettings, "rule.rules.paris", "markov_blanket"),
    "rule.subsumption_from": "best",
    "rule.rules.paris.subsumption_from": "best",
    **_defaults(AvoidConflictSettings, "rule", "num_neighbours"),
    **_defaults(AvoidConflictSettings, "rule.rules.avoid_conflict", "num_neighbours"),
}
"""The paper's EM settings. Runs with other values do not represent the paper's method."""

LIGHTEA_MEMBER = "ensemble.models.lightea.name"
"""The further model of independent encoders; runs that are older than the setting lack it."""

FOLDS = "ensemble.folds"
"""Whether each encoder is trained on other links; runs that are older than the setting lack it."""

COMMON: dict[str, Any] = {
    "seed": RunSettings.seed,
    **_defaults(RandomSplitSettings, "split", "num_validation", "validation_from"),
    "similarity.name": "csls",
    "decoding.name": "greedy",
    "search.name": "exact",
    "ensemble.name": "none",
    LIGHTEA_MEMBER: "none",
    FOLDS: False,
    "literals.name": "none",
    "literals.transliterate": "none",  # runs that are older than the setting
    "protocol.test_pool": False,  # a setting of earlier versions
    **_defaults(RREASettings, "model.encoder", "opposite_relations"),
    **_defaults(StoppingSettings, "model.early_stopping", "held_out"),
}
"""Settings that every run in a table has, with or without EM."""

BENCHMARK = "data.benchmark"
"""Says which part of a benchmark a run is; other runs lack it."""

DUAL_PARTS: dict[str, Any] = {
    **_defaults(
        TwoWaySettings, "em.two_way", "both_directions", "sweeps", "propagation"
    ),
    **_defaults(TwoWaySettings, "em.two_way", "unmatched", "matched_inclusions"),
    "em.two_way.memory": 0.0,  # a setting of earlier versions
    **_defaults(
        TwoWaySettings,
        "em.two_way",
        "mutual_labels",
        "weighted_labels",
        "fused_answer",
        "one_to_one",
    ),
    "em.two_way.features": str(list(FEATURES)),
}
"""The settings of the complete ``em=dual``. Each ablation changes one of them."""

NORMALISER_CLASS = "em.normaliser._target_"
"""What ``em.normaliser`` was in earlier versions."""

DEFAULTS: dict[str, Any] = {**COMMON, **USUAL, **DUAL_PARTS}
"""Values of these settings in runs that are older than the setting."""

CHANGES = {
    ("em.two_way.both_directions", "False"): "one direction",
    ("em.two_way.sweeps", "1"): "one belief update per iteration",
    ("em.two_way.propagation", "0"): "no propagation of candidates",
    ("em.two_way.unmatched", "False"): "every entity must have a counterpart",
    ("em.two_way.matched_inclusions", "False"): "inclusions from all triples",
    ("em.two_way.memory", "0.5"): "running mean of similarities",
    ("em.two_way.mutual_labels", "False"): "pseudo-labels need not be mutual",
    ("em.two_way.weighted_labels", "False"): "pseudo-labels without weights",
    ("em.two_way.fused_answer", "False"): "answers from the encoder",
    ("em.two_way.one_to_one", "True"): "one-to-one inference",
}
"""Names of the ablations by the setting that they change."""

MODEL_NAMES = {
    "iptranse": "IPTransE",
    "gcn_align": "GCN-Align",
    "mugnn": "MuGNN",
    "rsn": "RSN",
    "alinet": "AliNet",
    "mraea": "MRAEA",
    "psr": "PSR",
    "rrea": "RREA",
    "dual_amn": "Dual-AMN",
    "bootea": "BootEA",
    "lightea": "LightEA",
}
"""Display names of neural models, both ours and those that papers report."""


@dataclass(frozen=True)
class Source:
    """Runs with certain metrics entries, and the ranking of them that counts."""

    where: Mapping[str, Any]
    stage: str = "final"


@dataclass(frozen=True, eq=False)
class Method:
    """A method of a table or figure, and which runs represent it.

    Args:
        label: The display name.
        paper: The method's key in ``paper.csv``; empty if the paper has no numbers for it.
        sources: Where its numbers come from. The first source with a run of a split is used.
        protocols: The protocols under which it was run. A method that never sees test links
            only has ``strict``.
        usual: Settings that its runs must have. A run that is older than a setting has its default.
        needs: A column of the table of runs that must have a value.
    """

    label: str
    paper: str
    sources: tuple[Source, ...]
    protocols: tuple[str, ...] = ("strict",)
    usual: dict[str, Any] = field(default_factory=lambda: USUAL)
    needs: str = ""

    def usable(self, protocol: str) -> str:
        """Return the protocol under which to look for runs when comparing under ``protocol``."""
        return protocol if protocol in self.protocols else self.protocols[0]


BOTH = ("released", "strict")
SUP = {"model": "rrea", "training": "sup"}
SEMI = {"model": "rrea", "training": "semi"}
PAPER = {"method": "emea", "em": "paper", "rule": "paris"}

PARIS = Method("PARIS", "paris", (Source({"method": "paris"}),))
PRASE = Method("PRASE", "prase", (Source({"method": "prase"}),))
RREA = Method(
    "RREA",
    "rrea",
    (Source({"method": "neural", **SUP}), Source({**PAPER, **SUP}, "initial")),
)
EMEA = Method("EMEA", "emea", (Source({**PAPER, **SUP}),), BOTH)
DUAL = Method(
    "em=dual",
    "",
    (Source({"method": "emea", "em": "dual", **SUP}),),
    usual=USUAL | DUAL_PARTS,
)
ONE_TO_ONE = Method(
    "em=one_to_one",
    "",
    (Source({"method": "emea", "em": "one_to_one", **SUP}),),
    usual=USUAL
    | DUAL_PARTS
    | {
        **_defaults(OneToOneSettings, "em", "iterations"),
        **_defaults(OneToOneTwoWaySettings, "em.two_way", "ridge", "one_to_one"),
        "em.two_way.features": str(list(ALL_FEATURES)),
    },
)
THREE_RREA = Method(
    "three RREA",
    "",
    ONE_TO_ONE.sources,
    usual=ONE_TO_ONE.usual
    | {
        "ensemble.name": "independent",
        **_defaults(IndependentSettings, "ensemble", "num_members", "shared_fits"),
    },
)
ENSEMBLE = replace(
    THREE_RREA,
    label="four encoders",
    usual=THREE_RREA.usual | {LIGHTEA_MEMBER: "lightea"},
)
STRUCTURE = Method(
    "structure only",
    "",
    (Source({"method": "emea", "em": "dual", "model": "lightea", "training": "sup"}),),
    usual=USUAL | DUAL_PARTS | {"em.iterations": 1},
)
SIMILAR_NAMES = {"literals.name": "similar"}
NAMES = replace(STRUCTURE, label="names", usual=STRUCTURE.usual | SIMILAR_NAMES)
READ = {"literals.transliterate": "auto"}
UNREAD = {"literals.transliterate": "never"}
PARIS_NAMES = replace(PARIS, label="names", usual=USUAL | SIMILAR_NAMES | READ)
UNREAD_PARIS_NAMES = replace(PARIS_NAMES, usual=PARIS_NAMES.usual | UNREAD)
READ_NAMES = replace(
    ENSEMBLE, label="names", usual=ENSEMBLE.usual | SIMILAR_NAMES | READ
)
UNREAD_NAMES = replace(
    READ_NAMES, label="names, not transliterated", usual=READ_NAMES.usual | UNREAD
)
LIGHTEA = (
    Source(
        {"method": "emea", "em": "one_to_one", "model": "lightea", "training": "sup"}
    ),
)
LIGHTEA_ONE_TO_ONE = Method(
    "LightEA em=one_to_one", "", LIGHTEA, usual=ONE_TO_ONE.usual
)
LIGHTEA_NAMES = Method(
    "LightEA, names",
    "",
    LIGHTEA,
    usual=ONE_TO_ONE.usual | SIMILAR_NAMES | READ | {"em.iterations": 3},
)
THREE_LIGHTEA = Method(
    "three LightEA",
    "",
    LIGHTEA,
    usual=THREE_RREA.usual
    | {"em.iterations": 2, "ensemble.shared_fits": 1, FOLDS: True},
)
WITHOUT_FOLDS = replace(THREE_LIGHTEA, usual=THREE_LIGHTEA.usual | {FOLDS: False})
RREA_SEMI = Method(
    "RREA (semi)",
    "rrea_semi",
    (Source({**PAPER, **SEMI}, "initial"), Source({"method": "neural", **SEMI})),
    BOTH,
)
EMEA_SEMI = Method("EMEA (semi)", "emea_semi", (Source({**PAPER, **SEMI}),), BOTH)
EMEA_COMPATIBLE = Method(
    "EMEA", "emea", EMEA.sources, BOTH, needs="compatibility.initial.mean"
)
EMEA_DENSE = Method(
    "EMEA, dense evidence", "emea", EMEA.sources, BOTH, USUAL | {"em.evidence": "dense"}
)
EMEA_MIN_MAX = Method(
    "EMEA, MinMax",
    "",
    EMEA.sources,
    BOTH,
    USUAL | {"em.normaliser": "minmax"},
)
OPPOSITE = {"model.encoder.opposite_relations": True}
EMEA_OPPOSITE = Method(
    "EMEA, opposite relations", "emea", EMEA.sources, ("released",), USUAL | OPPOSITE
)
EMEA_100K = Method("EMEA", "emea", EMEA.sources, BOTH, USUAL | {"em.iterations": 5})


def part_of_benchmark(method: Method, mark: str) -> Method:
    """Return the runs of a method that are one part of a benchmark."""
    return Method(mark, "", method.sources, usual={BENCHMARK: mark})


def validation_from_train(method: Method) -> Method:
    """Return the method with validation links from the labelled share."""
    usual = method.usual | {"split.validation_from": "train"}
    return replace(method, label="validation from train", usual=usual)


def without_validation(method: Method) -> Method:
    """Return the method without validation links."""
    return replace(
        method, label="no validation", usual=method.usual | {"split.num_validation": 0}
    )


def in_test_pool(method: Method) -> Method:
    """Return the method with knowledge of the test pool."""
    usual = method.usual | {"protocol.test_pool": True}
    return replace(method, label="assignment", protocols=("released",), usual=usual)


@cache
def on_data(method: Method, data: str) -> Method:
    """Return the method for a pair: on DWY100K, runs may have any number of EM iterations.

    The released code has five iterations there. Runs of PARIS and PRASE do not use the setting,
    but they have it.
    """
    if not data.startswith("dwy100k"):
        return method
    usual = {
        key: value for key, value in method.usual.items() if key != "em.iterations"
    }
    return replace(method, usual=usual)


RELEASED_STOPPING = {
    "model.early_stopping.patience": 2,
    "model.early_stopping.held_out": 0.2,
}
"""Early stopping of the released runners of AliNet and IPTransE."""


def emea_over(model: str, iterations: int = 10) -> Method:
    """Return EMEA around another neural model (Figure 4).

    AliNet and IPTransE train from scratch in every iteration. Their runs with ten iterations stop
    early as the released runners do, which keeps a run below three minutes on a shared H200.
    """
    usual: dict[str, Any] = USUAL | {"em.iterations": iterations}
    label = MODEL_NAMES[model]
    if model in ("alinet", "iptranse"):
        usual["em.num_candidates"] = 50
        label += (
            " (1 iteration)"
            if iterations == 1
            else f" ({iterations}, released stopping)"
        )
    if model in ("alinet", "iptranse") and iterations > 1:
        usual |= RELEASED_STOPPING
    where = {**PAPER, "model": model, "training": "sup"}
    return Method(label, "", (Source(where),), BOTH, usual)


def emea_with(
    rule: str, training: str = "sup", settings: Mapping[str, Any] = USUAL
) -> Method:
    """Return EMEA around RREA with other rules (Figure 6) or other settings (Figure 7)."""
    where = {
        "method": "emea",
        "em": "paper",
        "model": "rrea",
        "training": training,
        "rule": rule,
    }
    changed = [
        f"{key}={value}" for key, value in settings.items() if USUAL[key] != value
    ]
    label = ", ".join([f"EMEA rule={rule}", *changed])
    return Method(label, "", (Source(where),), BOTH, {**USUAL, **settings})


def model_alone(key: str) -> Method:
    """Return a neural model without EM, by its key in Table 3, for instance ``rrea_semi``."""
    model, training = key.rsplit("_", 1)
    label = f"{MODEL_NAMES[model]} ({training})"
    if model == "rrea":  # the first model of EM runs counts, too
        known = RREA if training == "sup" else RREA_SEMI
        return Method(label, key, known.sources, known.protocols)
    where = {"method": "neural", "model": model, "training": training}
    return Method(label, key, (Source(where),))


def comparable_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a run: classes without their modules, which may change."""
    settings = {
        key: value.rpartition(".")[2] if key.endswith("._target_") else value
        for key, value in params.items()
    }
    if settings.get("search.name") == "auto":  # exact for graphs of these sizes
        settings["search.name"] = "exact"
    normaliser = settings.pop(NORMALISER_CLASS, None)
    if normaliser is not None:
        settings["em.normaliser"] = str(normaliser).removesuffix("Normaliser").lower()
    if (
        settings.get("decoding.name") == "one_to_one"
    ):  # rankings do not depend on the decoding
        settings["decoding.name"] = "greedy"
    return settings


def changed_setting(run: RecordedRun) -> str | None:
    """Name the one setting in which an ``em=dual`` run differs from the complete method.

    Returns:
        ``None`` if it differs in no setting or in several.
    """
    params = comparable_settings(run.header["params"])
    if (
        run.metrics.get("em") != "dual"
        or BENCHMARK in params
        or any(params.get(key, value) != value for key, value in COMMON.items())
    ):
        return None
    usual: dict[str, Any] = USUAL | DUAL_PARTS
    differs = [key for key, value in usual.items() if params.get(key, value) != value]
    names = [_change_name(key, str(params[key])) for key in differs]
    for key, default in (("model", "rrea"), ("training", "sup")):
        if run.metrics[key] != default:
            names.append(f"{key}={run.metrics[key]}")
    return names[0] if len(names) == 1 else None


def _change_name(key: str, value: str) -> str:
    if key == "em.two_way.features":
        missing = [name for name in FEATURES if f"'{name}'" not in value]
        return f"without {', '.join(missing)}"
    return CHANGES.get((key, value), f"{key.removeprefix('em.')}={value}")
