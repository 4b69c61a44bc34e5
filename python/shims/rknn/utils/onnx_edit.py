"""Reshapes and transposes of a model's inputs and outputs."""

from rknn.api.not_here import not_in_this_version


def onnx_edit(model, export_path, inputs_transform={}, outputs_transform={}, dataset=None):
    """Raises ValueError: not in this version."""
    raise not_in_this_version("onnx_edit")
