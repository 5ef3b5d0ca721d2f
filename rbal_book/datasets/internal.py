"""What other rooms use of this one, beside its public names: downloads and files."""

from ._fetch import FAILURES, cache_dir, npm_package, save_arrays, tar_members

__all__ = ["FAILURES", "cache_dir", "npm_package", "save_arrays", "tar_members"]
