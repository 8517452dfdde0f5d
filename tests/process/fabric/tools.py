#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What infiniband-diags print of a running fabric that opensm manages is what its topology says, and what they
print over ibsim. usage: tools.py LIBRARIES DESCRIBE TOPOLOGY..."""
import os
import re
import subprocess
import sys
import tempfile

from stock import At, Fabric, Ibsim, await_true, check, has_ibsim, need

# These answers depend on the topology and on opensm's tables alone. (saquery LR does, too, but what is longer
# than one packet of RMPP comes damaged from libumad2sim.)
SAME = [["ibnetdiscover"], ["ibhosts"], ["ibswitches"], ["smpquery", "nodedesc", "2"], ["ibtracert", "1", "LAST"],
        ["ibroute", "2"], ["dump_fts"], ["ibqueryerrors"], ["ibaddr"]]


def links_of(fabric):
    """{(name, port): (name, port)} of all ports with a link, by what the fabric itself says."""
    return {(n["name"], p["port"]): (p["peer"], p["peer_port"])
            for n in fabric.show()["nodes"] for p in n["ports"] if p["peer"]}


def without_comments(text):
    return [line.rstrip() for line in text.splitlines() if not line.startswith("#")]


def discover(place, describe, file):
    found = os.path.join(place.folder, "found")
    text = place.run("ibnetdiscover")
    with open(found, "w", encoding="utf-8") as f:
        f.write(text)
    p = subprocess.run([describe, "discovered", file, found], capture_output=True, text=True)
    check(p.returncode == 0, f"ibnetdiscover finds the topology: {p.stderr}")
    return text


def look_at_links(place, links):
    row = re.compile(r'^0x\w+ "\s*(\S+)"\s+\d+\s+(\d+)\[.*\] ==\(\s*4X\s+25.78125 Gbps Active/  LinkUp\)==>'
                     r'\s+0x\w+\s+\d+\s+(\d+)\[.*\] "(\S+)"')
    text = place.run("iblinkinfo", "-l")
    found = {}
    for line in text.splitlines():
        m = row.match(line)
        check(m, f"iblinkinfo prints active links of 4xEDR: {line}")
        found[m[1], int(m[2])] = (m[4], int(m[3]))
    check(found == links, f"iblinkinfo prints the links of the topology: {text}")


def read_tables(place):
    """({switch: {LID: port}}, {LID: name}) as dump_fts prints them."""
    tables, names, switch = {}, {}, None
    for line in place.run("dump_fts").splitlines():
        m = re.match(r"Unicast lids .* guid \w+ \((\S+)\):", line)
        if m:
            switch = tables.setdefault(m[1], {})
        m = re.match(r"(0x\w+) (\d+) : \(.*: '(\S+)'\)", line)
        if m:
            switch[int(m[1], 16)] = int(m[2])
            names[int(m[1], 16)] = m[3]
    return tables, names


def walk(tables, links, start, lid, name):
    """The nodes between, by the tables; no longer than the tables are many."""
    at, way = links[start, 1][0], []
    while at != name:
        way.append(at)
        check(len(way) <= len(tables) and tables[at].get(lid), f"the tables lead from {start} to {name}: {way}")
        at = links[at, tables[at][lid]][0]
    return way


def traced(place, source, destination):
    """The nodes that ibtracert prints between two LIDs."""
    text = place.run("ibtracert", str(source), str(destination))
    return re.findall(r'^\[\d+\] -> .*"(\S+)"$', text, re.M)[:-1]


def look_at_paths(place, links):
    tables, names = read_tables(place)
    hosts = {name: lid for lid, name in names.items() if name.startswith("host-")}
    switches = {node for node, _ in links if not node.startswith("host-")}
    check(set(tables) == switches, f"dump_fts prints the tables of all switches: {sorted(tables)}")
    first = hosts["host-1"]
    for name, lid in hosts.items():
        for other in hosts:
            if name != other:
                walk(tables, links, name, hosts[other], other)
        if lid != first:
            way = walk(tables, links, "host-1", lid, name)
            check(traced(place, first, lid) == way, f"ibtracert from host-1 to {name} goes by {way}")
    return names, hosts


def look_at_nodes(place, links, names, hosts):
    records = place.run("saquery", "NR")
    found = dict(zip(map(int, re.findall(r"\tlid\.+(\d+)", records)),
                     re.findall(r"NodeDescription\.+(\S+)", records)))
    check(found == names, f"saquery lists the nodes: {records}")
    check(place.run("saquery", "LR").count("FromLID") == len(links), "saquery lists the links at both ends")
    first, last = hosts["host-1"], max(hosts.values())
    path = place.run("saquery", "PR", "--src-to-dst", f"{first}:{last}")
    check(re.search(rf"dlid\.+{last}\b", path) and re.search(rf"slid\.+{first}\b", path), f"a path: {path}")
    for lid, name in names.items():
        check(name in place.run("smpquery", "nodedesc", str(lid)), f"smpquery finds {name} at LID {lid}")
        ports = max(port for node, port in links if node == name)
        said = place.run("smpquery", "nodeinfo", str(lid))
        check(re.search(rf"NumPorts:\.+{ports}\n", said), f"{name} has {ports} ports: {said}")
    said = place.run("smpquery", "portinfo", str(first), "1")
    check("LinkState:.......................Active" in said and "SMLid:...........................%d\n" % first in said,
          f"smpquery prints the port of host-1: {said}")
    errors = place.run("ibqueryerrors", "--threshold-file", os.devnull)
    check(f"{len(names)} nodes checked, 0 bad nodes found" in errors, f"no port has errors: {errors}")
    check("CongestionInfo" in place.run("ibccquery", "CongestionInfo", str(first)), "ibccquery is answered")
    check("SMINFO_MASTER" in place.run("sminfo"), "sminfo finds the master")
    check(f"Base lid: {first}" in place.run("ibstat"), "ibstat prints the LID")


def compare(place, other, last):
    for words in SAME:
        words = [str(last) if w == "LAST" else w for w in words]
        ours, theirs = (without_comments(p.run(*words)) for p in (place, other))
        check(ours == theirs, f"{words} prints {ours}, over ibsim {theirs}")


def look(topology, libraries, describe):
    with tempfile.NamedTemporaryFile("w", suffix=".topo") as file:
        subprocess.run([describe, "generate", topology], stdout=file, check=True)
        with Fabric(file.name, sm="none") as fabric, At(fabric, "host-1", libraries) as place:
            place.start_manager()
            await_true(lambda: "Initialize" not in place.run("iblinkinfo", "-l"), "opensm makes all ports active")
            links = links_of(fabric)
            discover(place, describe, file.name)
            look_at_links(place, links)
            names, hosts = look_at_paths(place, links)
            look_at_nodes(place, links, names, hosts)
            if has_ibsim():
                with Ibsim(file.name) as other:
                    other.start_manager()
                    compare(place, other, max(hosts.values()))


def main():
    need("opensm", "ibnetdiscover", "iblinkinfo", "ibtracert", "saquery", "perfquery", "smpquery", "dump_fts")
    for topology in sys.argv[3:]:
        look(topology, sys.argv[1], sys.argv[2])


main()
