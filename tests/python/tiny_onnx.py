"""Small ONNX files, written byte by byte: no package for ONNX is needed."""

import numpy as np

_ELEMENTS = {np.dtype(np.float32): 1, np.dtype(np.uint8): 2, np.dtype(np.int8): 3,
             np.dtype(np.int32): 6, np.dtype(np.int64): 7, np.dtype(np.bool_): 9}


def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, value):
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _value(name, shape, dtype):
    dims = b"".join(_bytes(1, _bytes(2, d) if isinstance(d, str) else _number(1, d))
                    for d in shape)
    tensor = _number(1, _ELEMENTS[np.dtype(dtype)]) + _bytes(2, dims)
    return _bytes(1, name) + _bytes(2, _bytes(1, tensor))


def _attribute(name, value):
    if isinstance(value, int):
        return _bytes(1, name) + _number(3, value) + _number(20, 2)
    return (_bytes(1, name) + b"".join(_number(8, item) for item in value) + _number(20, 7))


def _node(kind, inputs, outputs, **attributes):
    return (b"".join(_bytes(1, name) for name in inputs) +
            b"".join(_bytes(2, name) for name in outputs) +
            _bytes(3, kind + "_" + outputs[0]) + _bytes(4, kind) +
            b"".join(_bytes(5, _attribute(*item)) for item in attributes.items()))


def _weights(name, array):
    return (b"".join(_number(1, extent) for extent in array.shape) +
            _number(2, _ELEMENTS[array.dtype]) + _bytes(8, name) + _bytes(9, array.tobytes()))


def model(nodes, inputs, outputs, weights=(), options=None):
    """inputs, outputs: (name, shape, dtype); weights: (name, array)."""
    graph = b"".join(_bytes(1, _node(*node[:3], **(node[3] if len(node) > 3 else {})))
                     for node in nodes)
    graph += _bytes(2, "tiny")
    graph += b"".join(_bytes(5, _weights(*item)) for item in weights)
    graph += b"".join(_bytes(11, _value(*item)) for item in inputs)
    graph += b"".join(_bytes(12, _value(*item)) for item in outputs)
    props = b"".join(_bytes(14, _bytes(1, key) + _bytes(2, value))
                     for key, value in (options or {}).items())
    return (_number(1, 8) + _bytes(2, "tests") + _bytes(7, graph) +
            _bytes(8, _bytes(1, "") + _number(2, 13)) + props)


def relu(shape=(1, 16)):
    """y = Relu(x)."""
    return model([("Relu", ["x"], ["y"])], [("x", shape, np.float32)],
                 [("y", shape, np.float32)])


def add():
    """total = left + right, for inputs that have names to tell apart."""
    return model([("Add", ["left", "right"], ["total"])],
                 [("left", (2, 8), np.float32), ("right", (2, 8), np.float32)],
                 [("total", (2, 8), np.float32)])


def picture(side=8, options=None):
    """Relu of a picture of three channels: what goes in NHWC comes out NCHW."""
    return model([("Relu", ["image"], ["out"])], [("image", (1, 3, side, side + 2), np.float32)],
                 [("out", (1, 3, side, side + 2), np.float32)], options=options)


def listed(sides=(4, 8)):
    """Relu of a picture whose sides are one of these."""
    rows = ",".join(f"[[1,3,{side},{side}]]" for side in sides)
    return model([("Relu", ["image"], ["out"])], [("image", (1, 3, "h", "w"), np.float32)],
                 [("out", (1, 3, "h", "w"), np.float32)],
                 options={"rknn.dynamic_input": f"[{rows}]"})


def tokens():
    """An int64 that goes through."""
    return model([("Add", ["ids", "one"], ["next"])], [("ids", (1, 6), np.int64)],
                 [("next", (1, 6), np.int64)], [("one", np.ones((1,), np.int64))])


def slow(products=12, width=256):
    """A chain of matrix products: some milliseconds."""
    nodes, name = [], "x"
    for number in range(products):
        nodes.append(("MatMul", [name, "w"], [f"p{number}"]))
        name = f"p{number}"
    nodes.append(("Relu", [name], ["y"]))
    weights = np.full((width, width), 1 / width, np.float32)
    return model(nodes, [("x", (width, width), np.float32)], [("y", (width, width), np.float32)],
                 [("w", weights)])
