"""The file format of checkpoints: safetensors, with a JSON state and a checksum as metadata."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from emea.errors import DataError
from emea.record.checked_files import json_object, opened

CONTENT_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    SafetensorError,
    TypeError,
    ValueError,
)
"""Errors that missing or malformed content of a file can raise."""


@contextmanager
def checkpoint_errors(path: Path) -> Iterator[None]:
    """Report missing or malformed content of a checkpoint as one error.

    Raises:
        DataError: If the content of the file is damaged or belongs to another program.
    """
    try:
        yield
    except CONTENT_ERRORS as error:
        problem = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise DataError(
            f"{path} is not a valid checkpoint of emea: {problem}"
        ) from error


def copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return copies in the main memory, of which no two share memory."""
    return {
        name: tensor.detach().to(
            "cpu", copy=True, memory_format=torch.contiguous_format
        )
        for name, tensor in tensors.items()
    }


def serialised(tensors: dict[str, Tensor], state: str) -> list[bytes | memoryview]:
    """Return the parts of a safetensors file, without copies of the tensors.

    The metadata have a fixed order; safetensors itself writes them in a random one.

    Args:
        tensors: Contiguous tensors in the main memory.
        state: A JSON object, which becomes part of the metadata.
    """
    metadata = {"sha256": checksum(tensors, state), "state": state}
    # a file of empty tensors has the names of the types and the order of the tensors
    empty = save({name: tensor.new_empty(0) for name, tensor in tensors.items()})
    kinds = json.loads(empty[8 : 8 + int.from_bytes(empty[:8], "little")])
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, kind in kinds.items():
        start = end
        end = end + tensors[name].nbytes
        shape = list(tensors[name].shape)
        header[name] = {
            "dtype": kind["dtype"],
            "shape": shape,
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the tensors stay aligned
    values = [_values(tensors[name]) for name in kinds if tensors[name].numel()]
    return [len(text).to_bytes(8, "little") + text, *values]


def checksum(tensors: dict[str, Tensor], state: str) -> str:
    """Return the SHA-256 of names, types, shapes and values."""
    digest = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        if tensor.numel():  # torch cannot view an empty tensor as bytes
            digest.update(_values(tensor))
    return digest.hexdigest()


def _values(tensor: Tensor) -> memoryview:
    """Return the bytes of a contiguous tensor that is not empty."""
    values = tensor.reshape(-1)
    if values.stride(0) != 1:  # possible if there is only one value
        values = values.clone(memory_format=torch.contiguous_format)
    return values.view(torch.uint8).numpy().data


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the state of a file.

    Raises:
        DataError: If the file is damaged, or belongs to another program.
    """
    with checkpoint_errors(path), opened(path), safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata() or {}
        # files of earlier versions have no checksum
        written = metadata.get("sha256")
        if written is not None and written != checksum(tensors, metadata["state"]):
            raise ValueError("its content has another checksum")
        return tensors, json_object(metadata["state"].encode())
