"""python3 -m vnfmlab.entry MODULE:FUNCTION ARGUMENT...: a project's command, without a script of Debian's for it."""
import importlib
import sys


def main():
    module, _, function = sys.argv[1].partition(':')
    sys.argv = [module.partition('.')[0] + '-manage', *sys.argv[2:]]
    return getattr(importlib.import_module(module), function)()


if __name__ == '__main__':
    sys.exit(main())
