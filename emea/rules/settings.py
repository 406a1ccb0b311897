"""Settings of the rules."""

from dataclasses import dataclass

from emea.setting import setting, up_to


@dataclass(frozen=True)
class ParisRuleSettings:
    """The PARIS rule."""

    markov_blanket: bool = setting(
        False,
        "score all factors of an entity's Markov blanket; false: only its own",
        source="released EMEA",
    )


@dataclass(frozen=True)
class AvoidConflictSettings:
    """The AvoidConf rule."""

    num_neighbours: int = setting(
        5,
        "nearest entities that are compared (N)",
        up_to(100_000),
        source="paper, appendix C.2",
    )
    mappings: str = setting(
        "best",
        "other entities map to their best candidate, or to all by probability (expected)",
        ("best", "expected"),
        source="paper, section 4.5",
    )


@dataclass(frozen=True)
class BothRules:
    """The settings of both rules, as in their own options."""

    paris: ParisRuleSettings = ParisRuleSettings()
    avoid_conflict: AvoidConflictSettings = AvoidConflictSettings()


@dataclass(frozen=True)
class ComposedRuleSettings:
    """PARIS and AvoidConf together."""

    rules: BothRules = BothRules()
