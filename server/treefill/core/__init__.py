"""The core process: where the model lives, shared by this user's editor windows; and the ways that lead to it.

The front imports `client` (or `in_process`), the process itself runs `server`. The front door is kept empty, so that
a front loads nothing of what only a core needs.
"""
