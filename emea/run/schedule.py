"""The stages of a run by its config: the first training, and the fits of each EM iteration."""

from emea.config.run_config import RunConfig
from emea.fit.stages import Stage


def stages(settings: RunConfig) -> list[Stage]:
    """Return the first training, then each EM iteration, with one stage for each encoder."""
    models, plan = settings.models, []
    for iteration in range(settings.em.iterations + 1):
        name = f"EM iteration {iteration}" if iteration else "first training"
        for member, model in enumerate(models):
            restart = iteration > 0 and model.restart
            num_epochs = model.epochs_per_iteration
            if restart or not iteration:
                num_epochs = model.initial_epochs
            if not iteration and settings.own.initial_from:
                num_epochs = 0
            plan.append(
                Stage(
                    name,
                    num_epochs,
                    0 if iteration else settings.turns,
                    restart,
                    (member,),
                    is_last=member == len(models) - 1,
                )
            )
    return plan


def local_stages(settings: RunConfig) -> list[Stage]:
    """Return the stages of an update that recomputes some entities only.

    Weights are kept from the earlier run. An encoder without weights derives its embeddings from
    the labels in each stage.
    """
    model, iterations = settings.models[0], settings.em.iterations
    num_epochs = 0 if model.optimizer else model.initial_epochs
    numbers = range(1, iterations + 1) if iterations else (1,)
    return [Stage(f"update {number}", num_epochs, num_turns=0, restart=False) for number in numbers]
