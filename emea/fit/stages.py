"""The stages of a run, and the fits into which they are joined."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from emea.fit.training_parts import TrainingParts


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


MAX_JOINT_ENTITIES = 400_000
"""Entities of a fit, counted once per member. A step on more entities fills a GPU by itself, and
each member needs its own memory."""


def fits(plan: Sequence[Stage], first: int, parts: TrainingParts) -> Iterator[tuple[int, Stage]]:
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


def _can_join(stage: Stage, other: Stage, parts: TrainingParts) -> bool:
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
