"""What HLS checks of dataflow regions before it synthesises them: who reads and who writes each bundle of ports."""

from __future__ import annotations

import re

_PORT = re.compile(r"#pragma HLS INTERFACE m_axi\b[^\n]*?\bport=(\w+)[^\n]*?\bbundle=(\w+)")
_FUNCTION = re.compile(r"^(?:static |extern \"C\" )?void (\w+)\(([^)]*)\)\s*\{(.*?)^\}", re.MULTILINE | re.DOTALL)
_PARAMETER = re.compile(r",(?![^<]*>)")  # a comma that is not inside a template's arguments
_CALL = re.compile(r"^\s+(\w+)\(([^()]*)\);", re.MULTILINE)


def bundle_errors(text: str) -> list[str]:
    """A bundle that several processes of a region read, or write, is refused."""
    ports = dict(_PORT.findall(text))
    functions = {name: (_PARAMETER.split(parameters), body) for name, parameters, body in _FUNCTION.findall(text)}
    errors: list[str] = []
    for _, body in functions.values():
        if "#pragma HLS DATAFLOW" not in body:
            continue
        uses: dict[tuple[str, str], set[str]] = {}
        for callee, arguments in _CALL.findall(body):
            parameters = functions.get(callee, ([], ""))[0]
            for argument, parameter in zip(arguments.split(","), parameters, strict=False):
                if (port := argument.strip()) in ports:
                    way = "read" if parameter.strip().startswith("const ") else "write"
                    uses.setdefault((ports[port], way), set()).add(f"{callee}:{port}")
        for (bundle, way), users in sorted(uses.items()):
            if len({user.partition(":")[0] for user in users}) > 1:
                names = ", ".join(sorted(user.partition(":")[2] for user in users))
                number, words = ("1013", "read data in") if way == "read" else ("984", "write data in")
                errors.append(
                    f"ERROR: [HLS 200-{number}] Bundled bus interface '{bundle}' on ports '{names}' failed dataflow "
                    f"checking: it cannot {words} multiple processes."
                )
    return errors
