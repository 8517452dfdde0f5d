# SPDX-License-Identifier: BSD-2-Clause
"""The pairs of programs that interop.py runs against siw0, the kernel's iWARP, and the ways to
connect them.

The rules are those of interop_pairs.py. iWARP connects queue pairs by the connection manager
alone, so perftest takes -R, and there are no path MTU, GID, atomics, UC or UD.
"""
from dataclasses import dataclass

from interop_pairs import IPV6, Pair

REVISION, RTR, CRC = 'BUSBAR_IWARP_REVISION', 'BUSBAR_IWARP_RTR', 'BUSBAR_IWARP_CRC'


@dataclass
class Way:
    """What the side that calls asks for. The other side has its defaults (the first way)."""
    name: str
    siw: str        # words of siw_load.sh, where siw calls
    settings: dict  # of busbar-adapter(7), where busbar calls
    revision: int = 2
    rtr: bool = True


WAYS = [Way('default', 'p2p', {})]
for crc in (False, True):
    for way in (Way('rev1', 'rev1', {REVISION: '1'}, revision=1, rtr=False),
                Way('rev2', 'plain', {RTR: 'none'}, rtr=False),
                Way('read', 'read', {RTR: 'read'}),
                Way('write', 'write', {RTR: 'write'})):
        if crc:
            way = Way(way.name + '+crc', way.siw + ' crc', {**way.settings, CRC: 'on'},
                      way.revision, way.rtr)
        WAYS.append(way)

# Why cells are left out.
NO_RTR = 'its server sends first, for which siw as the caller would have to send an RTR'
NO_READS = 'siw tells its program that a request of revision 1 offers no READs'

PAIRS = []

# A server that sends at once: siw as the initiator takes bytes that come with the reply for a
# fault, and siw as the responder sends them (with an RTR, too).
EARLY = 'CONNECT_ERROR, error: -22|rpoll: (Invalid argument|Success)'
# The client calls a second time at once, before the server listens again.
REFUSED = 'Connection refused|EVENT_REJECTED; error: -111'


def connected(name, server, client, client_says='', **more):
    PAIRS.append(Pair(name, server, client, **{'ready': 'cm', 'client_says': client_says,
                                               'limit_s': 60, **more}))


def rping(count, size, **more):
    connected(f'rping -C {count}', f'rping -s -V -a {{self}} -p {{port}} -C {count} -S {{size}}',
              f'rping -c -v -V -a {{peer}} -p {{port}} -C {count} -S {{size}}',
              '^ping data: rdma-ping-0', size=size, reads_as_offered=True, **more)


def perftest(program, size, options='', iterations=5, **more):
    words = f'{program} -R -F -n {iterations} -p {{port}} -s {{size}} {options}'
    connected(f'{program} -R {options}'.strip(), words, words + ' {peer}',
              rf'^ *{size} +{iterations} ', size=size, again=REFUSED, **more)


def ripc(name, size, options=''):
    """Both sides are busbar's library; in the guest it is on the system's, and so on siw."""
    resolver = '--resolver-port {port}'
    connected(name, f'{{busbar}} ripc serve -a {{self}} {resolver} echo{{port}}',
              f'{{busbar}} ripc ping -a {{self}} {resolver} -c 5 -i 0 -W 10 -s {size} {options} '
              'echo{port}', ', 5 came back', size=size, ready='says',
              server_says='^service ', server_ends=False, library=True)


rping(5, 60000)
for operation in ('write', 'read', 'send'):
    perftest(f'ib_{operation}_bw', 65536)
    # Of ib_write_lat the server writes first.
    perftest(f'ib_{operation}_lat', 64, responder_first=operation == 'write')
# Of busbar's library on both sides: rdma-core's has a protocol of its own.
connected('rstream', 'rstream -b {self} -p {port} -S 4000 -I 5 -C 5',
          'rstream -s {peer} -p {port} -S 4000 -I 5 -C 5', '^custom|^4000',
          guest_again=EARLY, library=True)
connected('ucmatose', 'ucmatose -b {self} -p {port} -c 3 -C 5',
          'ucmatose -s {peer} -p {port} -c 3 -C 5', 'return status 0', guest_again=EARLY,
          responder_first=True)
ripc('ripc ping', 50)
ripc('ripc ping -l', 100000, '-l')
# What shows little in more than one way.
DEFAULT = {'ways': ['default']}
rping(5, 64, **DEFAULT)
rping(5, 64, family=IPV6, **DEFAULT)
# siw says so at once, and rping would then wait for ever.
connected('rdma_client to no server', 'rping -s -P -a {self} -p {port}',
          'rdma_client -s {peer} -p 17', 'rdma_connect: Connection refused', client_fails=True,
          server_ends=False, **DEFAULT)
connected('rdma_client', 'rdma_server -p {port}', 'rdma_client -s {peer} -p {port}',
          'rdma_client: end 0', **DEFAULT)
