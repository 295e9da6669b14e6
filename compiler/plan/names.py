"""What parts and the channels between them are called. People find these names in reports, records and C++."""

from __future__ import annotations

LOAD, STORE, SPILL = "load.", "store.", "spill."
"""What the names of parts begin with that reach external memory: for the model, and for a later kernel."""
UNPACK, PACK, FORK, CONVERT, CHUNK, CONCAT = "unpack.", "pack.", "fork.", "convert.", "chunk.", "concat."
"""The same of parts that only move data."""


def load_name(tensor: str) -> str:
    return f"{LOAD}{tensor}"


def operand_load_name(layer: str, position: int) -> str:
    """Of a parameter, which every layer loads for itself."""
    return f"{LOAD}{layer}.{position}"


def unpack_name(load: str) -> str:
    """Of what cuts the words of a load into slices."""
    return f"{UNPACK}{load.removeprefix(LOAD)}"


def store_name(result: int) -> str:
    return f"{STORE}{result}"


def spill_name(tensor: str) -> str:
    return f"{SPILL}{tensor}"


def spilled_name(spill: str) -> str:
    """Of the tensor in external memory that a spill writes."""
    return f"{spill.removeprefix(SPILL)}.memory"


def pack_name(store: str) -> str:
    """Of what puts slices together to the words of a store."""
    return f"{PACK}{store.removeprefix(STORE).removeprefix(SPILL)}"


def fork_name(tensor: str) -> str:
    return f"{FORK}{tensor}"


def convert_name(tensor: str, which: str) -> str:
    return f"{CONVERT}{tensor}{which}"


def converted_fork_name(tensor: str, which: str) -> str:
    return f"{FORK}{tensor}.converted{which}"


def chunk_name(tensor: str, dim: int) -> str:
    return f"{CHUNK}{tensor}.{dim}"


def chunk_part_name(chunk: str, number: int) -> str:
    """Of one of the tensors that a chunk makes."""
    return f"{chunk}.part{number}"


def concat_name(first: str) -> str:
    return f"{CONCAT}{first}"


def slide_name(tensor: str, dim: int) -> str:
    """Of what lays out windows along a dim."""
    return f"{tensor}.windows{dim}"


def reshaped_name(tensor: str, shape: tuple[int, ...]) -> str:
    return f"{tensor}.as.{'x'.join(str(size) for size in shape)}"


def result_name(number: int) -> str:
    """Of a result of the model."""
    return f"output_{number}"


def kernel_name(group: int) -> str:
    return f"group{group}"


def group_suffix(group: int) -> str:
    """Behind the names of what a later kernel loads and converts, which others may load and convert too."""
    return f".{kernel_name(group)}"


def stripe_name(tensor: str, stripe: int) -> str:
    """Of one bank's share of a tensor."""
    return f"{tensor}#{stripe}"


def striped_tensor(share: str) -> str:
    """The tensor that a bank's share is of."""
    return share.rpartition("#")[0]


def shared_port_name(port: str) -> str:
    """What people call the task of a port that several loads go through."""
    return f"loads.{port}"


def block_name(part: str) -> str:
    """Of the block channel inside a part."""
    return f"{part}.block"


def channel_name(maker: str, reader: str, number: int | None = None) -> str:
    """Of the FIFO between two parts, after both; with a number where there are several."""
    return f"{maker}__{reader}" + ("" if number is None else f"_{number}")
