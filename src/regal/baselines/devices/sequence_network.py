"""A small sequence network in numpy: graph steps in, one device per step out.

A bidirectional GRU reads the features of all steps. A second GRU then walks over the steps, gets
its own last device as input, attends over everything that was read, and gives a distribution over
the devices of the step. The backward pass is written by hand; a test holds it against finite
differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Reals = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Devices = NDArray[np.int64]
    Parameters = dict[str, Reals]

CLIP = 5.0  # logits stay within +-CLIP, so that no device is ruled out for good


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """B samples of G steps on D devices, and what the backward pass needs of them."""

    devices: Devices  # (G, B)
    probabilities: Reals  # (G, B, D)
    read: Reals  # (G, F)
    encoded: Reals  # (G, 2H)
    forward: _Gru
    backward: _Gru
    decoder: _Gru
    attention: Reals  # (G, B, G)
    context: Reals  # (G, B, 2H)
    bounded: Reals  # (G, B, D): tanh of the logits before they are scaled


def new_parameters(
    n_features: int, n_devices: int, hidden: int, rng: np.random.Generator
) -> Parameters:
    """Return random weights; the last layer is zero, so that every device starts equal."""

    def random(rows: int, columns: int) -> Reals:
        return rng.normal(0, 1 / math.sqrt(rows), (rows, columns))

    result: Parameters = {}
    for name, size in (("forward", n_features), ("backward", n_features), ("decoder", 2 * hidden)):
        result[f"{name}.input"] = random(size, 3 * hidden)
        result[f"{name}.state"] = random(hidden, 3 * hidden)
        result[f"{name}.bias"] = np.zeros(3 * hidden)
    # Row D: before the first step there is no last device.
    result["last"] = random(n_devices + 1, 3 * hidden)
    result["query"] = random(hidden, 2 * hidden)
    result["out.state"] = np.zeros((hidden, n_devices))
    result["out.context"] = np.zeros((2 * hidden, n_devices))
    result["out.bias"] = np.zeros(n_devices)
    return result


def walk(
    weights: Parameters,
    features: Reals,
    allowed: Flags,
    count: int,
    choose: Callable[[int, Reals], Devices],
) -> Walk:
    """Return `count` samples.

    Args:
        weights: of the network.
        features: (G, F).
        allowed: (G, D); at least one device per step.
        count: B.
        choose: step and probabilities (B, D) -> devices (B,).

    Cost: O(G B (H^2 + G H)).
    """
    steps, n_devices = allowed.shape
    hidden = len(weights["query"])
    forward = _run_gru(weights, "forward", features)
    backward = _run_gru(weights, "backward", features[::-1])
    encoded = np.concatenate([forward.states[1:, 0], backward.states[:0:-1, 0]], axis=1)
    inputs = encoded @ weights["decoder.input"] + weights["decoder.bias"]
    decoder = _Gru.empty(steps, count, hidden)
    devices = np.zeros((steps, count), dtype=np.int64)
    probabilities = np.zeros((steps, count, n_devices))
    attention = np.zeros((steps, count, steps))
    context = np.zeros((steps, count, 2 * hidden))
    bounded = np.zeros((steps, count, n_devices))
    last = np.full(count, n_devices)
    for t in range(steps):
        decoder.step(t, inputs[t] + weights["last"][last], weights["decoder.state"])
        state = decoder.states[t + 1]
        attention[t] = _softmax(state @ weights["query"] @ encoded.T / math.sqrt(2 * hidden))
        context[t] = attention[t] @ encoded
        scores = state @ weights["out.state"] + context[t] @ weights["out.context"]
        bounded[t] = np.tanh(scores + weights["out.bias"])
        probabilities[t] = _softmax(np.where(allowed[t], CLIP * bounded[t], -np.inf))
        devices[t] = last = choose(t, probabilities[t])
    return Walk(
        devices=devices,
        probabilities=probabilities,
        read=features,
        encoded=encoded,
        forward=forward,
        backward=backward,
        decoder=decoder,
        attention=attention,
        context=context,
        bounded=bounded,
    )


def gradient(weights: Parameters, done: Walk, blame: Reals, entropy_bonus: float) -> Parameters:
    """Return the gradient of sum(blame * log probability of the sample) - bonus * entropy.

    Args:
        weights: those of `done`.
        done: B samples.
        blame: (B,); above 0 where a sample should get less likely.
        entropy_bonus: per step and sample.

    Cost: twice that of `walk`.
    """
    steps, count, n_devices = done.probabilities.shape
    hidden = len(weights["query"])
    p = done.probabilities
    log_p = np.log(np.where(p > 0, p, 1))
    chosen = np.eye(n_devices)[done.devices]
    entropy = -(p * log_p).sum(axis=2, keepdims=True)
    d_scores = blame[None, :, None] * (chosen - p) + entropy_bonus * p * (log_p + entropy)
    d_scores *= CLIP * (1 - done.bounded**2)
    states = done.decoder.states[1:]
    result = {name: np.zeros_like(value) for name, value in weights.items()}
    result["out.state"] = np.einsum("tbh,tbd->hd", states, d_scores)
    result["out.context"] = np.einsum("tbh,tbd->hd", done.context, d_scores)
    result["out.bias"] = d_scores.sum(axis=(0, 1))

    # Attention feeds the output alone, so all its steps can go back at once.
    d_context = d_scores @ weights["out.context"].T
    d_attention = d_context @ done.encoded.T
    mean = (d_attention * done.attention).sum(axis=2, keepdims=True)
    d_match = done.attention * (d_attention - mean) / math.sqrt(2 * hidden)
    d_query = d_match @ done.encoded
    result["query"] = np.einsum("tbh,tbe->he", states, d_query)
    rows = steps * count
    queries = (states @ weights["query"]).reshape(rows, 2 * hidden)
    d_encoded = d_match.reshape(rows, steps).T @ queries
    d_encoded += done.attention.reshape(rows, steps).T @ d_context.reshape(rows, 2 * hidden)
    d_states = d_scores @ weights["out.state"].T + d_query @ weights["query"].T

    d_inputs = done.decoder.back(d_states, weights["decoder.state"], result, "decoder")
    last = np.concatenate([np.full((1, count), n_devices), done.devices])[:steps]
    np.add.at(result["last"], last.reshape(-1), d_inputs.reshape(rows, 3 * hidden))
    per_step = d_inputs.sum(axis=1)
    result["decoder.input"] = done.encoded.T @ per_step
    d_encoded += per_step @ weights["decoder.input"].T
    halves = (("forward", done.forward, 1), ("backward", done.backward, -1))
    for number, (name, gru, direction) in enumerate(halves):
        d_own = d_encoded[::direction, None, number * hidden : (number + 1) * hidden]
        d_read = gru.back(d_own, weights[f"{name}.state"], result, name)[:, 0]
        result[f"{name}.input"] = done.read[::direction].T @ d_read
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gru:
    """The gates of a GRU over G steps and B samples; states[0] is zero."""

    states: Reals  # (G + 1, B, H)
    update: Reals  # (G, B, H)
    reset: Reals
    proposal: Reals
    recalled: Reals  # what the state gives to the proposal, before `reset`

    @classmethod
    def empty(cls, steps: int, count: int, hidden: int) -> _Gru:
        gates = [np.zeros((steps, count, hidden)) for _ in range(4)]
        return cls(
            states=np.zeros((steps + 1, count, hidden)),
            update=gates[0],
            reset=gates[1],
            proposal=gates[2],
            recalled=gates[3],
        )

    def step(self, t: int, inputs: Reals, weight: Reals) -> None:
        """Fill step t; `inputs` (B, 3H) or (3H,) are those of update, reset and proposal."""
        hidden = weight.shape[0]
        state = self.states[t]
        given = state @ weight
        gates = 1 / (1 + np.exp(-(inputs[..., : 2 * hidden] + given[:, : 2 * hidden])))
        self.update[t], self.reset[t] = gates[:, :hidden], gates[:, hidden:]
        self.recalled[t] = given[:, 2 * hidden :]
        self.proposal[t] = np.tanh(inputs[..., 2 * hidden :] + self.reset[t] * self.recalled[t])
        self.states[t + 1] = self.proposal[t] + self.update[t] * (state - self.proposal[t])

    def back(self, d_states: Reals, weight: Reals, result: Parameters, name: str) -> Reals:
        """Return the gradient of the inputs (G, B, 3H); add those of the weights to `result`."""
        steps, count, hidden = self.update.shape
        d_inputs = np.zeros((steps, count, 3 * hidden))
        d_given = np.zeros((count, 3 * hidden))
        d_state = np.zeros((count, hidden))
        d_weight = np.zeros_like(weight)
        for t in range(steps - 1, -1, -1):
            d_state = d_state + d_states[t]
            update, reset, proposal = self.update[t], self.reset[t], self.proposal[t]
            d_proposal = d_state * (1 - update) * (1 - proposal**2)
            d_inputs[t, :, :hidden] = d_state * (self.states[t] - proposal) * update * (1 - update)
            d_inputs[t, :, hidden : 2 * hidden] = (
                d_proposal * self.recalled[t] * reset * (1 - reset)
            )
            d_inputs[t, :, 2 * hidden :] = d_proposal
            d_given[:, : 2 * hidden] = d_inputs[t, :, : 2 * hidden]
            d_given[:, 2 * hidden :] = d_proposal * reset
            d_weight += self.states[t].T @ d_given
            d_state = d_state * update + d_given @ weight.T
        result[f"{name}.state"] = d_weight
        result[f"{name}.bias"] = d_inputs.sum(axis=(0, 1))
        return d_inputs


def _run_gru(weights: Parameters, name: str, values: Reals) -> _Gru:
    """Return a GRU that ran over one sequence."""
    inputs = values @ weights[f"{name}.input"] + weights[f"{name}.bias"]
    gru = _Gru.empty(len(values), 1, len(weights[f"{name}.state"]))
    for t in range(len(values)):
        gru.step(t, inputs[t], weights[f"{name}.state"])
    return gru


def _softmax(scores: Reals) -> Reals:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: Reals = powers / powers.sum(axis=-1, keepdims=True)
    return result
