"""Settings of the EM algorithm and of the first training."""

from dataclasses import dataclass

from emea.config.settings.setting import EPOCHS, POSITIVE, setting, up_to

FEATURES = ("similarity", "noisy_or", "evidence", "coverage")
"""Features of a pair that the beliefs of ``em=dual`` use by default."""

ALL_FEATURES = (*FEATURES, "rare_coverage", "relation_overlap")
"""Features of a pair that the beliefs can use; ``em=one_to_one`` uses all of them."""

ITERATIONS = up_to(10_000, least=0)
CANDIDATES = up_to(100_000)


@dataclass(frozen=True)
class PaperEMSettings:
    """EM as in the paper."""

    iterations: int = setting(
        10, "EM iterations", ITERATIONS, source="released EMEA; 5 on 100K pairs"
    )
    num_candidates: int = setting(
        10, "candidates of each source entity (K)", CANDIDATES, source="paper, appendix C.2"
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


@dataclass(frozen=True)
class NoEMSettings:
    """No EM: only the neural model."""

    iterations: int = setting(0, "EM iterations; em=none has none", ITERATIONS)
    num_candidates: int = setting(
        10, "candidates whose probabilities are kept in the results", CANDIDATES
    )


@dataclass(frozen=True)
class TwoWaySettings:
    """The two-way step of ``em=dual`` and ``one_to_one``; all of it is ours (docs/method.md)."""

    both_directions: bool = setting(
        True, "candidates come from both sides, and beliefs are normalised on both"
    )
    sweeps: int = setting(2, "updates of the beliefs in an iteration, at most", up_to(1000))
    propagation: int = setting(
        5, "rounds of candidates implied by confident neighbours, at most", up_to(1000, least=0)
    )
    max_candidates: int = setting(
        30,
        "pairs of a source entity; labelled and implied pairs come first",
        CANDIDATES,
    )
    features: tuple[str, ...] = setting(FEATURES, "features that the beliefs use", ALL_FEATURES)
    unmatched: bool = setting(True, "an entity may match none of its candidates")
    matched_inclusions: bool = setting(
        True, "estimate inclusions of relations from matched triples; false: from all triples"
    )
    ridge: float = setting(
        0.01,
        "strength of the prior of the feature weights, fitted on validation links",
        POSITIVE,
    )
    mutual_labels: bool = setting(
        True, "labels are pairs that choose each other; false: each entity's best candidate"
    )
    weighted_labels: bool = setting(True, "labels count in training by their belief")
    fused_answer: bool = setting(
        True, "the run answers with the fused ranking; false: with that of the neural model"
    )
    one_to_one: bool = setting(
        False,
        "beliefs are marginals of one-to-one matchings, and labelled entities do not compete; "
        "needs both_directions and unmatched",
    )


@dataclass(frozen=True)
class DualEMSettings(PaperEMSettings):
    """EM with two-way compatibility."""

    num_candidates: int = setting(10, "candidates of each entity of either side", CANDIDATES)
    two_way: TwoWaySettings | None = setting(TwoWaySettings(), "")


@dataclass(frozen=True)
class OneToOneTwoWaySettings(TwoWaySettings):
    """The two-way step with one-to-one inference and all features."""

    features: tuple[str, ...] = setting(ALL_FEATURES, "features that the beliefs use", ALL_FEATURES)
    ridge: float = setting(
        0.05,
        "strength of the prior of the feature weights, fitted on validation links",
        POSITIVE,
    )
    one_to_one: bool = setting(
        True, "beliefs are marginals of one-to-one matchings; false: as in em=dual"
    )


@dataclass(frozen=True)
class OneToOneEMSettings(DualEMSettings):
    """EM with two-way compatibility and one-to-one inference."""

    iterations: int = setting(5, "EM iterations", ITERATIONS, source="ours")
    two_way: TwoWaySettings | None = setting(OneToOneTwoWaySettings(), "")


TURNS = up_to(10_000, least=0)


@dataclass(frozen=True)
class SupervisedSettings:
    """A first training on the labelled links only."""

    turns: int = setting(0, "additions of mined pairs in the first training", TURNS)


@dataclass(frozen=True)
class SemiSettings:
    """A first training that also learns from its own mutual nearest pairs."""

    turns: int = setting(
        4,
        "additions of mined pairs in the first training; all pairs are kept",
        TURNS,
        source="released EMEA",
    )
    epochs_per_turn: int = setting(
        "${oc.select:model.epochs_per_turn,100}",
        "epochs after each addition; by default the model's own number",
        EPOCHS,
        source="released EMEA: 100",
    )
