"""The checks that authors of encoders and rules call, for our own options and for wrong ones."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from emea.config.composition import composed, option_names, search_also
from emea.config.instantiate import factory
from emea.errors import UserError
from emea.matching.beliefs import Beliefs
from emea.rules.rule import Rule, RuleView
from emea.testing import check_encoder, check_rule

from .run import own_encoders
from .run.test_encoder_contract import RIGHT, WRONG

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"


@pytest.mark.parametrize("model", option_names("model"))
def test_our_encoders_pass(model: str) -> None:
    check_encoder(factory(composed([f"model={model}"]).model.encoder))


@pytest.mark.parametrize(
    "rule", [name for name in option_names("rule") if name != "none"]
)
def test_our_rules_pass(rule: str) -> None:
    check_rule(factory(composed([f"rule={rule}"]).rule))


@pytest.mark.parametrize(("kind", "group"), [("encoder", "model"), ("rule", "rule")])
def test_the_examples_of_the_guides_pass(
    kind: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = EXAMPLES / kind
    monkeypatch.syspath_prepend(str(folder))
    (name,) = (path.stem for path in (folder / "conf" / group).glob("*.yaml"))
    (module,) = (path.stem for path in folder.glob("*.py"))
    search_also([folder / "conf"])
    node = composed([f"{group}={name}", f"trust=[{module}]"])[group]
    (check_encoder if kind == "encoder" else check_rule)(
        factory(node.encoder if kind == "encoder" else node)
    )
    search_also([])
    sys.modules.pop(module, None)


@pytest.mark.parametrize("encoder", sorted({name for name, _ in RIGHT}))
def test_what_an_encoder_may_return(encoder: str) -> None:
    check_encoder(getattr(own_encoders, encoder), dim=4)


@pytest.mark.parametrize("encoder", WRONG)
def test_what_an_encoder_may_not_return(encoder: str) -> None:
    with pytest.raises(UserError, match=f"^{encoder}{WRONG[encoder]}"):
        check_encoder(getattr(own_encoders, encoder))


class Hidden(own_encoders.Plain):
    """Has a state outside of its parameters and buffers."""

    def __init__(self, graph: Any) -> None:
        super().__init__(graph)
        self.shift = torch.randn(())

    def forward(self) -> Tensor:
        return self.embedding.weight + self.shift


class Noisy(own_encoders.Plain):
    """Drops elements outside of training, too."""

    def forward(self) -> Tensor:
        return nn.functional.dropout(self.embedding.weight, 0.5)


class Stuck(own_encoders.Plain):
    """Multiplies its weights by zero."""

    def forward(self) -> Tensor:
        return self.embedding.weight * 0


@pytest.mark.parametrize(
    ("encoder", "sentence"),
    [
        (Hidden, "Hidden has a state that its state_dict"),
        (Noisy, "must return the same embeddings in eval"),
        (Stuck, "A training step does not change the embeddings of Stuck"),
    ],
)
def test_what_only_the_check_finds(encoder: type, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        check_encoder(encoder)


def rule_of(values: Callable[[Beliefs], Any], names: Any = ("mine",)) -> type[Rule]:
    class Own(Rule):
        def __init__(self, **given: Any) -> None:
            self.names = names

        def prepare(self, view: RuleView) -> None: ...

        def __call__(self, beliefs: Beliefs) -> Any:
            return values(beliefs)

    return Own


def one(beliefs: Beliefs) -> Tensor:
    return beliefs.probs.unsqueeze(2)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (
            rule_of(one, ()),
            r"Own.names must be distinct names, one per indicator, got \[\]",
        ),
        (rule_of(one, ("a", "a")), "must be distinct names"),
        (rule_of(lambda beliefs: beliefs.probs), "returned values of shape"),
        (rule_of(lambda beliefs: one(beliefs) / 0), "NaN or infinite"),
        (rule_of(lambda beliefs: None), "returned a NoneType"),
        (rule_of(lambda beliefs: one(beliefs).long()), "Convert them to floats"),
        (
            rule_of(lambda beliefs: torch.rand_like(one(beliefs))),
            "other values when it was called",
        ),
        (rule_of(lambda beliefs: one(beliefs).zero_()), "changed the probabilities"),
        (lambda **given: 3, "int must be a subclass"),
    ],
)
def test_wrong_rules_are_refused(rule: Callable[..., Rule], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        check_rule(rule)
