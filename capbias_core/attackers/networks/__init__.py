"""Attackers that need PyTorch: networks from scratch, and pretrained encoders. Entries import them on use."""
