"""Checks of your own encoders and rules, which take a second and need no run.

>>> class Embeddings(nn.Module):
...     def __init__(self, graph, dim):
...         super().__init__()
...         self.rows = nn.Parameter(torch.randn(graph.num_entities, dim))
...
...     def forward(self):
...         return self.rows
>>> check_encoder(Embeddings, dim=16)
Embeddings passed: 200 embeddings, the same for the same seed, in eval() mode and after saving and
loading; a training step changes them.
"""

from collections.abc import Callable
from textwrap import fill
from typing import Any

import torch
from torch import Tensor, nn

from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.encoders.joint_graph import join_graphs
from emea.errors import ConfigError
from emea.fit import training_checks
from emea.matching.beliefs import Beliefs
from emea.rules.rule import Rule, RuleView, rule_values

NUM_CANDIDATES, WIDTH = 5, 8
"""Candidates of each source entity, and width of the embeddings, that a rule is checked with."""

PRINTED_WIDTH = 100
"""Characters of a printed line."""


def check_encoder(make: Callable[..., nn.Module], /, **settings: Any) -> None:
    """Check that emea can train an encoder, on two small random graphs.

    The encoder must return one embedding per entity, the same ones for the same seed, also after
    its weights were saved and loaded, and a training step must change it if it has weights.

    Args:
        make: The class of the encoder, or a function that returns one. It is called with
            ``graph``, a `JointGraph`, and the settings.
        settings: The settings that your YAML file gives to the class.

    Raises:
        UserError: If a check fails; the message says what the encoder must do.
    """
    graph = join_graphs(_example())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = make(graph=graph, **settings)
        training_checks.check_encoder(encoder)
        other = make(graph=graph, **settings)
        name = type(encoder).__name__
        rows = encoder()
        training_checks.check_rows(rows, encoder, graph.num_entities, step=0)
        training_checks.check_gradient(rows, encoder)
        other.load_state_dict(encoder.state_dict())
        saved = [_evaluated(one) for one in (encoder, encoder, other)]
        if not torch.equal(saved[0], saved[1]):
            raise ConfigError(
                f"{name}.forward() must return the same embeddings in eval() mode."
            )
        if not torch.equal(saved[0], saved[2]):
            raise ConfigError(
                f"{name} has a state that its state_dict() lacks, so a checkpoint would lose it. "
                "Use parameters and buffers."
            )
        encoder.train()
        has_weights = _check_step(encoder, saved[0], name)
        training_checks.check_rows(encoder(), encoder, graph.num_entities, step=1)
    step = (
        "a training step changes them" if has_weights else "it has no weights to train"
    )
    passed = (
        f"{name} passed: {graph.num_entities} embeddings, the same for the same seed, in eval() "
        f"mode and after saving and loading; {step}."
    )
    print(fill(passed, PRINTED_WIDTH))


def check_rule(make: Callable[..., Rule], /, **settings: Any) -> None:
    """Check that EM can use a rule, on two small random graphs with random beliefs.

    The rule must return one finite value per candidate and indicator, and the same values if it is
    called again. It must not change the beliefs.

    Args:
        make: The class of the rule, or a function that returns one. It is called with ``pair`` (a
            `GraphPair` without links), ``device`` and the settings.
        settings: The settings that your YAML file gives to the class.

    Raises:
        UserError: If a check fails; the message says what the rule must do.
    """
    pair = _example()
    rule = make(pair=pair, device=torch.device("cpu"), **settings)
    name = type(rule).__name__
    if not isinstance(rule, Rule):
        raise ConfigError(f"{name} must be a subclass of emea.rules.rule.Rule.")
    names = list(getattr(rule, "names", []))
    if (
        not names
        or len(set(names)) < len(names)
        or not all(isinstance(one, str) for one in names)
    ):
        raise ConfigError(
            f"{name}.names must be distinct names, one per indicator, got {names}."
        )
    beliefs, embeddings = _beliefs(pair)
    before = beliefs.probs.clone()
    rule.prepare(RuleView(beliefs, embeddings))
    first = rule_values(rule, beliefs).clone()
    second = rule_values(rule, beliefs)
    if not first.is_floating_point():
        raise ConfigError(
            f"{name} returned values of type {first.dtype}. Convert them to floats."
        )
    if not torch.equal(first, second):
        raise ConfigError(
            f"{name} returned other values when it was called a second time."
        )
    if not torch.equal(before, beliefs.probs):
        raise ConfigError(
            f"{name} changed the probabilities of the beliefs. Work on a copy."
        )
    passed = (
        f"{name} passed: finite values of {', '.join(names)} for {first.shape[1]} candidates of "
        f"{first.shape[0]} entities, the same in a second call; the beliefs are unchanged."
    )
    print(fill(passed, PRINTED_WIDTH))


def _example() -> GraphPair:
    """Return two small graphs without links, as a run gives them to encoders and rules."""
    pair = synthetic_pair(num_entities=100)
    return GraphPair(pair.name, pair.source, pair.target, pair.links[:0])


def _evaluated(encoder: nn.Module) -> Tensor:
    with torch.no_grad():
        rows: Tensor = encoder.eval()()
        return rows.detach().clone()


def _check_step(encoder: nn.Module, before: Tensor, name: str) -> bool:
    """Take a step of gradient descent and check that it changes the embeddings.

    Returns:
        Whether the encoder has weights to train.
    """
    weights = [one for one in encoder.parameters() if one.requires_grad]
    if not weights:
        return False
    optimiser = torch.optim.SGD(weights, lr=0.1)
    rows = encoder().float()
    (rows * torch.linspace(-1, 1, rows.shape[1])).sum().backward()
    optimiser.step()
    if torch.equal(_evaluated(encoder.train()), before):
        raise ConfigError(f"A training step does not change the embeddings of {name}.")
    return True


def _beliefs(pair: GraphPair) -> tuple[Beliefs, Tensor]:
    """Return random candidates with probabilities, some of them 0, and embeddings."""
    generator = torch.Generator().manual_seed(0)
    shape = pair.source.num_entities, pair.target.num_entities
    order = torch.rand(shape, generator=generator).argsort(1)[:, :NUM_CANDIDATES]
    probs = torch.rand(order.shape, generator=generator).sort(1, descending=True).values
    probs[:, -1] = 0
    probs = probs / (probs.sum(1, keepdim=True) + 0.1)
    return Beliefs(order, probs), torch.randn(shape[0], WIDTH, generator=generator)
