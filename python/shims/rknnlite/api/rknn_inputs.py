"""Arrays of programs as inputs of a model, with all that programs get away with:
missing batch, float64, both layouts, other integers."""

import numpy as np

from rknnd import _abi

_TYPES = {np.dtype(np.float32): _abi.FLOAT32, np.dtype(np.float16): _abi.FLOAT16,
          np.dtype(np.int8): _abi.INT8, np.dtype(np.uint8): _abi.UINT8,
          np.dtype(np.int16): _abi.INT16, np.dtype(np.int32): _abi.INT32,
          np.dtype(np.int64): _abi.INT64, np.dtype(np.bool_): _abi.BOOL}
# Types whose numbers stand for themselves: given as anything else, they are cast.
PLAIN = {_abi.BOOL: np.bool_, _abi.INT16: np.int16, _abi.INT32: np.int32,
         _abi.INT64: np.int64}


def formats_of(data_format, count):
    """'nhwc', 'nchw' or None for each input. Raises ValueError."""
    if data_format is None or isinstance(data_format, str):
        formats = [data_format] * count
    else:
        formats = list(data_format)
        formats += [formats[-1] if formats else None] * (count - len(formats))
    lower = [None if item is None else str(item).lower() for item in formats]
    for item in lower:
        if item not in (None, "nhwc", "nchw", "undefined", "none", ""):
            raise ValueError(f"The data_format should be 'nhwc' or 'nchw', not {item!r}!")
    return [item if item in ("nhwc", "nchw") else None for item in lower]


def _typed(index, array, attr, logger):
    if array.dtype == np.float64:
        logger.warning("Unsupport inputs[%d].dtype: float64, it is converted to float32", index)
        array = array.astype(np.float32)
    elif array.dtype.kind in "iub" and array.dtype not in _TYPES:
        array = array.astype(np.int64)
    if array.dtype not in _TYPES:
        raise ValueError(f"Unsupport inputs[{index}].dtype: {array.dtype}")
    if attr.type in PLAIN:
        return np.asarray(array, PLAIN[attr.type])
    if array.dtype in (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.int16),
                       np.dtype(np.bool_)):
        return array.astype(np.float32)  # of a model that computes with real numbers
    if array.dtype == np.float16 and attr.type in (_abi.INT8, _abi.UINT8):
        return array.astype(np.float32)
    return array


def prepare(index, value, attr, data_format, pass_through, logger):
    """(contiguous array, type, layout) of input `index`. Raises ValueError."""
    if isinstance(value, (str, bytes)) or value is None:
        raise ValueError(f"Unsupport inputs[{index}] type: {type(value).__name__}")
    array = np.asarray(value)
    if pass_through:
        number = _TYPES.get(array.dtype)
        if number is None:
            raise ValueError(f"Unsupport inputs[{index}].dtype: {array.dtype}")
        return np.ascontiguousarray(array), number, attr.fmt
    array = _typed(index, array, attr, logger)
    number = _TYPES[array.dtype]
    dims = tuple(attr.dims[:attr.n_dims])
    if array.ndim + 1 == len(dims) and dims[0] == 1:
        logger.warning("The input[%d] need %ddims input, but %ddims input buffer feed.", index,
                       len(dims), array.ndim)
        array = array[np.newaxis]
    if len(dims) != 4:
        if array.size != attr.n_elems:
            raise ValueError(f"The input[{index}] shape {array.shape} is wrong, expect {dims}!")
        return np.ascontiguousarray(array), number, _abi.UNDEFINED
    if array.ndim != 4:
        raise ValueError(f"The input[{index}] need 4dims input, but {array.ndim}dims input "
                         "buffer feed.")
    n, a, b, c = dims
    nhwc, nchw = (dims, (n, c, a, b)) if attr.fmt != _abi.NCHW else ((n, b, c, a), dims)
    if data_format is None:
        data_format = "nchw" if array.shape == nchw and (
            array.shape != nhwc or attr.fmt == _abi.NCHW) else "nhwc"
    wanted = nchw if data_format == "nchw" else nhwc
    if array.shape != wanted:
        raise ValueError(f"The input(ndarray) shape {array.shape} is wrong, expect "
                         f"'{data_format}' like {wanted}!")
    if data_format == "nchw" and attr.fmt == _abi.NHWC:
        logger.warning("The input[%d] need NHWC data format, but NCHW set, the data format and "
                       "data buffer will be changed to NHWC.", index)
    return (np.ascontiguousarray(array), number,
            _abi.NCHW if data_format == "nchw" else _abi.NHWC)
