"""Operators of ONNX for learners (`ai.onnx.ml`), as converters of scikit-learn and the like write them.

Scalers, linear models and support vector machines are arithmetic and products; the label that a classifier names is the
place of a largest number, found on the host. Importing this adds them to the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from penstock.compiler.arrays import Array
from penstock.compiler.frontend.onnx_operators import Call, Inputs, NotTranslatableError, operator, text_of

_DOMAIN = "ai.onnx.ml."


@operator(f"{_DOMAIN}Scaler")
def _scaler(call: Call, x: Inputs) -> Tensor:
    return (x[0].to(torch.float32) - _vector(call, "offset", x[0])) * _vector(call, "scale", x[0])


@operator(f"{_DOMAIN}Normalizer")
def _normalizer(call: Call, x: Inputs) -> Tensor:
    """What has no length stays zero."""
    values, norm = x[0].to(torch.float32), text_of(call.get("norm", "MAX"))
    lengths = {
        "MAX": lambda: torch.amax(values.abs(), -1, True),
        "L1": lambda: values.abs().sum(-1, keepdim=True),
        "L2": lambda: (values * values).sum(-1, keepdim=True).sqrt(),
    }
    if norm not in lengths:
        raise NotTranslatableError(f"norm={norm!r}")
    length = lengths[norm]()
    return values / torch.where(length == 0, 1.0, length)


@operator(f"{_DOMAIN}LinearRegressor")
def _linear_regressor(call: Call, x: Inputs) -> Tensor:
    targets = int(call.get("targets", 1))
    return _transformed(call, _scores(call, x[0], targets, "intercepts"))


@operator(f"{_DOMAIN}LinearClassifier")
def _linear_classifier(call: Call, x: Inputs) -> tuple[Tensor, ...]:
    if call.get("classlabels_strings"):
        raise NotTranslatableError("classes that are text")
    labels = [int(label) for label in call.get("classlabels_ints", [])]
    rows = len(call.get("intercepts", [])) or len(labels)
    scores = _scores(call, x[0], rows, "intercepts")
    if rows == 1 and len(labels) == 2:  # the other class has what is left
        other = 1.0 - torch.sigmoid(scores) if text_of(call.get("post_transform", "NONE")) == "LOGISTIC" else -scores
        scores = torch.cat([other, _transformed(call, scores)], -1)
    else:
        scores = _transformed(call, scores)
    places = torch.argmax(scores, -1)
    if labels == list(range(len(labels))):
        return places, scores
    return torch.index_select(torch.tensor(labels, device=places.device), 0, places), scores


@operator(f"{_DOMAIN}SVMRegressor")
def _svm_regressor(call: Call, x: Inputs) -> Tensor:
    if call.get("one_class", 0):
        raise NotTranslatableError("one_class=1")
    weights, offset = _floats(call, "coefficients"), _floats(call, "rho")
    count = int(call.get("n_supports", 0))
    if not count:
        made = _kernel(call, x[0], weights.reshape(1, -1))
    else:
        vectors = _floats(call, "support_vectors").reshape(count, -1)
        made = torch.matmul(_kernel(call, x[0], vectors), _tensor(weights.reshape(count, 1), x[0]))
    return _transformed(call, made + float(offset[0]))


@operator(f"{_DOMAIN}ZipMap")
def _zip_map(call: Call, x: Inputs) -> Tensor:
    """Numbers by their labels; here they stay in a row, in the labels' order."""
    return x[0]


@operator(f"{_DOMAIN}ArrayFeatureExtractor")
def _features(call: Call, x: Inputs) -> Tensor:
    places = call.ints(1)
    if places is None:
        return torch.index_select(x[0], -1, x[1].reshape(-1))
    return torch.index_select(x[0], -1, torch.tensor(places, device=x[0].device))


@operator(f"{_DOMAIN}Binarizer")
def _binarizer(call: Call, x: Inputs) -> Tensor:
    return torch.where(x[0] > call.get("threshold", 0.0), 1.0, 0.0)


@operator(f"{_DOMAIN}FeatureVectorizer")
def _vectorizer(call: Call, x: Inputs) -> Tensor:
    return torch.cat([part.to(torch.float32) for part in x], -1)


@operator(f"{_DOMAIN}Imputer")
def _imputer(call: Call, x: Inputs) -> Tensor:
    """Numbers in the place of one that means that there is none; NaN cannot stand in an input."""
    missing = float(call.get("replaced_value_float", 0.0))
    return (
        x[0] if np.isnan(missing) else torch.where(x[0] == missing, _vector(call, "imputed_value_floats", x[0]), x[0])
    )


def _kernel(call: Call, x: Tensor, vectors: Array) -> Tensor:
    kind = text_of(call.get("kernel_type", "LINEAR"))
    gamma, bias, degree = (*call.get("kernel_params", [1.0, 0.0, 1.0]), 0.0, 0.0, 0.0)[:3]
    product = torch.matmul(x.to(torch.float32), _tensor(np.ascontiguousarray(vectors.T), x))
    match kind:
        case "LINEAR":
            return product
        case "POLY":
            return torch.pow(product * gamma + bias, degree)
        case "SIGMOID":
            return torch.tanh(product * gamma + bias)
        case "RBF":
            length = _tensor((vectors * vectors).sum(1).astype(np.float32), x)
            distance = (x * x).sum(-1, keepdim=True) - 2.0 * product + length
            return torch.exp(-gamma * torch.clamp(distance, min=0.0))
        case _:
            raise NotTranslatableError(f"kernel_type={kind!r}")


def _scores(call: Call, x: Tensor, rows: int, offsets: str) -> Tensor:
    weights = _floats(call, "coefficients").reshape(rows, -1)
    made = torch.matmul(x.to(torch.float32), _tensor(np.ascontiguousarray(weights.T), x))
    return made + _vector(call, offsets, x) if call.get(offsets) is not None else made


def _transformed(call: Call, x: Tensor) -> Tensor:
    match text_of(call.get("post_transform", "NONE")):
        case "NONE":
            return x
        case "LOGISTIC":
            return torch.sigmoid(x)
        case "SOFTMAX":
            return torch.softmax(x, -1)
        case other:
            raise NotTranslatableError(f"post_transform={other!r}")


def _floats(call: Call, name: str) -> Array:
    return np.asarray(call.get(name, []), np.float32)


def _vector(call: Call, name: str, x: Tensor) -> Any:
    values = _floats(call, name)
    return float(values[0]) if values.size == 1 else _tensor(values, x)


def _tensor(values: Array, x: Tensor) -> Tensor:
    return torch.tensor(values.tolist(), dtype=torch.float32, device=x.device)
