"""The parameters of config(): checked, and turned into model options."""

import json
import math

from rknnlite.api.rknn_platform import PLATFORMS

# Accepted without an effect: they say how a converter makes a file.
_WITHOUT_EFFECT = frozenset((
    "quantized_dtype", "quantized_algorithm", "quantized_method", "quantized_hybrid_level",
    "quant_img_RGB2BGR", "float_dtype", "optimization_level", "remove_weight",
    "compress_weight", "inputs_yuv_fmt", "single_core_mode", "model_pruning", "op_target",
    "quantize_weight", "remove_reshape", "sparse_infer", "enable_flash_attention",
    "auto_hybrid_cos_thresh", "auto_hybrid_euc_thresh", "disable_rules"))


def _numbers(name, values):
    if not isinstance(values, (list, tuple)):
        raise ValueError(f"The {name} should be a list, not {values!r}!")
    rows = values if values and isinstance(values[0], (list, tuple)) else [values]
    for row in rows:
        for value in row:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or (
                    not math.isfinite(value)):
                raise ValueError(f"The {name} has {value!r}, which is no number!")
            if name == "std_values" and value == 0:
                raise ValueError("The std_values have a 0: they divide!")
    return json.dumps([[float(value) for value in row] for row in rows])


def options_of(parameters, logger):
    """Model options by name. Raises ValueError."""
    options = {}
    for name in ("mean_values", "std_values"):
        if parameters.get(name) is not None:
            options[name] = _numbers(name, parameters[name])
    platform = parameters.get("target_platform")
    if platform is None:
        logger.warning("target_platform is not set in config: the model is for every platform")
    elif str(platform).lower() not in PLATFORMS:
        raise ValueError(f"The target_platform {platform!r} is not one of "
                         f"{', '.join(PLATFORMS)}!")
    else:
        options["target_platform"] = str(platform).lower()
    if parameters.get("custom_string") is not None:
        options["custom_string"] = str(parameters["custom_string"])
    if parameters.get("dynamic_input") is not None:
        options["dynamic_input"] = json.dumps(parameters["dynamic_input"])
    for name in parameters.get("kwargs", {}):
        if name not in _WITHOUT_EFFECT:
            logger.warning("config: the parameter '%s' is not known and has no effect", name)
    return options
