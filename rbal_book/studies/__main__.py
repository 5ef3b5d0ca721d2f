"""Run a study, or the missing part of it: ``python -m rbal_book.studies NAME [options]``."""

import argparse
import inspect
from importlib import import_module

STUDIES = {
    "sampling": "_sampling",
    "log_z": "_log_z",
    "pairs": "_pairs",
    "sizes": "_sizes",
    "parts": "_parts",
    "digits": "_digits",
    "kernels": "_kernels",
    "kernel_images": "_kernel_images",
    "tables": "tables",
    "advice": "advice",
    "deep": "_deep",
}


def main(arguments=None):
    """Run the study that is named first, with the options of its module and the defaults of its ``run``."""
    parser = argparse.ArgumentParser(
        prog="python -m rbal_book.studies",
        description="Run a study, or what is missing of it.",
        epilog="NAME --help tells how that study runs.",
    )
    parser.add_argument("name", choices=STUDIES)
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of that study")
    given = parser.parse_args(arguments)
    study = import_module(f"rbal_book.studies.{STUDIES[given.name]}")
    defaults = {name: parameter.default for name, parameter in inspect.signature(study.run).parameters.items()}
    parser = argparse.ArgumentParser(
        prog=f"{parser.prog} {given.name}",
        description=study.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for flag, settings in study.OPTIONS.items():
        default = defaults.get(flag.strip("-").replace("-", "_"), argparse.SUPPRESS)
        parser.add_argument(flag, default=default, **settings)
    study.run(**vars(parser.parse_args(given.options)))


if __name__ == "__main__":
    main()
