# Its own types are thousands of files, which take a minute to read.
from typing import Any

def __getattr__(name: str) -> Any: ...
