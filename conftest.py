"""Doctests of what needs PyTorch are collected where it is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["rbal/deep", "rbal/studies/_deep.py"]
