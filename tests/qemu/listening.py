# SPDX-License-Identifier: BSD-2-Clause
"""Whether a program listens on a TCP port of this host or guest."""
import re


def read(path):
    with open(path, encoding='ascii', errors='replace') as file:
        return file.read()


def tcp_listens(port):
    return re.search(rf'^ *\d+: [0-9A-F]+:{port:04X} \S+ 0A ',
                     read('/proc/net/tcp') + read('/proc/net/tcp6'), re.MULTILINE)
