"""The answer of what this version does not do."""


def not_in_this_version(what):
    """The exception for it."""
    return ValueError(f"{what} is not in this version of rknnd: it runs ONNX files as they are, "
                      "float or quantised, and compiled .rknn files")
