#!/usr/bin/python3 -B
"""An OpenStack on this machine, to test against: see README.md beside this file."""
import sys

sys.path[:0] = [__file__.rpartition('/')[0] or '.']

from openstacklab import main  # noqa: E402

sys.exit(main.main(sys.argv[1:]))
