"""Pretrained language models in folders of this machine. `encoder`, `models` and what `device` gives import torch."""
