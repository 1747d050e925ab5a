"""Pretrained language models, from folders of this machine; nothing is fetched. `encoder` and `models` load torch, and
may not be imported where it must not be.
"""
