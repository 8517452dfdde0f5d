# SPDX-License-Identifier: BSD-2-Clause
"""Looks at a running gateway, commands it, and exchanges samples with it.

    import busbar

    with busbar.Gateway("http://127.0.0.1:8080") as gateway:
        gateway.pause_node("simulator")
        with gateway.tap("simulator") as live:
            for sample in live:
                print(sample.values)

Samples through shared memory are in busbar.shmem. Nothing but the standard library is needed;
that module also needs libbusbar-shmem.
"""

from ._ask import Answer
from ._errors import (
    Closed,
    Error,
    NotAllowed,
    NotFound,
    NotPossible,
    PeerGone,
    ProtocolError,
    Refused,
    TimedOut,
    Unavailable,
    Unreachable,
    WrongConfiguration,
)
from ._gateway import Gateway, Job
from ._live import Live
from ._live_async import AsyncLive
from ._samples import Sample, Value
from ._types import (
    Capabilities,
    Check,
    ConfigText,
    Configuration,
    JobState,
    Log,
    Node,
    NodeStats,
    Path,
    PathStats,
    Report,
    Restart,
    Signal,
    Stats,
    Status,
)

__all__ = [
    "Answer",
    "AsyncLive",
    "Capabilities",
    "Check",
    "Closed",
    "ConfigText",
    "Configuration",
    "Error",
    "Gateway",
    "Job",
    "JobState",
    "Live",
    "Log",
    "Node",
    "NodeStats",
    "NotAllowed",
    "NotFound",
    "NotPossible",
    "Path",
    "PathStats",
    "PeerGone",
    "ProtocolError",
    "Refused",
    "Report",
    "Restart",
    "Sample",
    "Signal",
    "Stats",
    "Status",
    "TimedOut",
    "Unavailable",
    "Unreachable",
    "Value",
    "WrongConfiguration",
]
