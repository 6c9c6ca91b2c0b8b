"""What every system does alike."""

import contextlib
import subprocess


def tell(process: "subprocess.Popen[bytes]", said: bytes) -> None:
    """Write to the process's standard input and close it; a process that has ended already is told of elsewhere."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(said)
