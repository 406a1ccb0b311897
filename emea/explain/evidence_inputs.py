"""Beliefs and relation inclusions that the evidence of a finished run is computed from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from emea.baselines.paris_reasoner import ParisReasoner
from emea.baselines.prase import PRASE
from emea.data.arrays import NO_MATCH
from emea.data.graph_pair import GraphPair
from emea.em.two_way_step import TwoWayStep
from emea.matching.beliefs import Beliefs, Matching
from emea.matching.pair_table import PairTable
from emea.rules.paris import PARIS
from emea.rules.rule import Composed, RuleView
from emea.rules.support import Grounds
from emea.run.building import build_two_way
from emea.run.finished_run import FinishedRun


@dataclass(frozen=True, eq=False)
class RunGrounds:
    """Inputs of the evidence of a run.

    Args:
        grounds: Beliefs in neighbours and inclusions of relations.
        rule: Name of the rule that uses them, for messages.
        used: Whether the run itself reasoned with the rule. If not, it is shown for information.
        both_sides: Whether a belief is the product of the choices of both sides.
        sees_q: Whether the feature ``similarity`` of a pair is the recorded q.
        features: ``[num_source, k]`` further features of the candidates of the joint
            distribution, by name.
        last: The reasoner of PARIS or PRASE and its last matching; ``None`` for other methods.
    """

    grounds: Grounds
    rule: str
    used: bool = True
    both_sides: bool = False
    sees_q: bool = True
    features: Mapping[str, Tensor] = field(default_factory=dict)
    last: tuple[ParisReasoner, Matching] | None = None


def run_grounds(run: FinishedRun, pair: GraphPair) -> RunGrounds:
    """Compute beliefs and inclusions as the run's next E-step would use them.

    Both are computed again from the run's results, with the run's own settings:

    - ``em=paper``: q of the neural model with certain labels, as in the last E-step. The softmax
      of the weighted sum of the values is q*.
    - ``em=dual``: the final calibrated probabilities. The last update started from the beliefs
      before it, so its values differ from these by one update.
    - ``method=paris`` and ``prase``: the last matching, which one more iteration would use.
    - ``em=none`` or ``rule=avoid_conflict``: what ``rule=paris`` would compute from q. It had no
      influence on the run.

    Args:
        run: The finished run.
        pair: Its graphs, with the literals that the run used as evidence.
    """
    if run.neural is None:
        return _of_baseline(run, pair)
    rule = (
        run.settings.option("rule")(pair=pair, device="cpu")
        if run.joint is not None
        else None
    )
    parts = rule.parts if isinstance(rule, Composed) else [rule]
    paris = next((part for part in parts if isinstance(part, PARIS)), None)
    if paris is None:
        return _of_rule(run, PARIS(run.pair), used=False)
    two_way = run.settings.two_way
    if two_way is None:
        return _of_rule(run, paris)
    num_candidates = run.settings.em.num_candidates
    step: Any = build_two_way(two_way, paris, num_candidates)
    return _of_two_way(run, step)


def _of_rule(run: FinishedRun, rule: PARIS, used: bool = True) -> RunGrounds:
    assert run.neural is not None, "a run that is not a baseline has a neural model"
    given = None
    if used:
        visible = run.settings.option("protocol")()(run.split)
        given = visible.relation_links
    links = None if given is None else torch.from_numpy(given.copy())
    rule.prepare(RuleView(run.neural, torch.empty(run.neural.num_source, 0), links))
    words = "the PARIS rule" if used else "the PARIS rule, which the run did not use"
    if rule.markov_blanket:
        words += (
            "; the run also added the subsets of the neighbours, which are not shown"
        )
    grounds = Grounds(rule.source, rule.target, run.neural, rule.inclusions())
    return RunGrounds(grounds, words, used)


def _of_two_way(run: FinishedRun, step: TwoWayStep) -> RunGrounds:
    assert run.joint is not None
    model = step.two_way.evidence
    beliefs = run.joint
    table = PairTable(
        beliefs.targets, beliefs.probs, beliefs.probs > 0, run.pair.target.num_entities
    )
    found = model(table, beliefs.probs)
    names = ("coverage", "rare_coverage", "relation_overlap")
    if model.literals is not None:
        table, probs = model.literals.table(table, beliefs.probs)
        beliefs = Beliefs(table.targets, probs)
    return RunGrounds(
        Grounds(model.source, model.target, model.carriers(beliefs), found.subsumption),
        f"the PARIS rule in both directions (em={run.settings.name('em')})",
        both_sides=step.model.both and not step.settings.one_to_one,
        sees_q=not step.settings.one_to_one,
        features={
            name: found.features[name] for name in names if name in found.features
        },
    )


def _of_baseline(run: FinishedRun, pair: GraphPair) -> RunGrounds:
    assert run.joint is not None
    make_reasoner = run.settings.reasoner
    assert make_reasoner is not None, "a run without a neural model is a baseline's"
    reasoner = make_reasoner(pair=pair, device="cpu")
    words = "PARIS"
    if isinstance(reasoner, PRASE):
        words = (
            f"PRASE: PARIS, with {reasoner.weight:g} of an embedding's cosine mixed in"
        )
        reasoner = reasoner.paris
    assert isinstance(reasoner, ParisReasoner)
    carriers = run.joint
    targets = carriers.targets[:, 0]
    probs = carriers.probs[:, 0]
    known = torch.where(probs > 0, targets, NO_MATCH)
    matching = Matching(known, probs, run.pair.target.num_entities)
    if reasoner.literals is not None:
        carriers = reasoner.literals.matching(matching).beliefs()
    grounds = Grounds(
        reasoner.source,
        reasoner.target,
        carriers,
        reasoner.inclusions(matching),
        least_inclusion=reasoner.theta,
        least_evidence=reasoner.least_evidence,
    )
    return RunGrounds(grounds, words, last=(reasoner, matching))
