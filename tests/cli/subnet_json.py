# SPDX-License-Identifier: BSD-2-Clause
"""Invented subnets as `busbar fabric simulate --json` and `busbar fabric show --json` print them, for tests of
reports."""
import json


def both(a, b, load, wait=0.0, marked=0):
    """Both directions of a cable between two ports, which carry as much."""
    return [{"from": x, "to": y, "load": load, "wait": wait, "packets": 1000, "marked": marked, "discards": 0, "errors": 0}
            for x, y in ((a, b), (b, a))]


def fat_tree(leaves, hosts, spines, load=0.5):
    """Links of a tree of two levels."""
    links = []
    for l in range(1, leaves + 1):
        for k in range(1, hosts + 1):
            links += both(f"leaf-{l}:{k}", f"host-{(l - 1) * hosts + k}:1", load)
        for k in range(1, spines + 1):
            links += both(f"leaf-{l}:{hosts + k}", f"spine-{k}:{l}", load * 0.8, 0.1)
    return links


def ring(n):
    links = []
    for i in range(1, n + 1):
        links += both(f"switch-{i}:1", f"host-{i}:1", 0.04, 0.9) + both(f"switch-{i}:2", f"switch-{i % n + 1}:3", 0.04, 0.9)
    return links


def torus(side):
    links, name = [], lambda x, y: f"switch-{x % side + 1}-{y % side + 1}"
    for x in range(side):
        for y in range(side):
            links += both(f"{name(x, y)}:1", f"host-{x * side + y + 1}:1", 0.3) + both(f"{name(x, y)}:2", f"{name(x + 1, y)}:3", 0.9, marked=5)
            links += both(f"{name(x, y)}:4", f"{name(x, y + 1)}:5", 0.1)
    return links


def experiment(links, **more):
    """A flow from each host to the next one; the first one gets half of its share."""
    hosts = sorted({e["from"] for e in links if e["from"].startswith("host")}, key=lambda n: int(n[5:-2]))
    flows = [{"traffic": "all", "from": a, "to": hosts[(i + 1) % len(hosts)], "sl": 0, "sent": 10, "delivered": 10, "lost": 0, "reordered": 0,
              "rate_bps": 5e9 if i == 0 else 1e10, "fair_bps": 1e10, "packet_latency_ns": {"p50": 5000, "p99": 9000}} for i, a in enumerate(hosts)]
    group = {"name": "all", "pattern": "shift", "senders": len(hosts), "flows": len(flows), "from_ns": 0, "to_ns": 1000000, "sent": 10, "delivered": 10,
             "lost": 0, "reordered": 0, "messages": 10, "rate_bps": 1e10 * len(hosts), "fair_bps": 1e10 * len(hosts), "share": 0.95, "least_share": 0.5,
             "most_share": 1, "packet_latency_ns": {"min": 1, "p50": 5000, "p90": 7000, "p99": 9000, "p99.9": 9500, "max": 9900}}
    return {"title": "An invented experiment", "topology": "made up", "routing": "min-hop", "seed": 1, "end_ns": 1000000, "interrupted": False,
            "hops": 1, "sent": 10, "delivered": 10, "inside": 0, "lost": 0, "lost_why": {}, "reordered": 0, "marked": 0, "carried": 0.5, "layers": 0,
            "traffic": [group], "flows": flows, "flows_left_out": 0, "links": links, "congestion": [], "congestion_left_out": 0, "circle": [],
            "deadlocks": [], "expect": [], **more}


def congested(port, lane, root, begin, end):
    return {"port": port, "lane": lane, "root": root, "from_ns": begin, "to_ns": end, "peak_bytes": 30000}


def state(links, seconds=2.0, down=()):
    """A running fabric; `down`: ports without a link."""
    nodes = {}
    for e in links:
        (name, port), (peer, peer_port) = e["from"].rsplit(":", 1), e["to"].rsplit(":", 1)
        node = nodes.setdefault(name, {"name": name, "description": name, "kind": "host" if name.startswith("host") else "switch", "guid": "0x1", "ports": []})
        node["ports"].append({"port": int(port), "up": e["from"] not in down and e["to"] not in down, "state": "active", "bit_rate": 100000000000, "peer": peer,
                              "peer_port": int(peer_port), "sent_bytes": int(e["load"] * seconds * 1e11 / 8), "sent_packets": 1000,
                              "xmit_wait": int(e["wait"] * seconds / 22e-9), "discards": 0, "errors": 0, "marked": 0, "link_downed": 0})
    return {"name": "fabric", "seconds": seconds, "seed": 1, "drops": {"no_route": 3, "corrupt": 0}, "agents": {}, "nodes": list(nodes.values()), "inside": 0}


def write(path, what):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(what, f)
    return path
