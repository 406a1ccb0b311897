"""The settings at the top level of the configuration."""

from dataclasses import dataclass

from emea.answer.settings import ExportSettings
from emea.data.settings import Cardinality
from emea.setting import SEED, setting


@dataclass(frozen=True)
class RunSettings:
    """The settings at the top level of the configuration."""

    seed: int = setting(0, "seed of weights, negatives and dropout", SEED)
    split_seed: int = setting(
        0, "seed of the split into train, validation and test links", SEED
    )
    initial_from: str | None = setting(
        None, "checkpoint of another run; its weights replace the first training"
    )
    skip_recorded: bool = setting(
        False,
        "skip a run that is already recorded with the same settings, data and code",
    )
    cardinality: str = setting(
        "one_to_one",
        "how many targets a source entity may have, and the reverse, in links and in the answer",
        tuple(Cardinality),
    )
    trust: tuple[str, ...] = setting(
        (), "your own modules that a configuration may name", example="[my_module]"
    )
    study: str = setting("emea", "MLflow experiment of the run")
    author: str | None = setting(
        None,
        "who found the known links and rejected pairs: a name, an ORCID, or both; SSSOM files name "
        "this person, and the links count as decisions of a person",
        example="'Ada Lovelace <0000-0002-1825-0097>'",
    )
    export: ExportSettings = ExportSettings()
