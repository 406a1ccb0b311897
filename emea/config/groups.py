"""The config groups: what each is for, and the schemas that its options inherit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from emea.answer.settings import HungarianSettings
from emea.baselines.settings import (
    EMEASettings,
    ParisMethodSettings,
    PraseMethodSettings,
)
from emea.data.settings import (
    KnownSplitSettings,
    OfficialSplitSettings,
    RandomSplitSettings,
    RatioSettings,
    ReleasedSettings,
)
from emea.data.sources.settings import (
    IdFormatSettings,
    OAEISettings,
    OpenEASettings,
    OwnFilesSettings,
    SRPRSSettings,
    SyntheticSettings,
)
from emea.divide.settings import PartSettings
from emea.em.settings import (
    DualSettings,
    IndependentSettings,
    NoEMSettings,
    OneToOneSettings,
    PaperSettings,
    SeedsSettings,
)
from emea.encoders.settings import (
    AliNetModelSettings,
    DualAMNModelSettings,
    IPTransEModelSettings,
    LightEAModelSettings,
    RREAModelSettings,
)
from emea.fit.settings import SemiSettings, SupervisedSettings, TrainerSettings
from emea.literals.settings import (
    EqualLiteralsSettings,
    NoLiteralsSettings,
    SimilarLiteralsSettings,
)
from emea.matching.settings import (
    CSLSSettings,
    KMeansSearchSettings,
    OnePassSearchSettings,
)
from emea.record.settings import MlflowSettings
from emea.rules.settings import (
    AvoidConflictSettings,
    ComposedRuleSettings,
    ParisRuleSettings,
)
from emea.run.settings import RunSettings
from emea.setting import Setting, settings_of


@dataclass(frozen=True)
class Group:
    """A config group.

    Args:
        help: What it decides, for ``--help``.
        schemas: Dataclasses by name. An option inherits one as ``schema_NAME``. A schema with the
            name of an option belongs to that option.
    """

    help: str
    schemas: Mapping[str, type] = field(default_factory=dict)


GROUPS = {
    "data": Group(
        "the pair of graphs; synthetic needs no files",
        {
            "id_format": IdFormatSettings,
            "openea": OpenEASettings,
            "srprs": SRPRSSettings,
            "dbp2": OAEISettings,
            "oaei": OAEISettings,
            "files": OwnFilesSettings,
            "part": PartSettings,
            "synthetic": SyntheticSettings,
        },
    ),
    "ratio": Group(
        "share of the links used for training; any other: ratio.value=0.07",
        {"ratio": RatioSettings},
    ),
    "split": Group(
        "the split of the links: random by ratio, the authors' official one, or all known links",
        {
            "random": RandomSplitSettings,
            "official": OfficialSplitSettings,
            "known": KnownSplitSettings,
        },
    ),
    "model": Group(
        "the neural encoder and its training schedule",
        {
            "alinet": AliNetModelSettings,
            "dual_amn": DualAMNModelSettings,
            "iptranse": IPTransEModelSettings,
            "lightea": LightEAModelSettings,
            "rrea": RREAModelSettings,
        },
    ),
    "ensemble": Group(
        "several encoders: seeds of one model or several models with one belief from their mean "
        "similarity, or independent ones, whose beliefs are averaged",
        {"seeds": SeedsSettings, "independent": IndependentSettings},
    ),
    "training": Group(
        "the first training: supervised or semi-supervised",
        {"sup": SupervisedSettings, "semi": SemiSettings},
    ),
    "literals": Group(
        "evidence from literals: none, equal values, or similar texts, too",
        {
            "none": NoLiteralsSettings,
            "equal": EqualLiteralsSettings,
            "similar": SimilarLiteralsSettings,
        },
    ),
    "rule": Group(
        "the rules that measure compatibility",
        {
            "paris": ParisRuleSettings,
            "avoid_conflict": AvoidConflictSettings,
            "paris_avoid_conflict": ComposedRuleSettings,
        },
    ),
    "em": Group(
        "the EM around the model: paper, dual (two-way), one_to_one (two-way matchings), or none",
        {
            "paper": PaperSettings,
            "dual": DualSettings,
            "one_to_one": OneToOneSettings,
            "none": NoEMSettings,
        },
    ),
    "method": Group(
        "emea, or a baseline that reasons from seeds: paris, prase",
        {
            "emea": EMEASettings,
            "paris": ParisMethodSettings,
            "prase": PraseMethodSettings,
        },
    ),
    "protocol": Group(
        "strict: nothing but the evaluation sees test links; released: as the paper's code; "
        "test_pool: only entities of test links are matched",
        {"released": ReleasedSettings},
    ),
    "similarity": Group(
        "how embeddings become a ranking: csls, or plain cosine",
        {"csls": CSLSSettings},
    ),
    "decoding": Group(
        "how the final beliefs become an answer",
        {"hungarian": HungarianSettings},
    ),
    "search": Group(
        "auto or exact; approximate, for large graphs: one_pass or kmeans",
        {
            "kmeans": KMeansSearchSettings,
            "one_pass": OnePassSearchSettings,
        },
    ),
    "trainer": Group("where to compute", {"auto": TrainerSettings}),
    "tracking": Group(
        "where runs are recorded: mlflow, or none for the run folder only",
        {"mlflow": MlflowSettings},
    ),
    "schedule": Group("epochs that suit a pair and a model; chosen by their names"),
    "variant": Group("settings that belong together, such as a row of a table"),
    "experiment": Group(
        "the sweep of a table, a figure or one of our studies, with -m"
    ),
}
"""All groups, in the order of ``--help``."""


OPTIONAL = ("model", "training", "rule", "em", "similarity", "decoding", "search")
"""Groups that only some methods use; ``method.uses`` lists them."""


@cache
def declared(
    group: str, option: str | None, place: str | None = None
) -> tuple[tuple[Setting, ...], ...]:
    """Return the settings that an option can have, grouped by key.

    Args:
        group: a config group, or an empty text for the top level.
        option: Its name; if no schema belongs to it, the schemas of the whole group are used, and a
            key can have several declarations.
        place: The key of the option in the config; ``None``: that of its group.
    """
    if not group:
        return tuple((one,) for one in settings_of(RunSettings))
    schemas = GROUPS[group].schemas
    own = schemas.get(option) if option is not None else None
    chosen = list(schemas.values()) if own is None else [own]
    found: dict[str, list[Setting]] = {}
    for schema in chosen:
        for one in settings_of(schema, f"{place or group}."):
            found.setdefault(one.key, []).append(one)
    return tuple(map(tuple, found.values()))
