from .rknn_lite import RKNNLite

__all__ = ["RKNNLite"]
