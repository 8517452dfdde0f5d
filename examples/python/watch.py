#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Commands a gateway and looks at its samples.

    busbar run examples/http.conf &
    examples/python/watch.py http://127.0.0.1:8080 simulator 5

prints how often each signal changes sign and what is lost on the way, for 5 seconds, then
pauses the node and shows that nothing comes any more.
"""

import argparse
import sys
import time

import busbar


def watch(gateway: busbar.Gateway, node: str, seconds: float) -> None:
    names = [str(s["name"]) for s in gateway.node(node)["in"]["signals"]]
    before: list[bool] = []
    changes: list[int] = []
    seen, lost, last = 0, 0, None
    with gateway.tap(node) as live:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for sample in live.receive(timeout=10):
                now = [not isinstance(v, complex) and v < 0 for v in sample.values]
                changes = changes or [0] * len(now)
                changes = [c + (a != b) for c, a, b in zip(changes, now, before or now)]
                before, seen = now, seen + 1
                if last is not None and sample.sequence is not None:
                    lost += sample.sequence - last - 1
                last = sample.sequence
        print(f"{seen} samples, {lost} numbers missing")
        for name, count in zip(names, changes):
            print(f"  {name}: {count} changes of sign")
        gateway.pause_node(node)
        try:
            while True:
                live.receive(timeout=0.5)
        except busbar.TimedOut:
            print(f"{node} is {gateway.node(node)['state']}")
        finally:
            gateway.resume_node(node)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("url", help="http://HOST[:PORT] or https://HOST[:PORT]")
    parser.add_argument("node")
    parser.add_argument("seconds", type=float, nargs="?", default=5.0)
    parser.add_argument("--token-file", help="as of busbar ctl")
    parser.add_argument("--ca", help="authority of the gateway's certificate (PEM)")
    o = parser.parse_args()
    try:
        with busbar.Gateway(o.url, token_file=o.token_file, ca=o.ca) as gateway:
            watch(gateway, o.node, o.seconds)
    except (busbar.Error, ValueError) as error:
        print(f"watch.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
