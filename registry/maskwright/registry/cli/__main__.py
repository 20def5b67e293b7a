"""`python -m maskwright.registry.cli`: the same as `maskwright`."""

from . import main

if __name__ == "__main__":
    raise SystemExit(main())
