"""The logger that programs reach as `lite.rknn_log.logger`. It is 'rknnd', a
child of the host program's own; nothing of `logging` is changed by importing."""

import logging
import os


class RKNNLog:
    """`logger`, which also writes to `verbose_file` where its folder exists."""

    def __init__(self, verbose=False, verbose_file=None):
        self.logger = logging.getLogger("rknnd")
        self._handler = None
        if verbose:
            # The library prints the layers' times after each run (UG 5.3.2); it
            # reads this when it is opened.
            os.environ.setdefault("RKNN_LOG_LEVEL", "4")
        folder = os.path.dirname(os.path.abspath(verbose_file)) if verbose_file else ""
        if folder and os.path.isdir(folder):
            self._handler = logging.FileHandler(verbose_file, delay=True)
            self._handler.setFormatter(logging.Formatter("%(levelname).1s %(message)s"))
            self.logger.addHandler(self._handler)

    def close(self):
        if self._handler is not None:
            self.logger.removeHandler(self._handler)
            self._handler.close()
            self._handler = None
