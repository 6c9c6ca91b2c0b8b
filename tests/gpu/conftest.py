"""Without Triton there is nothing here to be tested; `test_triton.py` says so."""

from importlib.util import find_spec

if find_spec("triton") is None:
    collect_ignore = ["test_apply_mask.py", "test_attention_masks.py", "test_compiled.py", "test_launch.py"]
