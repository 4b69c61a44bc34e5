from .rknn import RKNN

__all__ = ["RKNN"]
