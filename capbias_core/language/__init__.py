"""Pretrained language models in folders of this machine. `encoder` and `models` import torch."""
