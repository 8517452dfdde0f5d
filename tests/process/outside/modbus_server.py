#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A Modbus server of functions 3, 4 and 16, which checks what it gets: over TCP or a serial line.
Tests tell it what to answer wrongly.

usage: modbus_server.py tcp PORT | rtu DEVICE"""
import os
import select
import socket
import struct
import sys
import termios
import threading
import time


def crc(data):
    """Of frames on a serial line."""
    value = 0xffff
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xa001 if value & 1 else 0)
    return struct.pack("<H", value)


class Server:
    """Registers that its connections read and write. `answer`: a function of (unit, request, good
    answer) that returns the answer, None for none, or bytes of a whole frame in a tuple."""

    def __init__(self):
        self.lock = threading.Lock()
        self.holding, self.input = [0] * 65536, [0] * 65536
        self.requests = []       # (unit, function, address, count)
        self.writes = []         # (address, values)
        self.bad = []            # what a client must not send
        self.answer = None
        self.connections = []
        self.listener = None

    # ---- requests ----

    def reply(self, unit, pdu):
        with self.lock:
            good = self.serve(unit, pdu)
            return self.answer(unit, pdu, good) if self.answer else good

    def serve(self, unit, pdu):
        function = pdu[0]
        if function not in (3, 4, 16):
            return bytes((function | 0x80, 1))
        if len(pdu) < 5:
            self.bad.append(("length", pdu))
            return bytes((function | 0x80, 3))
        address, count = struct.unpack(">HH", pdu[1:5])
        self.requests.append((unit, function, address, count))
        if not 1 <= count <= (123 if function == 16 else 125) or (function != 16 and len(pdu) != 5):
            self.bad.append(("count", pdu))
            return bytes((function | 0x80, 3))
        if address + count > 65536:
            return bytes((function | 0x80, 2))
        if function == 16:
            if pdu[5] != 2 * count or len(pdu) != 6 + 2 * count:
                self.bad.append(("length", pdu))
                return bytes((function | 0x80, 3))
            values = struct.unpack(">%dH" % count, pdu[6:])
            self.holding[address:address + count] = values
            self.writes.append((address, values))
            return pdu[:5]
        table = self.holding if function == 3 else self.input
        return struct.pack(">BB%dH" % count, function, 2 * count, *table[address:address + count])

    # ---- TCP ----

    def listen(self, port):
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener):
        while True:
            try:
                s, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections.append(s)
            threading.Thread(target=self.talk, args=(s,), daemon=True).start()

    def talk(self, s):
        try:
            while True:
                head = self.take(s, 7)
                number, protocol, length, unit = struct.unpack(">HHHB", head)
                if protocol or not 2 <= length <= 254:
                    self.bad.append(("head", head))
                    break
                answer = self.reply(unit, self.take(s, length - 1))
                if answer is None:
                    continue
                if isinstance(answer, tuple):
                    s.sendall(answer[0])
                else:
                    s.sendall(struct.pack(">HHHB", number, 0, len(answer) + 1, unit) + answer)
        except OSError:
            pass
        s.close()

    @staticmethod
    def take(s, count):
        data = b""
        while len(data) < count:
            more = s.recv(count - len(data))
            if not more:
                raise OSError("closed")
            data += more
        return data

    def kill(self):
        """As a process that dies."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            for s in self.connections:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.connections = []

    # ---- serial lines ----

    def serve_line(self, fd, echo=None):
        """Frames on a serial line, one at a time; a request has its length in it. `echo`: what comes goes back
        as this function makes it, before anything is answered."""
        data = b""
        while True:
            ready, _, _ = select.select([fd], [], [], 0.05)
            if not ready:
                data = b""      # the silence between frames
                continue
            try:
                more = os.read(fd, 300)
                if echo:
                    os.write(fd, echo(more))
                data += more
            except OSError:
                return
            if len(data) < 8:
                continue
            length = 9 + data[6] if data[1] == 16 else 8
            if len(data) < length:
                continue
            frame, data = data[:length], data[length:]
            if crc(frame[:-2]) != frame[-2:]:
                self.bad.append(("checksum", frame))
                continue
            answer = self.reply(frame[0], frame[1:-2])
            if answer is None:
                continue
            if isinstance(answer, tuple):
                os.write(fd, answer[0])
            else:
                answer = frame[:1] + answer
                os.write(fd, answer + crc(answer))


def main():
    server = Server()
    if sys.argv[1] == "tcp":
        server.listen(int(sys.argv[2]))
        while True:
            time.sleep(1000)
    fd = os.open(sys.argv[2], os.O_RDWR | os.O_NOCTTY)
    mode = termios.tcgetattr(fd)
    mode[0] = mode[1] = mode[3] = 0
    termios.tcsetattr(fd, termios.TCSANOW, mode)
    server.serve_line(fd)


if __name__ == "__main__":
    main()
