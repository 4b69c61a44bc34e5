"""Lets programs that import the vendor's modules get rknnd's in their place.

`rknnlite` and `rknn` lie in a private folder, so that an installed vendor's
wheel stays as it is for all other programs.
"""

from __future__ import annotations

import os
import sys

from .errors import Error


def shims_folder() -> str:
    """The folder, for PYTHONPATH. Raises Error if it was not installed."""
    # A link to this module may stand in an installation's folders, or lead there.
    for file in (os.path.abspath(__file__), os.path.realpath(__file__)):
        here = os.path.dirname(file)
        beside = os.path.dirname(here)
        for folder in (os.path.join(here, "_shims"),
                       os.path.join(beside, "shims"),
                       os.path.join(os.path.dirname(beside), "rknnd-shims")):
            if os.path.isdir(os.path.join(folder, "rknnlite")):
                return folder
    raise Error("the folder with rknnlite and rknn is not beside this module")


def install_shims() -> str:
    """From here on, `import rknnlite` and `import rknn` of this process are
    rknnd's. To be called before the first of these imports: raises Error when
    the vendor's modules are there already. Returns the folder."""
    folder = shims_folder()
    for name in ("rknnlite", "rknn"):
        module = sys.modules.get(name)
        place = os.path.realpath(getattr(module, "__file__", None) or folder)
        if module is not None and not place.startswith(os.path.realpath(folder) + os.sep):
            raise Error(f"'{name}' was imported from {place} already: call install_shims() first")
    if folder in sys.path:
        sys.path.remove(folder)
    sys.path.insert(0, folder)
    return folder
