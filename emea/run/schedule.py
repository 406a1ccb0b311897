"""The stages of a run by its config: the first training, and the fits of each EM iteration."""

from omegaconf import DictConfig, OmegaConf

from emea.fit.stages import Stage
from emea.run.parts import member_models


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
