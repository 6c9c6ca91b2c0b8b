"""Rotary positions: the angles by which queries and keys are turned (Su et al., RoFormer, 2021).

Frequencies as transformers computes them for the kinds that models in the store can have (`ROPE_NUMBERS`).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float32]


def rotary_tables(config: dict[str, Any], head_dim: int, n_context: int) -> tuple[Table, Table]:
    """Cosines and sines [n_context, head_dim / 2] of every position's angles."""
    parameters: dict[str, Any] = config["rope_parameters"]
    exponents = np.arange(0, head_dim, 2, dtype=np.float64) / head_dim
    frequencies = _scaled(1.0 / float(parameters["rope_theta"]) ** exponents, parameters)
    # float32, as transformers multiplies them
    angles = np.outer(np.arange(n_context, dtype=np.float32), frequencies.astype(np.float32))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _scaled(frequencies: NDArray[np.float64], parameters: dict[str, Any]) -> NDArray[np.float64]:
    kind = parameters["rope_type"]
    if kind == "linear":
        return frequencies / float(parameters["factor"])
    if kind == "llama3":
        return _llama3(frequencies, parameters)
    return frequencies


def _llama3(frequencies: NDArray[np.float64], parameters: dict[str, Any]) -> NDArray[np.float64]:
    """Low frequencies are slowed down, high ones kept, those between mixed (Llama 3.1)."""
    factor = float(parameters["factor"])
    low, high = float(parameters["low_freq_factor"]), float(parameters["high_freq_factor"])
    n_original = float(parameters["original_max_position_embeddings"])
    wavelengths = 2 * np.pi / frequencies
    share = np.clip((n_original / wavelengths - low) / (high - low), 0.0, 1.0)
    return (1 - share) * frequencies / factor + share * frequencies
