"""Doctests of what needs PyTorch are collected where it is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["rbal_book/deep", "rbal_book/studies/_deep.py"]
