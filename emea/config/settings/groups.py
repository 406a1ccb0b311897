"""The config groups: what each is for, and the schemas that its options inherit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from emea.config.settings import data, em, execution, method, model
from emea.config.settings.execution import RunSettings
from emea.config.settings.setting import Setting, settings_of


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
            "id_format": data.IdFormatSettings,
            "openea": data.OpenEASettings,
            "oaei": data.OAEISettings,
            "files": data.OwnFilesSettings,
            "part": data.PartSettings,
            "synthetic": data.SyntheticSettings,
        },
    ),
    "ratio": Group(
        "share of the links used for training; any other: ratio.value=0.07",
        {"ratio": data.RatioSettings},
    ),
    "split": Group(
        "the split of the links: random by ratio, the authors' official one, or all known links",
        {
            "random": data.RandomSplitSettings,
            "official": data.OfficialSplitSettings,
            "known": data.KnownSplitSettings,
        },
    ),
    "model": Group(
        "the neural encoder and its training schedule",
        {
            "alinet": model.AliNetSettings,
            "dual_amn": model.DualAMNSettings,
            "iptranse": model.IPTransESettings,
            "lightea": model.LightEASettings,
            "rrea": model.RREASettings,
        },
    ),
    "ensemble": Group(
        "several encoders: seeds of one model or several models with one belief from their mean "
        "similarity, or independent ones, whose beliefs are averaged",
        {"seeds": model.SeedsSettings, "independent": model.IndependentSettings},
    ),
    "training": Group(
        "the first training: supervised or semi-supervised",
        {"sup": em.SupervisedSettings, "semi": em.SemiSettings},
    ),
    "literals": Group(
        "evidence from literals: none, equal values, or similar texts, too",
        {
            "none": data.NoLiteralsSettings,
            "equal": data.EqualLiteralsSettings,
            "similar": data.SimilarLiteralsSettings,
        },
    ),
    "rule": Group(
        "the rules that measure compatibility",
        {
            "paris": method.ParisRuleSettings,
            "avoid_conflict": method.AvoidConflictSettings,
            "paris_avoid_conflict": method.ComposedRuleSettings,
        },
    ),
    "em": Group(
        "the EM around the model: paper, dual (two-way), one_to_one (two-way matchings), or none",
        {
            "paper": em.PaperEMSettings,
            "dual": em.DualEMSettings,
            "one_to_one": em.OneToOneEMSettings,
            "none": em.NoEMSettings,
        },
    ),
    "method": Group(
        "emea, or a baseline that reasons from seeds: paris, prase",
        {
            "emea": method.EMEASettings,
            "paris": method.ParisMethodSettings,
            "prase": method.PraseMethodSettings,
        },
    ),
    "protocol": Group(
        "strict: nothing but the evaluation sees test links; released: as the paper's code",
        {"released": data.ReleasedSettings},
    ),
    "similarity": Group(
        "how embeddings become a ranking: csls, or plain cosine",
        {"csls": method.CSLSSettings},
    ),
    "decoding": Group(
        "how the final beliefs become an answer",
        {"hungarian": method.HungarianSettings},
    ),
    "search": Group(
        "auto or exact; approximate, for large graphs: one_pass or kmeans",
        {
            "kmeans": method.KMeansSearchSettings,
            "one_pass": method.OnePassSearchSettings,
        },
    ),
    "trainer": Group("where to compute", {"auto": execution.TrainerSettings}),
    "tracking": Group(
        "where runs are recorded: mlflow, or none for the run folder only",
        {"mlflow": execution.MlflowSettings},
    ),
    "schedule": Group("epochs that suit a pair and a model; chosen by their names"),
    "variant": Group("settings that belong together, such as a row of a table"),
    "experiment": Group("the sweep of a table, a figure or one of our studies, with -m"),
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
