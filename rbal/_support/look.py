"""The colours and the style sheet of every figure. Okabe–Ito: readers with any colour vision tell them apart."""

from pathlib import Path

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip

STYLE = Path(__file__).with_name("rbal.mplstyle")
