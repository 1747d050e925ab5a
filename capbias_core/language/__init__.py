"""Pretrained language models, from folders of this machine; nothing is fetched. Only `files` may be imported where
torch must not be: the others load it.
"""
