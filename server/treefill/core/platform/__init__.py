"""What differs from system to system: where the socket lies, who may use it, how a process is detached.

Linux is tested. macOS and Windows are written for and untested.
"""

import sys

if sys.platform == "win32":
    from treefill.core.platform.windows import (
        check_address,
        check_peer,
        connect,
        default_folder,
        file_number,
        hold_lock,
        make_private,
        remove_address,
        spawn,
        start_server,
    )
else:
    from treefill.core.platform.posix import (
        check_address,
        check_peer,
        connect,
        default_folder,
        file_number,
        hold_lock,
        make_private,
        remove_address,
        spawn,
        start_server,
    )

__all__ = [
    "check_address",
    "check_peer",
    "connect",
    "default_folder",
    "file_number",
    "hold_lock",
    "make_private",
    "remove_address",
    "spawn",
    "start_server",
]
