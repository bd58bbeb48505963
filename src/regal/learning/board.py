"""TensorBoard's event files, written without TensorFlow."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING

# No TensorFlow behind these, even where it is installed.
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VERSION = "brain.Event:2"


class Board:
    """Appends scalars to a new event file of a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time_ns()
        name = f"events.out.tfevents.{now // 10**9}.{socket.gethostname()}.{os.getpid()}.{now}"
        self._file = (folder / name).open("wb")
        self._records = RecordWriter(self._file)
        self._write(Event(wall_time=time.time(), file_version=VERSION))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write values by tag."""
        event = Event(wall_time=time.time(), step=step)
        for tag, value in values.items():
            event.summary.value.add(tag=tag, simple_value=value)
        self._write(event)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, event: Event) -> None:
        self._records.write(event.SerializeToString())
        self._file.flush()
