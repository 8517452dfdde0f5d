# SPDX-License-Identifier: BSD-2-Clause
"""Messages between services over any RDMA adapter: libbusbar-ripc for Python.

    import busbar_ripc as ripc

    with ripc.Instance() as instance, instance.service(name="echo") as service:
        while True:
            with service.receive() as message:
                service.send(message.sender, message.items)

See ripc(7) for what services and messages are. Received items are memoryviews of the memory
in which the adapter has put them, and what is sent is sent from where it lies, if the memory is
registered (Instance.alloc(), Instance.register()); nothing here copies.

Objects may be used by several threads. After os.fork() the child opens instances of its own.
CPython only.
"""

from ._instance import Buffer, Counters, Instance, Registration, Short
from ._native import (
    ALWAYS,
    ID_DRAWN,
    ITEMS_MAX,
    RETURNS_MAX,
    Error,
    NothingThere,
    Refused,
    Reset,
    TimedOut,
)
from ._service import Message, Service, Token

__all__ = [
    "ALWAYS",
    "Buffer",
    "Counters",
    "Error",
    "ID_DRAWN",
    "ITEMS_MAX",
    "Instance",
    "Message",
    "NothingThere",
    "RETURNS_MAX",
    "Refused",
    "Registration",
    "Reset",
    "Service",
    "Short",
    "TimedOut",
    "Token",
]
