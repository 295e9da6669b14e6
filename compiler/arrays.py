"""Arrays of any element type, as most of the compiler handles them."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
