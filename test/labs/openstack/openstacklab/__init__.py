"""The lab's own program: what lab.py runs. What runs inside OpenStack's daemons is in ../inside."""


class LabError(Exception):
    """Something that the person at the keyboard can act on; printed without a traceback."""
