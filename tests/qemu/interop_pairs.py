# SPDX-License-Identifier: BSD-2-Clause
"""The pairs of programs that interop.py runs, each with the client on either side.

In commands {device}, {gid} (index of the address), {port}, {self}, {peer} (addresses), {meet}
(the peer's IPv4 address, where programs exchange the numbers of their queue pairs by TCP),
{mtu} and {size} are known only to the run. The guest's processor is emulated: few
iterations, and programs sleep where they can.
"""
from dataclasses import dataclass

IPV4, IPV6 = 0, 1


@dataclass
class Pair:
    name: str
    server: str
    client: str
    ready: str = 'tcp'  # how the server is known to listen: tcp, cm, or says (server_says)
    mtu: int = 0        # path MTU in bytes
    size: int = 0       # of a message
    client_says: str = ''
    server_says: str = ''
    client_fails: bool = False
    server_ends: bool = True
    family: int = IPV4
    port: int = 0       # of a program that has always the same; 0: any
    link: int = 4200    # MTU of the network
    loss: str = ''      # what the guest's netem does to the packets that it sends
    faults: str = ''    # BUSBAR_FAULTS
    limit_s: int = 30
    again: str = ''     # printed where the programs missed each other: they try again
    guest_again: str = ''  # the same by a fault of the guest's kernel as the server
    client_side: str = 'both'  # the only side that can be the client: host or guest
    long: bool = False  # shows little beside its neighbours
    later: str = ''     # why it may fail today
    skip: str = ''      # why it cannot be run
    busbar_skip: str = ''  # why not with busbar
    library: bool = False  # in the guest, too, by busbar's libraries, on the kernel's device
    ways: tuple = ()    # the only ones (iwarp_pairs.WAYS)
    reads_as_offered: bool = False  # the server does as many READs as the request offers
    responder_first: bool = False  # the server sends first; by iWARP it may not without an RTR

    @property
    def row(self):
        """Its name in a table."""
        return f'{self.name} {self.size or ""}'.strip() + (' IPv6' if self.family == IPV6 else '')


PAIRS = []


def pingpong(program, mtu, size, options='', **more):
    check = '-c' if program != 'ibv_xsrq_pingpong' else ''
    words = (f'{program} -d {{device}} -g {{gid}} -p {{port}} -m {{mtu}} -s {{size}} -e '
             f'{check} {options}')
    if program == 'ibv_ud_pingpong':
        words = words.replace('-m {mtu}', '')
    says = '^[0-9]+ iters in'
    PAIRS.append(Pair(' '.join([program, options]), words, words + ' {meet}', mtu=mtu,
                      size=size, client_says=says, server_says=says, **more))


def perftest(program, mtu, size, options, iterations=5, **more):
    words = (f'{program} -d {{device}} -x {{gid}} -p {{port}} -m {{mtu}} -s {{size}} -F '
             f'-n {iterations} {options}')
    if 'atomic' in program:
        words = words.replace('-s {size}', '')
    says = rf'^ *{size} +{iterations} '
    PAIRS.append(Pair(' '.join([program, options]), words, words + ' {meet}', mtu=mtu,
                      size=size, client_says=says, **more))


def connected(name, server, client, client_says='', **more):
    PAIRS.append(Pair(name, server, client, ready='cm', client_says=client_says, **more))


for path_mtu in (512, 1024, 2048, 4096):
    pingpong('ibv_rc_pingpong', path_mtu, 4096, '-n 20')
for message in (1, 1048576):
    pingpong('ibv_rc_pingpong', 4096, message, '-n 5')
for message in (513, 65536):
    pingpong('ibv_rc_pingpong', 4096, message, '-n 5', long=True)
pingpong('ibv_rc_pingpong', 1024, 100000, '-n 5')
pingpong('ibv_rc_pingpong', 4096, 4096, '-n 20 -N', long=True)
pingpong('ibv_rc_pingpong', 4096, 10000, '-n 5', family=IPV6)
pingpong('ibv_uc_pingpong', 512, 4096, '-n 20')
pingpong('ibv_uc_pingpong', 4096, 4096, '-n 20', long=True)
pingpong('ibv_uc_pingpong', 1024, 1, '-n 5', long=True)
pingpong('ibv_uc_pingpong', 1024, 16384, '-n 5')
pingpong('ibv_ud_pingpong', 4096, 1, '-n 20')
pingpong('ibv_ud_pingpong', 4096, 2048, '-n 20', long=True)
pingpong('ibv_ud_pingpong', 4096, 4096, '-n 20')
pingpong('ibv_ud_pingpong', 4096, 1000, '-n 20', family=IPV6)
pingpong('ibv_srq_pingpong', 1024, 4096, '-n 40 -q 4')
pingpong('ibv_xsrq_pingpong', 1024, 4096, '-n 40', skip='rxe has no XRC')

