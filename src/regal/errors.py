"""Everything regal raises on purpose.

RegalError
├── UsageError     the call itself is wrong: unknown option value, output exists, ...
├── ModelError     the model file is broken or uses something that is not supported
├── PlanError      a plan breaks a rule of its graph
└── BackendError   the runtime refused the plan or is not installed

A message is one line: which object, what is wrong, the numbers, what to do.
Expected outcomes (no plan fits, time is up) are statuses, not errors.
"""


class RegalError(Exception):
    """Base class: `except RegalError` catches every deliberate failure.

    Names in a hostile file may hold anything; the message is one printable line all the same.
    """

    def __init__(self, message: str) -> None:
        line = " ".join(message.split())
        super().__init__("".join(c if c.isprintable() else "?" for c in line))


class UsageError(RegalError):
    """The call itself is wrong."""


class ModelError(RegalError):
    """The model file is broken or uses something that is not supported."""


class PlanError(RegalError):
    """A plan breaks a rule of its graph."""


class BackendError(RegalError):
    """The runtime refused the plan, or is not installed."""


def summary_of(error: BaseException) -> str:
    """Return the kind of an error and the first line of what it says: for a log."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"
