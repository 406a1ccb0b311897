"""emea: entity alignment guided by compatibility (Liu et al., EMNLP 2022).

Everything that docs/api.md documents can be imported from here, except the checks in
`emea.testing`. A name is loaded when it is first used, because torch imports slowly.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emea.aligner import Aligner as Aligner
    from emea.aligner import Match as Match
    from emea.aligner import ToLabel as ToLabel
    from emea.answer.decoding import BalancedAnswer as BalancedAnswer
    from emea.answer.decoding import BestAnswer as BestAnswer
    from emea.answer.decoding import HungarianAnswer as HungarianAnswer
    from emea.answer.decoding import MutualAnswer as MutualAnswer
    from emea.answer.decoding import OneToOneAnswer as OneToOneAnswer
    from emea.answer.decoding import SinkhornAnswer as SinkhornAnswer
    from emea.answer.settings import HungarianSettings as HungarianSettings
    from emea.data.attributes import AttributeTriples as AttributeTriples
    from emea.data.formats.graph_file import read_graph_file as read_graph_file
    from emea.data.formats.link_file import read_link_file as read_link_file
    from emea.data.formats.own_formats import register_format as register_format
    from emea.data.graph import KnowledgeGraph as KnowledgeGraph
    from emea.data.graph_pair import GraphPair as GraphPair
    from emea.data.sources.id_format import read_id_format as read_id_format
    from emea.data.sources.library_inputs import graph_of as graph_of
    from emea.data.sources.library_inputs import read_graph as read_graph
    from emea.data.sources.library_inputs import read_links as read_links
    from emea.data.sources.oaei import read_oaei as read_oaei
    from emea.data.sources.openea_format import read_openea_format as read_openea_format
    from emea.data.sources.own_files import read_own_files as read_own_files
    from emea.data.sources.synthetic import synthetic_pair as synthetic_pair
    from emea.data.split import Split as Split
    from emea.em.joint import JointStep as JointStep
    from emea.em.settings import DualSettings as DualSettings
    from emea.em.settings import NoEMSettings as NoEMSettings
    from emea.em.settings import OneToOneSettings as OneToOneSettings
    from emea.em.settings import OneToOneTwoWaySettings as OneToOneTwoWaySettings
    from emea.em.settings import PaperSettings as PaperSettings
    from emea.em.settings import TwoWaySettings as TwoWaySettings
    from emea.encoders.joint_graph import JointGraph as JointGraph
    from emea.encoders.objective import Objective as Objective
    from emea.encoders.settings import AdagradSettings as AdagradSettings
    from emea.encoders.settings import AdamSettings as AdamSettings
    from emea.encoders.settings import AliNetModelSettings as AliNetModelSettings
    from emea.encoders.settings import (
        AliNetObjectiveSettings as AliNetObjectiveSettings,
    )
    from emea.encoders.settings import AliNetSettings as AliNetSettings
    from emea.encoders.settings import DualAMNModelSettings as DualAMNModelSettings
    from emea.encoders.settings import DualAMNSettings as DualAMNSettings
    from emea.encoders.settings import HardSampleSettings as HardSampleSettings
    from emea.encoders.settings import IPTransEModelSettings as IPTransEModelSettings
    from emea.encoders.settings import (
        IPTransEObjectiveSettings as IPTransEObjectiveSettings,
    )
    from emea.encoders.settings import IPTransESettings as IPTransESettings
    from emea.encoders.settings import (
        LabelPropagationSettings as LabelPropagationSettings,
    )
    from emea.encoders.settings import LightEAModelSettings as LightEAModelSettings
    from emea.encoders.settings import LightEASettings as LightEASettings
    from emea.encoders.settings import MarginSettings as MarginSettings
    from emea.encoders.settings import RMSpropSettings as RMSpropSettings
    from emea.encoders.settings import RREAModelSettings as RREAModelSettings
    from emea.encoders.settings import RREASettings as RREASettings
    from emea.errors import ConfigError as ConfigError
    from emea.errors import DataError as DataError
    from emea.errors import DivergedError as DivergedError
    from emea.errors import UserError as UserError
    from emea.evaluation.metric_table import Evaluation as Evaluation
    from emea.fit.settings import SemiSettings as SemiSettings
    from emea.fit.settings import StoppingSettings as StoppingSettings
    from emea.fit.settings import SupervisedSettings as SupervisedSettings
    from emea.literals.settings import EqualLiteralsSettings as EqualLiteralsSettings
    from emea.literals.settings import NoLiteralsSettings as NoLiteralsSettings
    from emea.literals.settings import (
        SimilarLiteralsSettings as SimilarLiteralsSettings,
    )
    from emea.matching.beliefs import Beliefs as Beliefs
    from emea.rules.rule import Rule as Rule
    from emea.rules.rule import RuleView as RuleView
    from emea.rules.settings import AvoidConflictSettings as AvoidConflictSettings
    from emea.rules.settings import BothRules as BothRules
    from emea.rules.settings import ComposedRuleSettings as ComposedRuleSettings
    from emea.rules.settings import ParisRuleSettings as ParisRuleSettings
    from emea.run.finished_run import FinishedRun as FinishedRun
    from emea.run.finished_run import load_run as load_run

# A waiting thread should sleep soon instead of spinning. On a busy machine, a spinning thread
# blocks the core that the other thread needs, which made steps twenty times slower. Sleeping
# immediately costs a third on an idle machine. OpenMP reads this setting when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

__version__ = "0.2.0"

_PUBLIC = {
    "emea.aligner": (
        "Aligner",
        "Match",
        "ToLabel",
    ),
    "emea.answer.decoding": (
        "BalancedAnswer",
        "BestAnswer",
        "HungarianAnswer",
        "MutualAnswer",
        "OneToOneAnswer",
        "SinkhornAnswer",
    ),
    "emea.answer.settings": ("HungarianSettings",),
    "emea.data.attributes": ("AttributeTriples",),
    "emea.data.formats.graph_file": ("read_graph_file",),
    "emea.data.formats.link_file": ("read_link_file",),
    "emea.data.formats.own_formats": ("register_format",),
    "emea.data.graph": ("KnowledgeGraph",),
    "emea.data.graph_pair": ("GraphPair",),
    "emea.data.sources.id_format": ("read_id_format",),
    "emea.data.sources.library_inputs": (
        "graph_of",
        "read_graph",
        "read_links",
    ),
    "emea.data.sources.oaei": ("read_oaei",),
    "emea.data.sources.openea_format": ("read_openea_format",),
    "emea.data.sources.own_files": ("read_own_files",),
    "emea.data.sources.synthetic": ("synthetic_pair",),
    "emea.data.split": ("Split",),
    "emea.em.joint": ("JointStep",),
    "emea.em.settings": (
        "DualSettings",
        "NoEMSettings",
        "OneToOneSettings",
        "OneToOneTwoWaySettings",
        "PaperSettings",
        "TwoWaySettings",
    ),
    "emea.encoders.joint_graph": ("JointGraph",),
    "emea.encoders.objective": ("Objective",),
    "emea.encoders.settings": (
        "AdagradSettings",
        "AdamSettings",
        "AliNetModelSettings",
        "AliNetObjectiveSettings",
        "AliNetSettings",
        "DualAMNModelSettings",
        "DualAMNSettings",
        "HardSampleSettings",
        "IPTransEModelSettings",
        "IPTransEObjectiveSettings",
        "IPTransESettings",
        "LabelPropagationSettings",
        "LightEAModelSettings",
        "LightEASettings",
        "MarginSettings",
        "RMSpropSettings",
        "RREAModelSettings",
        "RREASettings",
    ),
    "emea.errors": (
        "ConfigError",
        "DataError",
        "DivergedError",
        "UserError",
    ),
    "emea.evaluation.metric_table": ("Evaluation",),
    "emea.fit.settings": (
        "SemiSettings",
        "StoppingSettings",
        "SupervisedSettings",
    ),
    "emea.literals.settings": (
        "EqualLiteralsSettings",
        "NoLiteralsSettings",
        "SimilarLiteralsSettings",
    ),
    "emea.matching.beliefs": ("Beliefs",),
    "emea.rules.rule": (
        "Rule",
        "RuleView",
    ),
    "emea.rules.settings": (
        "AvoidConflictSettings",
        "BothRules",
        "ComposedRuleSettings",
        "ParisRuleSettings",
    ),
    "emea.run.finished_run": (
        "FinishedRun",
        "load_run",
    ),
}
"""The public names of each module."""

_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = [
    "AdagradSettings",
    "AdamSettings",
    "AliNetModelSettings",
    "AliNetObjectiveSettings",
    "AliNetSettings",
    "Aligner",
    "AttributeTriples",
    "AvoidConflictSettings",
    "BalancedAnswer",
    "Beliefs",
    "BestAnswer",
    "BothRules",
    "ComposedRuleSettings",
    "ConfigError",
    "DataError",
    "DivergedError",
    "DualAMNModelSettings",
    "DualAMNSettings",
    "DualSettings",
    "EqualLiteralsSettings",
    "Evaluation",
    "FinishedRun",
    "GraphPair",
    "HardSampleSettings",
    "HungarianAnswer",
    "HungarianSettings",
    "IPTransEModelSettings",
    "IPTransEObjectiveSettings",
    "IPTransESettings",
    "JointGraph",
    "JointStep",
    "KnowledgeGraph",
    "LabelPropagationSettings",
    "LightEAModelSettings",
    "LightEASettings",
    "MarginSettings",
    "Match",
    "MutualAnswer",
    "NoEMSettings",
    "NoLiteralsSettings",
    "Objective",
    "OneToOneAnswer",
    "OneToOneSettings",
    "OneToOneTwoWaySettings",
    "PaperSettings",
    "ParisRuleSettings",
    "RMSpropSettings",
    "RREAModelSettings",
    "RREASettings",
    "Rule",
    "RuleView",
    "SemiSettings",
    "SimilarLiteralsSettings",
    "SinkhornAnswer",
    "Split",
    "StoppingSettings",
    "SupervisedSettings",
    "ToLabel",
    "TwoWaySettings",
    "UserError",
    "graph_of",
    "load_run",
    "read_graph",
    "read_graph_file",
    "read_id_format",
    "read_link_file",
    "read_links",
    "read_oaei",
    "read_openea_format",
    "read_own_files",
    "register_format",
    "synthetic_pair",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
