"""Where the tensors of a design lie: in which bank of external memory, behind which port, in how many bytes."""

from __future__ import annotations

from typing import Literal, cast

from penstock.compiler.backend.hls.link import banks_of_bundles, bytes_of_banks
from penstock.compiler.backend.hls.ports import TopPort, ports_of
from penstock.compiler.package.report_placement import BankInfo, TensorInfo
from penstock.compiler.pipeline.lower import Lowered
from penstock.compiler.platforms import Platform


def describe_tensors(lowered: Lowered, platform: Platform) -> tuple[TensorInfo, ...]:
    """All that is called with or left, in the order of the accelerator's arguments."""
    ports = ports_of(lowered.top)
    outside = [port for port in ports if port.banks is None]
    banks = banks_of_bundles(outside, platform) if platform.shell else {}  # elsewhere the tools' user connects ports
    return tuple(_tensor(port, banks) for port in ports)


def _tensor(port: TopPort, banks: dict[int, str]) -> TensorInfo:
    layout, bundle = port.layout, None if port.banks is not None else port.axi.bundle.data
    return TensorInfo(
        name=port.tensor,
        kind=cast(Literal["input", "parameter", "output", "buffer"], port.kind),
        bank="" if bundle is None else banks.get(bundle, ""),
        port="" if bundle is None else f"gmem{bundle}",
        argument=port.argument,
        shape=port.shape,
        dtype=port.dtype,
        share=(layout.stripe, layout.stripes) if layout is not None and layout.stripe is not None else None,
        bytes=port.elements * port.scalar_bits // 8,
        word_bytes=port.lanes * port.scalar_bits // 8,
    )


def describe_banks(tensors: tuple[TensorInfo, ...], platform: Platform) -> tuple[BankInfo, ...]:
    """The banks that these lie in, as the platform has them."""
    used = {tensor.bank for tensor in tensors}
    return tuple(
        BankInfo(name=name, memory=memory, bytes=size)
        for name, (memory, size) in bytes_of_banks(platform).items()
        if name in used
    )
