"""The settings of a run as typed values, read once from its configuration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from emea.answer.settings import ExportSettings
from emea.config.composition import error_text
from emea.config.groups import GROUPS
from emea.config.instantiate import Option
from emea.config.trainer_settings import PASSED_ON
from emea.config.unknown_settings import refusal, unknown_settings
from emea.data.settings import Cardinality
from emea.em.settings import PaperSettings
from emea.errors import ConfigError
from emea.fit.settings import StoppingSettings, SupervisedSettings, TrainerSettings
from emea.run.settings import RunSettings

Schema = TypeVar("Schema")
Values = Mapping[str, Any]
"""The values of a part of a configuration."""

TWO_WAY_STEP = "emea.em.two_way_step.TwoWayStep"


def typed(schema: type[Schema], values: Values | None) -> Schema:
    """Return the settings of a part of a configuration as their dataclass.

    Settings that the part lacks, as in configs of earlier versions, have their defaults. Keys that
    the dataclass lacks belong to others, such as the name of an option; `RunConfig.of` refused
    those that nothing reads.
    """
    names = {one.name for one in fields(schema)}  # type: ignore[arg-type]
    given = {key: value for key, value in (values or {}).items() if key in names}
    return schema(
        **{
            key: tuple(value) if isinstance(value, list) else value
            for key, value in given.items()
        }
    )


@dataclass(frozen=True, eq=False)
class ModelConfig:
    """One encoder of a run.

    Args:
        encoder: The encoder; this argument and the next two name a class.
        objective: The objective.
        optimizer: The optimizer; ``None`` for an encoder without weights.
        initial_epochs: Epochs of the first training, and of a training from new weights.
        epochs_per_iteration: Epochs of an EM iteration.
        restart: Whether each EM iteration trains from new weights.
        early_stopping: Early stopping; ``None`` if there is none.
    """

    encoder: Option
    objective: Option
    optimizer: Option | None
    initial_epochs: int
    epochs_per_iteration: int
    restart: bool
    early_stopping: StoppingSettings | None

    @classmethod
    def of(cls, values: Values, trust: Sequence[str] = ()) -> "ModelConfig":
        """Read the settings of a model."""
        stopping = values.get("early_stopping")
        optimizer = values.get("optimizer")
        # a run cannot start without these numbers (emea.config.checks); earlier runs are only read
        initial_epochs = values.get("initial_epochs", 0)
        epochs_per_iteration = values.get("epochs_per_iteration", 0)
        return cls(
            encoder=Option.of(values.get("encoder"), trust),
            objective=Option.of(values.get("objective"), trust),
            optimizer=Option.of(optimizer, trust) if optimizer else None,
            initial_epochs=initial_epochs,
            epochs_per_iteration=epochs_per_iteration,
            restart=bool(values.get("restart")),
            early_stopping=None
            if stopping is None
            else typed(StoppingSettings, stopping),
        )


@dataclass(frozen=True, eq=False)
class LightningConfig:
    """What the configuration adds to Lightning's trainer.

    Args:
        callbacks: Further callbacks, each of which names a class.
        loggers: Loggers, likewise.
        options: Arguments of ``pl.Trainer``.
    """

    callbacks: tuple[Option, ...]
    loggers: tuple[Option, ...]
    options: Values

    @classmethod
    def of(cls, trainer: Values, trust: Sequence[str]) -> "LightningConfig":
        """Read the settings of the group ``trainer``."""
        callbacks, loggers = (
            tuple(
                Option.of(one, trust, keep_name=True) for one in trainer.get(key) or ()
            )
            for key in ("callbacks", "logger")
        )
        given = {key: trainer[key] for key in PASSED_ON if trainer.get(key) is not None}
        return cls(callbacks, loggers, given)


@dataclass(frozen=True, eq=False)
class RunConfig:
    """All settings of a run. What computes does not read another form of the configuration.

    Args:
        own: Settings at the top level.
        options: The chosen option of each config group, by the name of the group.
        used_groups: Groups that the method uses.
        reasoner: The baseline that reasons; ``None`` for EMEA.
        models: The encoder, or each member of an ensemble.
        num_shared_fits: The last fits in which independent encoders share their labels; ``None``
            if encoders are not independent.
        in_folds: Whether each of them is trained without another part of the links.
        em: EM without its steps.
        two_way: The step of ``em.two_way``; ``None`` for the paper's step.
        turns: Additions of mined pairs in the first training.
        trainer: The device and the run's own settings of Lightning.
        lightning: Further settings of Lightning.
    """

    own: RunSettings
    options: Mapping[str, Option]
    used_groups: tuple[str, ...]
    reasoner: Option | None
    models: tuple[ModelConfig, ...]
    num_shared_fits: int | None
    in_folds: bool
    em: PaperSettings
    two_way: Option | None
    turns: int
    trainer: TrainerSettings
    lightning: LightningConfig

    @classmethod
    def of(cls, config: DictConfig) -> "RunConfig":
        """Read a composed config, or that of an earlier run, of which keys may be missing.

        `without_unknown` removes keys that only an earlier version had.

        Raises:
            ConfigError: If it refers to a missing key, or has a setting that nothing reads.
        """
        try:
            for unknown in unknown_settings(config):
                raise ConfigError(refusal(unknown))
            values: Any = OmegaConf.to_container(config, resolve=True)
        except OmegaConfBaseException as error:
            raise ConfigError(error_text(error)) from error
        trust = tuple(values.get("trust") or ())
        groups = [group for group in GROUPS if isinstance(values.get(group), dict)]
        em = values["em"]
        ensemble = values.get("ensemble") or {}
        is_independent = ensemble.get("name") == "independent"
        reasoner = values["method"].get("reasoner")
        export = typed(ExportSettings, values.get("export"))
        return cls(
            own=replace(typed(RunSettings, values), export=export),
            options={group: Option.of(values[group], trust) for group in groups},
            used_groups=tuple(values["method"]["uses"]),
            reasoner=Option.of(reasoner, trust) if reasoner else None,
            models=tuple(ModelConfig.of(one, trust) for one in member_nodes(values)),
            num_shared_fits=ensemble.get("shared_fits", 0) if is_independent else None,
            in_folds=bool(ensemble.get("folds")),
            em=typed(PaperSettings, em),
            two_way=Option.of(em["two_way"], trust) if em.get("two_way") else None,
            turns=typed(SupervisedSettings, values["training"]).turns,
            trainer=typed(TrainerSettings, values["trainer"]),
            lightning=LightningConfig.of(values["trainer"], trust),
        )

    def option(self, group: str) -> Option:
        """Return the chosen option of a config group.

        Raises:
            ConfigError: If the configuration has no such group.
        """
        if group not in self.options:
            raise ConfigError(
                f"The configuration has no {group}. Choose an option of it."
            )
        return self.options[group]

    def name(self, group: str) -> str:
        """Return the name of the chosen option of a config group."""
        return self.option(group).name

    def setting(self, group: str, key: str) -> Any:
        """Return a value of the chosen option of a config group; ``None`` if it has none."""
        return self.option(group).values.get(key)

    def uses(self, group: str) -> bool:
        """Return whether the method uses the options of a config group."""
        return group in self.used_groups

    @property
    def method_name(self) -> str:
        """The method: the name of a baseline, ``emea`` for EM, or ``neural`` without EM."""
        if not self.uses("em"):
            return self.name("method")
        return "emea" if self.em.iterations else "neural"

    @property
    def cardinality(self) -> Cardinality:
        """How many counterparts an entity may have."""
        return Cardinality(self.own.cardinality)

    @property
    def updated_from(self) -> str | None:
        """The run that this run updates; ``None`` if it updates none."""
        found: str | None = self.setting("data", "updated_from")
        return found

    @property
    def answers_jointly(self) -> bool:
        """Whether a run with EM answers with the joint ranking, not with the encoder's."""
        return self.two_way is not None and bool(
            self.two_way.values.get("fused_answer")
        )

    @property
    def uses_two_way(self) -> bool:
        """Whether the two-way step replaces the paper's E- and M-step."""
        is_two_way = self.two_way is not None and self.two_way.target == TWO_WAY_STEP
        return is_two_way and self.uses("em") and bool(self.em.iterations)


def member_nodes(values: Values) -> list[Any]:
    """Return the models of a run: one, or one for each member of an ensemble.

    An ensemble's further model is left out if it is the model of the run.
    """
    ensemble = values.get("ensemble") or {}
    model = values["model"]
    further = [
        one for one in (ensemble.get("models") or {}).values() if one is not None
    ]
    others = [one for one in further if one.get("name") != model.get("name")]
    return [model] * ensemble.get("num_members", 1) + others
