"""The file format of checkpoints."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from emea.fit.tensor_file import checksum, read_tensors, serialised


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    tensors = {"b": torch.arange(3), "a": torch.ones(2, 2), "none": torch.zeros(0)}
    contents = {
        b"".join(serialised(tensors, json.dumps({"steps": 3, "name": "é"})))
        for _ in range(20)
    }
    assert len(contents) == 1
    (tmp_path / "file").write_bytes(contents.pop())
    read, plain = read_tensors(tmp_path / "file")
    assert plain == {"steps": 3, "name": "é"}
    assert read.keys() == tensors.keys()
    assert all(torch.equal(read[name], tensors[name]) for name in tensors)


KINDS = pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(1.0),
        torch.zeros(0, 3),
        torch.zeros(1).as_strided((1,), (0,)),
        torch.ones(2, 2, dtype=torch.bfloat16),
        torch.tensor([True, False]),
    ],
    ids=["scalar", "empty", "no stride", "bfloat16", "bool"],
)


@KINDS
def test_every_kind_of_tensor_is_written_as_by_safetensors(
    tensor: torch.Tensor, tmp_path: Path
) -> None:
    tensors = {
        "c": tensor,
        "a": torch.arange(3),
        "b": torch.tensor([True]),
        "d": torch.ones(2, 1),
    }
    content = b"".join(serialised(tensors, "{}"))
    start = 8 + int.from_bytes(content[:8], "little")
    expected = save(
        {name: value.contiguous().clone() for name, value in tensors.items()}
    )
    first = 8 + int.from_bytes(expected[:8], "little")
    assert content[start:] == expected[first:]
    header = json.loads(content[8:start])
    assert header.pop("__metadata__")["state"] == "{}"
    assert list(header.items()) == list(json.loads(expected[8:first]).items())
    (tmp_path / "file").write_bytes(content)
    read, _ = read_tensors(tmp_path / "file")
    assert all(torch.equal(read[name], tensors[name]) for name in tensors)


@KINDS
def test_every_kind_of_tensor_has_achecksum(tensor: torch.Tensor) -> None:
    assert checksum({"a": tensor}, "{}") == checksum({"a": tensor.clone()}, "{}")
    assert checksum({"a": tensor}, "{}") != checksum({"b": tensor}, "{}")
