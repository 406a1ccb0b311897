"""Chooses the method of ``emea align`` and ``Aligner``, and how many encoders it uses.

PARIS finds what literals support, and leaves the other entities unmatched. EM with an encoder also
finds entities whose names differ, but only if their neighbours confirm them. So the choice depends
on one number that the anchors show: how many neighbours of a right pair agree.
"""

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from omegaconf import DictConfig

from emea.config.groups import OPTIONAL
from emea.config.run_config import RunConfig
from emea.config.usual_settings import (
    AUTO,
    INDEPENDENT,
    LITERALS,
    fitting_settings,
    of_one_encoder,
)
from emea.data.graph_pair import GraphPair, LiteralMatches
from emea.data.settings import Cardinality
from emea.data.split import has_literals
from emea.run.building import with_literals

logger = logging.getLogger(__name__)

LEAST_CONFIRMING = 3.0
"""Agreeing neighbours of a right pair from which EM finds more than PARIS (docs/literals.md)."""

FEW_LINKS, FEW_SHARE = 100, 0.5
"""Links are few, so that literals help, below this number or share of the smaller graph. With
literals and fewer links than this number, none are held out: so few validation links would mislead.
With a share of .1, 100 links made the answer of small graphs with labels worse than no link."""

MANY_ENTITIES = 100_000
"""Graphs with more entities together are aligned by one encoder: time and memory count more."""

NO_VALIDATION = "split.num_validation=0"

NAMES_ALIKE = "literals.least_similarity=0.75"
LIKELY = "export.threshold=0.5"
"""For ontologies: short names must be more similar than long values, and many terms of one ontology
have no counterpart in the other. Both were chosen on OAEI anatomy."""


def num_given(pair: GraphPair) -> int:
    """Return the number of links that a run may learn from."""
    return len(pair.links if pair.official is None else pair.official.train)


def are_few(pair: GraphPair) -> bool:
    """Return whether the links are so few that literals are used in addition to them."""
    num_entities = min(pair.source.num_entities, pair.target.num_entities)
    return num_given(pair) < max(FEW_LINKS, FEW_SHARE * num_entities)


def only_literals_decide(pair: GraphPair) -> bool:
    """Return whether a graph has no edges, as most tables: links teach nothing about structure."""
    return not (len(pair.source.triples) and len(pair.target.triples))


def is_judged_by_decoys(pair: GraphPair, num_links: int) -> bool:
    """Return whether literals decide the answer of PARIS or PRASE, so that decoys judge it.

    Names of ontologies and vectors are not judged by decoys, and neither are graphs whose structure
    confirms right pairs, or many links.

    Args:
        pair: The graphs, with their matched literals if they are used.
        num_links: The number of links that the run learns from.
    """
    found = pair.literals
    if found is None or not all(map(len, found.texts)):
        return False
    is_supported = (
        pair.cardinality == Cardinality.ONE_TO_ONE
        and pair.matched_kinds is None
        and not pair.source.vectors
    )
    num_entities = min(pair.source.num_entities, pair.target.num_entities)
    has_few = num_links < max(FEW_LINKS, FEW_SHARE * num_entities)
    return is_supported and has_few and found.num_confirming < LEAST_CONFIRMING


def use_literals(pair: GraphPair) -> bool:
    """Return whether to read graphs again with their literals, because they have few links."""
    reading = pair.reading
    if reading is None or not are_few(pair):
        return False
    return bool(reading.source.num_literals and reading.target.num_literals)


def is_open(settings: Sequence[str]) -> bool:
    """Return whether settings leave the method open: they set nothing that only EM or PARIS has."""
    keys = {
        setting.lstrip("+~").partition("=")[0].split(".")[0] for setting in settings
    }
    return keys.isdisjoint(("method", "ensemble", "schedule", *OPTIONAL))


def usual_settings(pair: GraphPair, has_gpu: bool, with_literals: bool) -> list[str]:
    """Return the settings of EM and its encoders; one encoder if several would take too long."""
    settings = fitting_settings(AUTO, AUTO, has_gpu)
    is_large = pair.source.num_entities + pair.target.num_entities > MANY_ENTITIES
    is_slow = is_large or (with_literals and not has_gpu)
    return of_one_encoder(settings) if is_slow else settings


