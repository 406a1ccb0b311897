"""Settings of EM, of its steps and of ensembles."""

from dataclasses import dataclass
from typing import Any

from emea.setting import POSITIVE, SHARE_BELOW_ONE, setting, up_to

FEATURES = ("similarity", "noisy_or", "evidence", "coverage")
"""Features of a pair that the beliefs of ``em=dual`` use by default."""

ALL_FEATURES = (*FEATURES, "rare_coverage", "relation_overlap")
"""Features of a pair that the beliefs can use; ``em=one_to_one`` uses all of them."""

ITERATIONS = up_to(10_000, least=0)

CANDIDATES = up_to(100_000)

NORMALISERS = ("softmax", "minmax", "fixed")

NORMALISER_HELP = (
    "how similarities become probabilities; softmax: Eq. 1-3; minmax: the candidates' scores, "
    "scaled to [0, 1] and then to sum 1; fixed: a softmax of the sharpness 50 of LightEA's code "
    "(minmax and fixed: em=paper and em=none)"
)

TOLERANCE_HELP = (
    "end EM when an iteration changes at most this share of the pseudo-labels; 0: never (not with "
    "independent encoders, whose last fits are shared)"
)

FOOTNOTE = "paper; footnote 1 calls MinMax scaling poor"


@dataclass(frozen=True)
class PaperSettings:
    """EM as in the paper."""

    iterations: int = setting(
        10, "EM iterations", ITERATIONS, source="released EMEA; 5 on 100K pairs"
    )
    num_candidates: int = setting(
        10,
        "candidates of each source entity (K)",
        CANDIDATES,
        source="paper, appendix C.2",
    )
    m_step: str = setting(
        "links",
        "links: fit the rule weights on known links with a prior; pseudolikelihood: Eq. 13, with "
        "labels from q",
        ("links", "pseudolikelihood"),
    )
    ridge: float = setting(
        0.01,
        "strength of the prior of the rule weights",
        POSITIVE,
        source="ours: keeps the weights finite if a rule is always right",
    )
    normaliser: str = setting("softmax", NORMALISER_HELP, NORMALISERS, source=FOOTNOTE)
    patience: int | None = setting(
        None,
        "end EM after so many iterations without a better MRR on the validation links; null: never",
        up_to(10_000),
        source="ours",
    )
    tolerance: float = setting(
        0.0,
        TOLERANCE_HELP,
        SHARE_BELOW_ONE,
        source="paper: never",
    )
    keep: str = setting(
        "last",
        "last: answer with the last iteration; best: with the iteration whose answer has the best "
        "MRR on the validation links (an update always answers with the last)",
        ("last", "best"),
        source="paper: last",
    )


@dataclass(frozen=True)
class NoEMSettings:
    """No EM: only the neural model."""

    iterations: int = setting(0, "EM iterations; em=none has none", ITERATIONS)
    num_candidates: int = setting(
        10, "candidates whose probabilities are kept in the results", CANDIDATES
    )
    normaliser: str = setting("softmax", NORMALISER_HELP, NORMALISERS, source=FOOTNOTE)


@dataclass(frozen=True)
class TwoWaySettings:
    """The two-way step of ``em=dual`` and ``one_to_one``; all of it is ours (docs/method.md)."""

    both_directions: bool = setting(
        True, "candidates come from both sides, and beliefs are normalised on both"
    )
    sweeps: int = setting(
        2, "updates of the beliefs in an iteration, at most", up_to(1000)
    )
    propagation: int = setting(
        5,
        "rounds of candidates implied by confident neighbours, at most",
        up_to(1000, least=0),
    )
    max_candidates: int = setting(
        30,
        "pairs of a source entity; labelled and implied pairs come first",
        CANDIDATES,
    )
    features: tuple[str, ...] = setting(
        FEATURES, "features that the beliefs use", ALL_FEATURES
    )
    unmatched: bool = setting(True, "an entity may match none of its candidates")
    matched_inclusions: bool = setting(
        True,
        "estimate inclusions of relations from matched triples; false: from all triples",
    )
    ridge: float = setting(
        0.01,
        "strength of the prior of the feature weights, fitted on validation links",
        POSITIVE,
    )
    mutual_labels: bool = setting(
        True,
        "labels are pairs that choose each other; false: each entity's best candidate",
    )
    weighted_labels: bool = setting(True, "labels count in training by their belief")
    fused_answer: bool = setting(
        True,
        "the run answers with the fused ranking; false: with that of the neural model",
    )
    one_to_one: bool = setting(
        False,
        "beliefs are marginals of one-to-one matchings, and labelled entities do not compete; "
        "needs both_directions and unmatched",
    )


@dataclass(frozen=True)
class DualSettings(PaperSettings):
    """EM with two-way compatibility."""

    num_candidates: int = setting(
        10, "candidates of each entity of either side", CANDIDATES
    )
    tolerance: float = setting(
        0.018,
        TOLERANCE_HELP,
        SHARE_BELOW_ONE,
        source="ours: Hit@1 changes by at most .002 (experiments/speed)",
    )
    two_way: TwoWaySettings | None = setting(TwoWaySettings(), "")


@dataclass(frozen=True)
class OneToOneTwoWaySettings(TwoWaySettings):
    """The two-way step with one-to-one inference and all features."""

    features: tuple[str, ...] = setting(
        ALL_FEATURES, "features that the beliefs use", ALL_FEATURES
    )
    ridge: float = setting(
        0.05,
        "strength of the prior of the feature weights, fitted on validation links",
        POSITIVE,
    )
    one_to_one: bool = setting(
        True, "beliefs are marginals of one-to-one matchings; false: as in em=dual"
    )


@dataclass(frozen=True)
class OneToOneSettings(DualSettings):
    """EM with two-way compatibility and one-to-one inference."""

    iterations: int = setting(5, "EM iterations", ITERATIONS, source="ours")
    tolerance: float = setting(
        0.026,
        TOLERANCE_HELP,
        SHARE_BELOW_ONE,
        source="ours: Hit@1 changes by at most .0016 (experiments/speed)",
    )
    two_way: TwoWaySettings | None = setting(OneToOneTwoWaySettings(), "")


@dataclass(frozen=True)
class SeedsSettings:
    """Several encoders of the same model, which differ in their random initial weights."""

    num_members: int = setting(3, "number of encoders", up_to(100))


@dataclass(frozen=True)
class IndependentSettings:
    """Encoders of the run's model and of others, each with its own EM; beliefs are averaged."""

    num_members: int = setting(3, "number of encoders of the run's model", up_to(100))
    models: dict[str, Any] | None = setting(
        None,
        "further encoders; the option itself adds LightEA, and null removes it",
    )
    shared_fits: int = setting(
        2,
        "the last fits, in which all encoders train on labels from the mean belief",
        up_to(10_000, 0),
        source="ours, by Hit@1 on split seed 11 of zh and ja",
    )
    folds: bool = setting(
        False,
        "each encoder holds out training links of its own, to fit its weights",
        source="ours",
    )
