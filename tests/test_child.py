"""Child processes and Ctrl-C."""

import signal
import subprocess
import sys

import pytest

from regal.child import hidden_from_ctrl_c

PRESS = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"


def press_in_a_child() -> int:
    return subprocess.run(
        [sys.executable, "-c", PRESS], check=False, capture_output=True
    ).returncode


def test_ctrl_c_waits_until_a_process_is_started_and_never_reaches_it() -> None:
    # A process that a shell starts in the background ignores SIGINT; this one must not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    codes = []

    def start_while_it_is_pressed() -> None:
        with hidden_from_ctrl_c():
            signal.raise_signal(signal.SIGINT)
            codes.append(press_in_a_child())

    try:
        with pytest.raises(KeyboardInterrupt):
            start_while_it_is_pressed()
        assert codes == [0]
        assert press_in_a_child() != 0
    finally:
        signal.signal(signal.SIGINT, before)
