"""rknnd's stand-in for the vendor's module of this name (docs/python.md)."""

import rknnd

__version__ = rknnd.__version__
