"""The stages of a run: the first training, and the fits of each EM iteration."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from omegaconf import DictConfig, OmegaConf

from emea.run.parts import Parts, member_models


class Stage(NamedTuple):
    """Describes the training of one encoder, or of several that :func:`fits` has joined.

    Args:
        name: The name that is shown to the user.
        num_epochs: Number of epochs on the current labels; 0 if the weights are loaded or kept.
        num_turns: Number of turns after them, with mined labels.
        restart: Whether the fit starts from new weights.
        members: The encoders of an ensemble that are trained, side by side if there are several.
        is_last: Whether EM runs afterwards; it waits for all members of an ensemble.
    """

    name: str
    num_epochs: int
    num_turns: int
    restart: bool
    members: tuple[int, ...] = (0,)
    is_last: bool = True

    @property
    def title(self) -> str:
        """The name with the numbers of the encoders, if the run has several."""
        first, last = self.members[0] + 1, self.members[-1] + 1
        if self.members == (0,) and self.is_last:
            return self.name
        if first == last:
            return f"{self.name}, encoder {first}"
        return f"{self.name}, encoders {first} to {last}"


def stages(config: DictConfig) -> list[Stage]:
    """Return the first training, then each EM iteration, with one stage for each encoder."""
    models, training = member_models(config), config.training
    num_turns = OmegaConf.select(training, "turns_per_iteration", default=0)
    plan = []
    for iteration in range(config.em.iterations + 1):
        name = f"EM iteration {iteration}" if iteration else "first training"
        for member, model in enumerate(models):
            restart = iteration > 0 and restarts(config, iteration, member)
            num_epochs = model.epochs_per_iteration
            if restart or not iteration:
                num_epochs = model.initial_epochs
            if not iteration and config.initial_from:
                num_epochs = 0
            plan.append(
                Stage(
                    name,
                    num_epochs,
                    num_turns if iteration else training.turns,
                    restart,
                    (member,),
                    is_last=member == len(models) - 1,
                )
            )
    return plan


MAX_JOINT_ENTITIES = 400_000
"""Entities of a fit, counted once per member. A step on more entities fills a GPU by itself, and
each member needs its own memory."""


def fits(plan: Sequence[Stage], first: int, parts: Parts) -> Iterator[tuple[int, Stage]]:
    """Yield the fits of a plan: the number of their first stage, and the stages joined into one.

    Members of an ensemble are trained side by side if they can be. That depends on the labels, so
    a fit is determined when its turn comes.

    Args:
        plan: All stages of the run.
        first: Number of the first stage.
        parts: The objects of the run.
    """
    while first < len(plan):
        joined = plan[first]
        for stage in plan[first + 1 :]:
            if not _can_join(joined, stage, parts):
                break
            joined = joined._replace(
                members=(*joined.members, *stage.members), is_last=stage.is_last
            )
        yield first, joined
        first += len(joined.members)


def _can_join(stage: Stage, other: Stage, parts: Parts) -> bool:
    """Return whether the members of two consecutive stages can be trained side by side.

    They must need the same steps, and nothing that depends on one of them may happen in between.
    """
    module, data = parts.module, parts.data
    members = (*stage.members, *other.members)
    if stage.is_last or stage.num_turns or parts.stopping is not None:
        return False
    if stage._replace(members=(), is_last=True) != other._replace(members=(), is_last=True):
        return False
    if not all(map(module.has_optimizer, members)):
        return False
    if len(members) * (module.num_source + module.num_target) > MAX_JOINT_ENTITIES:
        return False
    steps = {module.steps_per_epoch(len(data.labels_of(one).links), one) for one in members}
    return len(steps) == 1


def local_stages(config: DictConfig) -> list[Stage]:
    """Return the stages of an update that recomputes some entities only.

    Weights are kept from the earlier run. An encoder without weights derives its embeddings from
    the labels in each stage.
    """
    num_epochs = 0 if config.model.optimizer else config.model.initial_epochs
    numbers = range(1, config.em.iterations + 1) if config.em.iterations else (1,)
    return [Stage(f"update {number}", num_epochs, num_turns=0, restart=False) for number in numbers]


def restarts(config: DictConfig, iteration: int, member: int) -> bool:
    """Return whether an encoder starts an EM iteration with new weights.

    With ``em.restart_every`` the members of an ensemble take turns, so one of them is renewed at
    a time.
    """
    models = member_models(config)
    if OmegaConf.select(models[member], "restart"):
        return True
    every: int | None = OmegaConf.select(config, "em.restart_every")
    if not every or iteration % every:
        return False
    return (iteration // every - 1) % len(models) == member
