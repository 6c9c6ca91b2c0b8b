"""An editor that has died without a word takes its server with it."""

import asyncio

CHECK_EVERY_S = 2.0


async def is_visible(process_id: int) -> bool:
    """False where it has no such number here, as from within a container whose editor is outside."""
    return await asyncio.to_thread(_is_alive, process_id)


async def outlives(process_id: int) -> None:
    """Return once the process is gone."""
    while await asyncio.to_thread(_is_alive, process_id):
        await asyncio.sleep(CHECK_EVERY_S)


def _is_alive(process_id: int) -> bool:
    import psutil  # here, because an editor should not wait for it to be loaded

    try:
        # A zombie has ended; its parent has not asked for its status yet.
        return bool(psutil.Process(process_id).status() != psutil.STATUS_ZOMBIE)
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False
