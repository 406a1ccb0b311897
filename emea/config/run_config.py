"""The settings of a run as typed values, read once from its configuration."""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf

from emea.config.settings.em import PaperEMSettings
from emea.config.settings.execution import ExportSettings, RunSettings, TrainerSettings
from emea.config.settings.model import StoppingSettings

Schema = TypeVar("Schema")

TWO_WAY_STEP = "emea.em.two_way_step.TwoWayStep"


def typed(schema: type[Schema], node: DictConfig | None) -> Schema:
    """Return the settings of a node as their dataclass.

    Settings that the node lacks, as in configs of earlier versions, have their defaults. Other
    keys, such as the name of an option, are left out.
    """
    values: Any = {} if node is None else OmegaConf.to_container(node, resolve=True)
    names = {one.name for one in fields(schema)}  # type: ignore[arg-type]
    given = {key: value for key, value in values.items() if key in names}
    return schema(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    )


@dataclass(frozen=True, eq=False)
class ModelConfig:
    """One encoder of a run.

    Args:
        encoder: The node of the encoder; this node and the next two name a class.
        objective: The node of the objective.
        optimizer: The node of the optimizer; ``None`` for an encoder without weights.
        initial_epochs: Epochs of the first training, and of a training from new weights.
        epochs_per_iteration: Epochs of an EM iteration.
        restart: Whether each EM iteration trains from new weights.
        early_stopping: Early stopping; ``None`` if there is none.
    """

    encoder: DictConfig
    objective: DictConfig
    optimizer: DictConfig | None
    initial_epochs: int
    epochs_per_iteration: int
    restart: bool
    early_stopping: StoppingSettings | None

    @classmethod
    def of(cls, node: DictConfig) -> "ModelConfig":
        """Read the settings of a model."""
        stopping = node.get("early_stopping")
        return cls(
            node.encoder,
            node.objective,
            node.optimizer,
            node.initial_epochs,
            node.epochs_per_iteration,
            bool(node.get("restart")),
            None if stopping is None else typed(StoppingSettings, stopping),
        )


@dataclass(frozen=True, eq=False)
class RunConfig:
    """The settings of a run.

    Args:
        nodes: The whole configuration, for options that name a class and for records.
        own: Settings at the top level.
        trainer: The device and Lightning's settings.
        em: EM without its steps.
        models: The encoder, or each member of an ensemble.
        turns: Additions of mined pairs in the first training.
        num_shared_fits: The last fits in which independent encoders share their labels; ``None``
            if encoders are not independent.
        in_folds: Whether each of them is trained without another part of the links.
    """

    nodes: DictConfig
    own: RunSettings
    trainer: TrainerSettings
    em: PaperEMSettings
    models: tuple[ModelConfig, ...]
    turns: int
    num_shared_fits: int | None
    in_folds: bool

    @classmethod
    def of(cls, config: DictConfig) -> "RunConfig":
        """Read a composed config, or that of an earlier run."""
        ensemble = config.get("ensemble") or {}
        is_independent = ensemble.get("name") == "independent"
        export = typed(ExportSettings, config.get("export"))
        return cls(
            nodes=config,
            own=replace(typed(RunSettings, config), export=export),
            trainer=typed(TrainerSettings, config.trainer),
            em=typed(PaperEMSettings, config.em),
            models=tuple(map(ModelConfig.of, member_nodes(config))),
            turns=config.training.turns,
            num_shared_fits=ensemble.get("shared_fits", 0) if is_independent else None,
            in_folds=bool(ensemble.get("folds")),
        )

    def uses(self, group: str) -> bool:
        """Return whether the method uses the options of a config group."""
        return group in self.nodes.method.uses


def uses_two_way(config: DictConfig) -> bool:
    """Return whether the two-way step replaces the paper's E- and M-step."""
    is_two_way = OmegaConf.select(config, "em.two_way._target_") == TWO_WAY_STEP
    return is_two_way and "em" in config.method.uses and bool(config.em.iterations)


def member_nodes(config: DictConfig) -> list[DictConfig]:
    """Return the nodes of the encoders of a run: one, or one for each member of an ensemble.

    An ensemble's further model is left out if it is the model of the run.
    """
    ensemble = config.get("ensemble") or {}
    further = [model for model in (ensemble.get("models") or {}).values() if model is not None]
    others = [model for model in further if model.get("name") != config.model.name]
    return [config.model] * ensemble.get("num_members", 1) + others
