"""Logging for user data scripts: to standard error, which the manager keeps."""

import logging
import sys

_handler = logging.StreamHandler(sys.stderr)
_handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))


def getLogger(name=None, project="unknown", version="unknown"):
    """Return a standard logger that writes to standard error."""
    root = logging.getLogger()
    if _handler not in root.handlers:
        root.addHandler(_handler)
        root.setLevel(logging.INFO)
    return logging.getLogger(name)
