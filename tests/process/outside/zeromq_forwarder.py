#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A forwarder of ZeroMQ: publishers connect to the first port, subscribers to the second.

With a third and fourth argument, the public and secret key of CURVE, it takes clients with
CURVE only. Debian's python3, which has the module zmq (python3-zmq)."""
import sys

import zmq

context = zmq.Context()
sockets = []
for kind, port in ((zmq.XSUB, sys.argv[1]), (zmq.XPUB, sys.argv[2])):
    s = context.socket(kind)
    # A gateway that is slow for a moment loses nothing here.
    s.set_hwm(0)
    s.linger = 0
    if len(sys.argv) > 4:
        s.curve_server = True
        s.curve_publickey, s.curve_secretkey = (a.encode() for a in sys.argv[3:5])
    s.bind("tcp://127.0.0.1:" + port)
    sockets.append(s)
zmq.proxy(*sockets)
