"""Measures societal bias in image captions: captions in, scores and the words behind them out."""

__version__ = "0.1.0"
