"""The child process that answers for TensorFlow ends with its caller."""

from __future__ import annotations

import threading
from importlib.util import find_spec

import pytest

from regal.frontends.tensorflow import native

pytestmark = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="TensorFlow is not installed"
)


class Interrupted(threading.Timer):
    """A timer whose start Ctrl-C interrupts, as it may on a busy machine."""

    def start(self) -> None:
        super().start()
        raise KeyboardInterrupt


def test_nothing_waits_for_a_time_limit_after_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process would stay for two minutes: it ends when all threads that are no daemons do."""
    monkeypatch.setattr(threading, "Timer", Interrupted)
    with pytest.raises(KeyboardInterrupt), native.native_tensorflow() as tensorflow:
        tensorflow.op_defs()
    timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    assert all(timer.daemon and timer.finished.is_set() for timer in timers)
