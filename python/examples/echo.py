#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An echo server and its client.

    echo.py serve NAME          until Ctrl-C
    echo.py NAME TEXT...

The server is one task of an event loop, beside which others can run.
"""

import asyncio
import signal
import sys

import busbar_ripc as ripc


async def echo(service: ripc.Service) -> None:
    while True:
        with await service.receive_async() as message:
            service.send(message.sender, message.items)


async def serve(name: str) -> None:
    loop = asyncio.get_running_loop()
    with ripc.Instance() as instance, instance.service(name=name) as service:
        task = asyncio.create_task(echo(service))
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        print(f"serving as {name}", flush=True)
        try:
            await task
        except asyncio.CancelledError:
            pass


def ask(name: str, words: list[str]) -> None:
    with ripc.Instance() as instance, instance.service() as service:
        to = instance.find(name)
        for word in words:
            service.send(to, word.encode())
            with service.receive(timeout=5) as message:
                print(bytes(message[0]).decode())


def main() -> int:
    if len(sys.argv) < 3:
        print("usage: echo.py serve NAME | NAME TEXT...", file=sys.stderr)
        return 2
    try:
        if sys.argv[1] == "serve":
            asyncio.run(serve(sys.argv[2]))
        else:
            ask(sys.argv[1], sys.argv[2:])
    except ripc.Error as error:
        print(f"echo.py: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
