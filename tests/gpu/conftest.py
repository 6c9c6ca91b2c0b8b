"""Without Triton there is nothing here to be tested; `test_triton.py` says so."""

from importlib.util import find_spec
from pathlib import Path

if find_spec("triton") is None:
    said_by = {"__init__.py", "conftest.py", "test_triton.py"}
    collect_ignore = [path.name for path in Path(__file__).parent.glob("*.py") if path.name not in said_by]
