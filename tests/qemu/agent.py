#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs programs in the guest for interop.py, which is on the host.

agent.py PORT: listens there, on all addresses of the guest. Each connection is
one request, a line of JSON:

    {"run": [PROGRAM, ARGUMENT...]}   runs it; the answer is what it prints, then
                                      a NUL byte and its exit status (less than 0:
                                      the signal that ended it)
    {"listens": [KIND, PORT]}         waits until a program listens on the port, where KIND
                                      is tcp or cm (connections of RDMA), 30 seconds at
                                      most; the answer is a status as above, 0 or 1
    {"end": true}                     ends the agent, and with it the guest

A connection that the host closes ends its program. So one boot of the guest
serves any number of programs, several at a time. Nobody but the host reaches
the guest.
"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from listening import tcp_listens


def relay(program, connection):
    """The program's output to the host, until either is at its end."""
    while True:
        piece = os.read(program.stdout.fileno(), 65536)
        if not piece:
            return
        connection.sendall(piece)


def end_with_connection(program, connection):
    """A host that has no more to say keeps the connection open, or closes it all."""
    try:
        while connection.recv(1):
            pass
    except OSError:
        pass
    try:
        os.killpg(program.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(words, connection):
    try:
        program = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, cwd='/dev/shm')
    except OSError as error:
        connection.sendall(f'{words[0]}: {error.strerror}\n\x00127\n'.encode())
        return
    threading.Thread(target=end_with_connection, args=(program, connection),
                     daemon=True).start()
    try:
        relay(program, connection)
        connection.sendall(f'\0{program.wait()}\n'.encode())
    except OSError:
        program.wait()
    # Wakes the thread that waits for the host's end.
    connection.shutdown(socket.SHUT_RDWR)


def listens(kind, port):
    if kind == 'tcp':
        return tcp_listens(port)
    table = subprocess.run(['rdma', 'resource', 'show', 'cm_id'], capture_output=True,
                           text=True, check=False).stdout
    return re.search(rf'state LISTEN .*:{port}\b', table)


def wait_listens(kind, port, connection):
    end = time.monotonic() + 30
    while not (found := listens(kind, port)) and time.monotonic() < end:
        time.sleep(0.02)
    connection.sendall(b'\x000\n' if found else b'\x001\n')


def serve(connection, end):
    with connection:
        with connection.makefile('rb') as lines:
            request = json.loads(lines.readline())
        try:
            if 'run' in request:
                run(request['run'], connection)
            elif 'listens' in request:
                wait_listens(*request['listens'], connection)
        except OSError:
            pass
        if 'end' in request:
            end.set()


def main():
    end = threading.Event()
    listener = socket.create_server(('', int(sys.argv[1])), backlog=64)

    def accept():
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(connection, end), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    end.wait()


if __name__ == '__main__':
    main()
