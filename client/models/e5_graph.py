"""Builds the ONNX graph of multilingual-e5-small from its 4-bit weights.

Standard operators only. The word table (four fifths of the parameters) stays 4-bit inside the graph and is
unpacked for the tokens at hand; the matrices of the layers are float32, which on the CPUs measured was
faster than 4-bit products. Inputs ``input_ids`` and ``attention_mask`` int64 [batch, sequence], output
``last_hidden_state`` float32 [batch, sequence, hidden].
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from client.models.e5_weights import E5Weights

CONVERTER_VERSION: Final = "e5-onnx-1"
"""Part of the model's fingerprint: raised whenever the graph computes anything else."""

_OPSET: Final = 18
_IR_VERSION: Final = 9
_MASKED: Final = -1e9


def write_onnx(weights: E5Weights, path: Path) -> None:
    """Write the graph to ``path`` (139 MB for the real weights).

    Raises:
        WeightsError: when a tensor is missing or has another size.
        OSError: when the file cannot be written.
    """
    path.write_bytes(_E5Graph(weights).build().SerializeToString())


class _E5Graph:
    """One build: nodes and initializers in the order in which they were added."""

    def __init__(self, weights: E5Weights) -> None:
        self._weights = weights
        self._shape = weights.shape
        self._nodes: list[Any] = []
        self._initializers: list[Any] = []
        self._constants: dict[str, str] = {}

    def build(self) -> Any:
        hidden = self._embeddings()
        mask = self._attention_bias()
        for layer in range(self._shape.layers):
            hidden = self._layer(hidden, mask, f"l{layer}.")
        self._node("Identity", [hidden], output="last_hidden_state")
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask")
        ]
        output = helper.make_tensor_value_info(
            "last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", self._shape.hidden]
        )
        graph = helper.make_graph(self._nodes, "e5", inputs, [output], self._initializers)
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
            producer_name="interleaf",
            producer_version=CONVERTER_VERSION,
        )

    def _embeddings(self) -> str:
        words, shape = self._words(), self._shape
        # Every token has type 0, so that the type's row is added to all positions once, here.
        kind = self._weights.vector("emb.type").reshape(-1, shape.hidden)[0]
        table = self._weights.vector("emb.pos").reshape(shape.positions, shape.hidden) + kind
        # A Slice with one-element bounds; Range and Gather are rewritten by ONNX Runtime's optimiser
        # into a Slice with scalar bounds, which then fails to run.
        length = self._node("Shape", ["input_ids"], start=1, end=2)
        zero = self._integers("zero1", [0])
        positions = self._node("Slice", [self._initializer("pos", table), zero, length, zero])
        return self._norm(self._node("Add", [words, positions]), "emb.ln.")

    def _words(self) -> str:
        """Gather the tokens' rows of nibbles and scales, and unpack only these."""
        hidden = self._shape.hidden
        table = self._weights.matrix("emb.word", self._shape.vocabulary, hidden)
        nibbles = self._node("Gather", [self._initializer("word.q", table.packed()), "input_ids"])
        four = self._initializer("four", np.array(4, np.uint8))
        fifteen = self._initializer("fifteen", np.array(15, np.uint8))
        last = self._integers("last", [-1])
        halves = [
            self._node("Unsqueeze", [self._node("BitwiseAnd", [nibbles, fifteen]), last]),
            self._node("Unsqueeze", [self._node("BitShift", [nibbles, four], direction="RIGHT"), last]),
        ]
        blocks = self._node(
            "Reshape",
            [self._node("Concat", halves, axis=-1), self._integers("blocks", [0, 0, hidden // 32, 32])],
        )
        centred = self._node(
            "Sub", [self._node("Cast", [blocks], to=TensorProto.FLOAT), self._number("eight", 8.0)]
        )
        scales = self._node("Gather", [self._initializer("word.s", table.scales), "input_ids"])
        factor = self._node("Unsqueeze", [self._node("Cast", [scales], to=TensorProto.FLOAT), last])
        return self._joined(self._node("Mul", [centred, factor]))

    def _attention_bias(self) -> str:
        """0 for real tokens and a large negative number for padding, float32 [batch, 1, 1, sequence]."""
        mask = self._node("Cast", ["attention_mask"], to=TensorProto.FLOAT)
        padding = self._node("Sub", [self._number("one", 1.0), mask])
        bias = self._node("Mul", [padding, self._number("masked", _MASKED)])
        return self._node("Unsqueeze", [bias, self._integers("axes12", [1, 2])])

    def _layer(self, hidden: str, bias: str, prefix: str) -> str:
        size, inner = self._shape.hidden, self._shape.feed_forward
        attended = self._linear(self._attention(hidden, bias, prefix), prefix + "ao", size, size)
        hidden = self._norm(self._node("Add", [hidden, attended]), prefix + "aln.")
        expanded = self._gelu(self._linear(hidden, prefix + "fi", inner, size))
        contracted = self._linear(expanded, prefix + "fo", size, inner)
        return self._norm(self._node("Add", [hidden, contracted]), prefix + "oln.")

    def _attention(self, hidden: str, bias: str, prefix: str) -> str:
        size, heads = self._shape.hidden, self._shape.heads
        split = self._integers("heads", [0, 0, heads, size // heads])

        def headed(which: str, permutation: list[int]) -> str:
            flat = self._linear(hidden, prefix + which, size, size)
            return self._node("Transpose", [self._node("Reshape", [flat, split])], perm=permutation)

        query, key = headed("q", [0, 2, 1, 3]), headed("k", [0, 2, 3, 1])
        value = headed("v", [0, 2, 1, 3])
        scale = self._number("scale", 1.0 / float(np.sqrt(size // heads)))
        scores = self._node("Mul", [self._node("MatMul", [query, key]), scale])
        weights = self._node("Softmax", [self._node("Add", [scores, bias])], axis=-1)
        mixed = self._node("MatMul", [weights, value])
        return self._joined(self._node("Transpose", [mixed], perm=[0, 2, 1, 3]))

    def _gelu(self, x: str) -> str:
        """The exact Gelu, x/2 * (1 + erf(x/sqrt 2)): the optimiser fuses this form."""
        half = self._node("Mul", [x, self._number("half", 0.5)])
        inner = self._node("Mul", [x, self._number("root_half", float(1.0 / np.sqrt(2.0)))])
        return self._node(
            "Mul", [half, self._node("Add", [self._node("Erf", [inner]), self._number("one", 1.0)])]
        )

    def _linear(self, x: str, name: str, rows: int, columns: int) -> str:
        dense = self._weights.matrix(name + ".w", rows, columns).dense()
        product = self._node("MatMul", [x, self._initializer(name + ".w", dense.T)])
        return self._node("Add", [product, self._initializer(name + ".b", self._weights.vector(name + ".b"))])

    def _norm(self, x: str, name: str) -> str:
        weight = self._initializer(name + "w", self._weights.vector(name + "w"))
        offset = self._initializer(name + "b", self._weights.vector(name + "b"))
        return self._node("LayerNormalization", [x, weight, offset], axis=-1, epsilon=self._shape.epsilon)

    def _joined(self, x: str) -> str:
        return self._node("Reshape", [x, self._integers("joined", [0, 0, self._shape.hidden])])

    def _node(self, operator: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        name = output or f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def _integers(self, name: str, values: list[int]) -> str:
        return self._initializer(name, np.array(values, np.int64))

    def _number(self, name: str, value: float) -> str:
        return self._initializer(name, np.array(value, np.float32))

    def _initializer(self, name: str, array: NDArray[Any]) -> str:
        if name not in self._constants:
            # ascontiguousarray turns a scalar into a vector, which some operators refuse.
            value = array if array.ndim == 0 else np.ascontiguousarray(array)
            self._initializers.append(numpy_helper.from_array(value, name))
            self._constants[name] = name
        return name


def onnx_version() -> str:
    """Return the version of the onnx package, recorded beside what it wrote."""
    return str(onnx.__version__)
