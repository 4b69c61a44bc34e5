"""What build() needs of an ONNX file: the names and shapes of inputs and outputs,
and a place for options. Read and written as protobuf, without a package for it."""


class NotOnnx(ValueError):
    pass


def _varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise NotOnnx("the file ends in the middle of a number")
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7


def _fields(data):
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise NotOnnx("the file ends in the middle of a field")
            value = data[at:at + size]
            at += size
        elif kind in (1, 5):
            value = None
            at += 8 if kind == 1 else 4
        else:
            raise NotOnnx("this is no ONNX file")
        yield key >> 3, value


def _all(data, field):
    return [value for number, value in _fields(data) if number == field and value is not None]


def _tensor(value):
    name, shape = "", []
    for data in _all(value, 1):
        name = bytes(data).decode("utf-8", "replace")
    for type_ in _all(value, 2):
        for tensor in _all(type_, 1):
            for dims in _all(tensor, 2):
                for dim in _all(dims, 1):
                    known = [item for number, item in _fields(dim) if number == 1]
                    shape.append(known[0] if known else None)
    return name, shape


def describe(data):
    """(inputs, outputs), each a list of (name, shape); None is an open extent.
    Raises NotOnnx."""
    try:
        graphs = _all(memoryview(data), 7)
        if not graphs or isinstance(graphs[0], int):
            raise NotOnnx("there is no graph in this file: is it ONNX?")
        graph = graphs[0]
        weights = {bytes(name).decode("utf-8", "replace")
                   for tensor in _all(graph, 5) for name in _all(tensor, 8)}
        inputs = [item for item in map(_tensor, _all(graph, 11)) if item[0] not in weights]
        return inputs, [_tensor(value) for value in _all(graph, 12)]
    except (TypeError, AttributeError) as error:
        raise NotOnnx("this is no ONNX file") from error


def _length(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number, data):
    return _length(number << 3 | 2) + _length(len(data)) + data


def with_options(data, options):
    """The file with model options (docs/model-options.md) as metadata. Protobuf
    lets fields be appended."""
    return bytes(data) + b"".join(
        _field(14, _field(1, b"rknn." + key.encode()) + _field(2, value.encode()))
        for key, value in options.items())