perftest('ib_send_bw', 1024, 65536, '-e')
# Nobody repeats what a queue of the network has no room for.
perftest('ib_send_bw', 4096, 16384, '-e -c UC', long=True)
perftest('ib_send_bw', 4096, 2048, '-e -c UD', long=True)
perftest('ib_send_lat', 4096, 64, '-e', long=True)
perftest('ib_write_bw', 512, 8192, '')
perftest('ib_write_bw', 1024, 1, '', long=True)
perftest('ib_write_bw', 2048, 65536, '', long=True)
perftest('ib_write_bw', 4096, 1048576, '')
perftest('ib_write_bw', 4096, 32768, '-c UC')
perftest('ib_read_bw', 512, 8192, '-e')
perftest('ib_read_bw', 1024, 1, '-e', long=True)
perftest('ib_read_bw', 2048, 65536, '-e', long=True)
perftest('ib_read_bw', 4096, 1048576, '-e')
perftest('ib_read_lat', 4096, 8, '-e', long=True)
perftest('ib_atomic_lat', 4096, 8, '-e -A CMP_AND_SWAP')
perftest('ib_atomic_lat', 4096, 8, '-e -A FETCH_AND_ADD', long=True)
# More of them at a time than an adapter need answer.
perftest('ib_atomic_bw', 4096, 8, '-e', iterations=20)

for count, message in ((5, 64), (5, 60000)):
    connected(f'rping -C {count}', f'rping -s -V -a {{self}} -p {{port}} -C {count} -S {{size}}',
              f'rping -c -v -V -a {{peer}} -p {{port}} -C {count} -S {{size}}',
              '^ping data: rdma-ping-0', size=message)
connected('rping -C 5', 'rping -s -V -a {self} -p {port} -C 5',
          'rping -c -v -V -a {peer} -p {port} -C 5', '^ping data: rdma-ping-0',
          family=IPV6)
# A server of another port, so that there is an adapter at all.
connected('rping to no server', 'rping -s -P -a {self} -p {port}', 'rping -c -a {peer} -p 17 -C 1',
          'RDMA_CM_EVENT_REJECTED', client_fails=True, server_ends=False)
connected('rdma_client', 'rdma_server -p {port}', 'rdma_client -s {peer} -p {port}',
          'rdma_client: end 0')
connected('ucmatose', 'ucmatose -b {self} -p {port} -c 3 -C 5',
          'ucmatose -s {peer} -p {port} -c 3 -C 5', 'return status 0')
connected('udaddy', 'udaddy -b {self}', 'udaddy -s {peer}', 'return status 0', port=7174)
connected('rstream', 'rstream -b {self} -p {port} -S 4000 -I 5 -C 5',
          'rstream -s {peer} -p {port} -S 4000 -I 5 -C 5', '^custom|^4000',
          skip='the rsockets of both libraries have protocols of their own')
# It calls a second time at once, before a server of an emulated processor listens again.
PAIRS.append(Pair('ib_send_bw -R', 'ib_send_bw -R -F -n 5 -p {port} -s {size} -e',
                  'ib_send_bw -R -F -n 5 -p {port} -s {size} -e {peer}', mtu=4096, size=65536,
                  client_says='^ *65536 +5 ', ready='cm', client_side='guest'))

# A network that loses and exchanges packets of the guest: data, answers and acknowledgements.
LOSS = 'delay 1ms loss 2% reorder 95%'
pingpong('ibv_rc_pingpong', 1024, 65536, '-n 5', loss=LOSS, long=True)
perftest('ib_write_bw', 1024, 65536, '-u 16', loss=LOSS)
perftest('ib_read_bw', 1024, 65536, '-e -u 16', loss=LOSS)
perftest('ib_atomic_lat', 4096, 8, '-e -u 16 -A FETCH_AND_ADD', iterations=100, loss=LOSS,
         long=True)

# And the other way: what busbar sends, and what it receives.
FAULTS = 'loss=1%,dup=1%,reorder=2%,seed=7'
pingpong('ibv_rc_pingpong', 1024, 65536, '-n 5', faults=FAULTS, long=True)
perftest('ib_write_bw', 1024, 65536, '-u 16', faults=FAULTS)
perftest('ib_read_bw', 1024, 65536, '-e -u 16', faults=FAULTS)
perftest('ib_atomic_lat', 4096, 8, '-e -u 16 -A FETCH_AND_ADD', iterations=100,
         faults=FAULTS)

# A usual network last: then path MTU 1024 is the largest.
pingpong('ibv_rc_pingpong', 1024, 65536, '-n 5', link=1500)
pingpong('ibv_ud_pingpong', 1024, 1024, '-n 20', link=1500, long=True)
perftest('ib_write_bw', 1024, 65536, '', link=1500)
