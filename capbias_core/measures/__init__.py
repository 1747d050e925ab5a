"""One module per measure: everything that is known about it; see registry.py and docs/extending.md."""

from capbias_core.resources import extension_folders

__path__.extend(extension_folders("measures"))
