"""The objective that hands labels to an encoder without training."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from emea.encoders.joint_graph import join_graphs
from emea.encoders.light_ea import LabelPropagation, LightEA
from emea.encoders.rrea import RREA
from emea.errors import ConfigError
from emea.fit.alignment_module import AlignmentModule
from emea.fit.fitting import fit, quieten_lightning
from emea.fit.step_block import LabelDataModule


class Remembers(nn.Module):
    """Keeps the links it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[Tensor] = []

    def propagate(self, links: Tensor) -> None:
        self.given.append(links)


def test_a_step_hands_the_links_over() -> None:
    links = torch.tensor([[0, 4], [1, 5]])
    encoder = Remembers()
    loss = LabelPropagation()(encoder, links)
    assert float(loss) == 0
    assert not loss.requires_grad
    assert [given.tolist() for given in encoder.given] == [links.tolist()]
    assert LabelPropagation().steps_per_epoch(100) == 1


def test_an_encoder_that_is_trained_is_refused(make_pair: Any) -> None:
    encoder = RREA(join_graphs(make_pair()), dim=4)
    with pytest.raises(ConfigError, match="RREA cannot propagate labels"):
        LabelPropagation()(encoder, torch.tensor([[0, 9]]))


def test_weights_without_an_optimiser_are_refused(make_pair: Any) -> None:
    encoder = RREA(join_graphs(make_pair()), dim=4)
    with pytest.raises(ConfigError, match=r"it needs a model\.optimizer"):
        AlignmentModule(encoder, LabelPropagation(), None, num_source=9, num_target=10)


def test_fits_without_an_optimiser_follow_the_labels(make_pair: Any) -> None:
    encoder = LightEA(join_graphs(make_pair()), dim=4, output_dim=6)
    module = AlignmentModule(encoder, LabelPropagation(), None, num_source=9, num_target=10)
    twin = LightEA(join_graphs(make_pair()), dim=4, output_dim=6)
    twin.load_state_dict(encoder.state_dict())
    data = LabelDataModule(np.array([[0, 0], [1, 1]]), num_source=9)
    twin.propagate(data.links)  # torch warns once of its sparse format, which is not the point
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quieten_lightning()
        for links in (np.array([[0, 0], [1, 1]]), np.array([[2, 3]])):
            data.relabel(links)
            fit(module, data, 1, "cpu", [])
            twin.propagate(data.links)
            assert twin().any()
            assert torch.equal(torch.cat(module.embeddings()), twin())
    assert not caught, [str(warning.message) for warning in caught]
    assert module.losses == [(1, 0.0, "loss"), (2, 0.0, "loss")]
    assert module.configure_optimizers() == []


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_links_are_passed_if_wanted(weighted: bool, make_pair: Any) -> None:
    links, weights = torch.tensor([[0, 9], [1, 10]]), torch.tensor([1.0, 0.1])
    encoder = LightEA(join_graphs(make_pair()), dim=6, output_dim=8)
    objective = LabelPropagation(weighted=weighted)
    objective.weigh(weights)
    objective(encoder, links)
    found = encoder().clone()
    encoder.propagate(links, weights if weighted else None)
    assert torch.equal(encoder(), found)
    encoder.propagate(links, None if weighted else weights)
    assert not torch.equal(encoder(), found)