def choose_method(
    literals: LiteralMatches,
    num_links: int,
    usual: Sequence[str],
    needs_validation: bool = False,
) -> tuple[list[str], str]:
    """Return the settings of PARIS, or of EM with an encoder, and a sentence that says why.

    Args:
        literals: The matched literals of both graphs.
        num_links: The number of known links.
        usual: The settings of EM with an encoder, of which the model comes first.
        needs_validation: Whether links must be held out to choose a threshold.
    """
    found = f"{literals.num_confirming:.1f} neighbours of a right pair agree on average"
    if not literals.num_confirming:
        found = "too few neighbours can be compared"
    if literals.num_confirming < LEAST_CONFIRMING:
        reason = f"PARIS was used, because {found}: names and values decide."
        return ["method=paris", LITERALS], reason
    settings = [*usual, LITERALS]
    if num_links < FEW_LINKS and not needs_validation:
        settings.append(NO_VALIDATION)
    model = (
        "several encoders" if INDEPENDENT in usual else settings[0].partition("=")[2]
    )
    reason = (
        f"EM with {model} was used, because {found}: structure finds what names do not."
    )
    return settings, reason


class Suited(NamedTuple):
    """The settings that suit the data, the graphs, and why the method was chosen.

    The settings of the user take precedence over these. The graphs have their matched literals if
    the choice needed them.
    """

    settings: list[str]
    pair: GraphPair
    reason: str | None


def suited(
    compose: Callable[[list[str]], DictConfig],
    pair: GraphPair,
    is_open: bool,
    has_gpu: bool,
) -> Suited:
    """Return settings that suit the data. The caller composes and checks their configuration.

    Args:
        compose: Composes a configuration from settings that the user can override. What it returns
            is only looked at, so it need not be checked.
        pair: The graphs. If they have literals and few links, these choose the method.
        is_open: Whether the settings of the user leave the method open.
        has_gpu: Whether there is a GPU.
    """
    # several matches per entity: only PARIS finds them
    if is_open and pair.cardinality != Cardinality.ONE_TO_ONE:
        reason = f"PARIS was used, because cardinality={pair.cardinality} needs it."
        settings = ["method=paris", *([LITERALS] if has_literals(pair) else [])]
        return Suited(settings, pair, reason)
    # without literals, or with enough links and with edges: EM. It uses literals only if there are
    # no links, or if the user gave vectors
    usual = usual_settings(pair, has_gpu, with_literals=not num_given(pair))
    if not has_literals(pair) or not (are_few(pair) or only_literals_decide(pair)):
        needs_them = not num_given(pair) or pair.source.vectors
        settings = [*usual, LITERALS] if needs_them else usual
        return Suited(_with_names(compose, settings, pair), pair, None)
    # few links, and literals: EM uses both, unless the method is open and the literals themselves
    # show that PARIS finds more
    usual = usual_settings(pair, has_gpu, with_literals=True)
    settings = _with_names(compose, [*usual, LITERALS], pair)
    if not is_open:
        return Suited(settings, pair, None)
    with_them = compose(settings)
    if with_them.literals.name == "none":
        return Suited(settings, pair, None)
    pair = with_literals(RunConfig.of(with_them), pair)
    assert pair.literals is not None
    needs_validation = with_them.export.target_precision is not None
    settings, reason = choose_method(
        pair.literals, num_given(pair), usual, needs_validation
    )
    logger.info(reason)
    return Suited(_with_names(compose, settings, pair), pair, reason)


def _with_names(
    compose: Callable[[list[str]], DictConfig], settings: list[str], pair: GraphPair
) -> list[str]:
    """Return the settings, for ontologies with the defaults that suit their names."""
    if pair.matched_kinds is None:
        return settings
    usual = compose(settings)
    named = [NAMES_ALIKE] if usual.literals.name == "similar" else []
    likely = [LIKELY] if usual.export.target_precision is None else []
    return [*settings, *named, *likely]
