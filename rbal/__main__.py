"""``python -m rbal``: the same as the command ``rbal``."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
