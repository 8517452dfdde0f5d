# SPDX-License-Identifier: BSD-2-Clause
"""The pairs of programs that interop.py runs against siw0, the kernel's iWARP.

The rules are those of interop_pairs.py. iWARP connects queue pairs by the connection manager
alone, so perftest takes -R, and there are no path MTU, GID, atomics, UC or UD.
"""
from interop_pairs import IPV6, Pair

PAIRS = []

# What busbar can be told (busbar-adapter(7)), by a short name; '': nothing.
SETTINGS = {
    '': {},
    'rev1': {'BUSBAR_IWARP_REVISION': '1'},
    'rev1+crc': {'BUSBAR_IWARP_REVISION': '1', 'BUSBAR_IWARP_CRC': 'on'},
    'none': {'BUSBAR_IWARP_RTR': 'none'},
    'write': {'BUSBAR_IWARP_RTR': 'write'},
    'read': {'BUSBAR_IWARP_RTR': 'read'},
    'write+crc': {'BUSBAR_IWARP_RTR': 'write', 'BUSBAR_IWARP_CRC': 'on'},
    'read+crc': {'BUSBAR_IWARP_RTR': 'read', 'BUSBAR_IWARP_CRC': 'on'},
}

# A server that sends at once: siw as the initiator takes bytes that come with the reply for a
# fault, and siw as the responder sends them (with an RTR, too).
EARLY = 'CONNECT_ERROR, error: -22|rpoll: (Invalid argument|Success)'
# The client calls a second time at once, before the server listens again.
REFUSED = 'Connection refused|EVENT_REJECTED; error: -111'


def connected(name, server, client, client_says='', **more):
    PAIRS.append(Pair(name, server, client, ready='cm', client_says=client_says, **more))


def rping(count, size, **more):
    connected(f'rping -C {count}', f'rping -s -V -a {{self}} -p {{port}} -C {count} -S {{size}}',
              f'rping -c -v -V -a {{peer}} -p {{port}} -C {count} -S {{size}}',
              '^ping data: rdma-ping-0', size=size, reads_as_offered=True, **more)


def perftest(program, size, options='', iterations=5, **more):
    words = f'{program} -R -F -n {iterations} -p {{port}} -s {{size}} {options}'
    connected(f'{program} -R {options}'.strip(), words, words + ' {peer}',
              rf'^ *{size} +{iterations} ', size=size, again=REFUSED, **more)


rping(5, 64)
rping(5, 60000)
rping(5, 64, family=IPV6)
# siw says so at once, and rping would then wait for ever.
connected('rdma_client to no server', 'rping -s -P -a {self} -p {port}',
          'rdma_client -s {peer} -p 17', 'rdma_connect: Connection refused', client_fails=True,
          server_ends=False)
connected('rdma_client', 'rdma_server -p {port}', 'rdma_client -s {peer} -p {port}',
          'rdma_client: end 0')
connected('ucmatose', 'ucmatose -b {self} -p {port} -c 3 -C 5',
          'ucmatose -s {peer} -p {port} -c 3 -C 5', 'return status 0', guest_again=EARLY,
          responder_first=True)
# With a second guest in the place of busbar it runs.
connected('rstream', 'rstream -b {self} -p {port} -S 4000 -I 5 -C 5',
          'rstream -s {peer} -p {port} -S 4000 -I 5 -C 5', '^custom|^4000',
          guest_again=EARLY, busbar_skip="rsockets of busbar and rdma-core differ in their protocol")
for operation in ('write', 'read', 'send'):
    perftest(f'ib_{operation}_bw', 65536)
    # Of ib_write_lat the server writes first.
    perftest(f'ib_{operation}_lat', 64, responder_first=operation == 'write')
