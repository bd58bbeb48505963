"""Press Ctrl-C in the middle of a call, on however busy a machine."""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

POLL_SECONDS = 0.05


@contextmanager
def ctrl_c_inside(function: str) -> Iterator[None]:
    """Interrupt the main thread as soon as it waits in a call of `function` (by name)."""
    # A process that a shell starts in the background ignores SIGINT; this one must not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    is_over = threading.Event()
    presser = threading.Thread(target=_press, args=(function, is_over))
    presser.start()
    try:
        yield
    finally:
        is_over.set()
        presser.join()
        signal.signal(signal.SIGINT, before)


def _press(function: str, is_over: threading.Event) -> None:
    main = threading.main_thread().ident or 0
    seen: list[traceback.FrameSummary] = []
    while not is_over.is_set():
        stack = list(traceback.extract_stack(sys._current_frames()[main]))
        # Twice at the same place: it runs no Python any more, but waits for the search.
        if stack == seen and any(frame.name == function for frame in stack):
            signal.pthread_kill(main, signal.SIGINT)
            return
        seen = stack
        time.sleep(POLL_SECONDS)
