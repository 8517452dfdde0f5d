#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A gateway in a user namespace that does not map its user, where the kernel gives all users of the
host one number, the gateway's own: by that number no client has a role. Tokens count, and the
control socket whose file only the gateway's user can open.

Environment: BUSBAR, the program. Exit status 0: good, 1: not, 77: only root can be two users, or
there are no user namespaces.
"""
import ctypes
import hashlib
import json
import os
import socket
import sys
import tempfile

from attack import As, Attacked, check, connect
from users import answer, message, without_sock_diag

OURS, OTHER = 12345, 23456
TOKEN = "configure-0123456789abcdef"
REQUESTS = (("GET", "/api/v2/nodes"), ("GET", "/api/v2/config"), ("POST", "/api/v2/node/fast/pause"),
            ("POST", "/api/v2/reload"), ("POST", "/api/v2/shutdown"))


def become():
    """For a child of this process."""
    os.setgroups([])
    os.setgid(OURS)
    os.setuid(OURS)
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000):  # CLONE_NEWUSER
        os._exit(77)


def become_without_sock_diag():
    without_sock_diag()
    become()


def allowed():
    child = os.fork()
    if not child:
        become()
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def asks(port, uid, request):
    with As(uid):
        s = connect(port)
    with s:
        s.sendall(request)
        return answer(s)


def control(address, uid, path="/status"):
    """The status; None: closed without one."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    try:
        with s, As(uid):
            s.connect(address)
            s.sendall(json.dumps({"method": "GET", "path": path}).encode() + b"\n")
            line = s.makefile().readline()
            return json.loads(line)["status"] if line else None
    except (ConnectionError, PermissionError):
        return None


def with_token(method, path):
    return message(method, path, {} if method == "POST" else None).replace(
        b"Host:", b"Authorization: Bearer %s\r\nHost:" % TOKEN.encode(), 1)


def by_number(folder, before, name):
    with Attacked(folder, before=before, name=name) as g:
        for method, path in REQUESTS:
            for uid in (OURS, OTHER, 0):
                got = asks(g.port, uid, message(method, path, {} if method == "POST" else None))
                check(got == 403, "%s: %s %s of user %d: %s" % (name, method, path, uid, got))
        check(control(g.control, OURS) == 200, "%s: the gateway's user at its control socket" % name)
        check(control(g.control, OTHER) is None, "%s: another user" % name)
        os.chmod(g.control, 0o666)
        check(control(g.control, OTHER) is None, "%s: another user, whom the file lets in" % name)
        check(control(g.control, OURS) is None, "%s: its own user is not told from him" % name)
        os.chmod(g.control, 0o600)
        check(control(g.control, OURS) == 200, "%s: and is again" % name)
        check("does not map the server's user" in g.said(), "the log says why: " + g.said())


def by_token(folder):
    path = os.path.join(folder, "tokens")
    with open(path, "w") as f:
        f.write("configure %s\n" % TOKEN)
    os.chmod(path, 0o600)
    os.chown(path, OURS, OURS)
    listed = 'tokens = ( { role = "configure"; sha256 = "%s"; } );' % hashlib.sha256(TOKEN.encode()).hexdigest()
    for i, access in enumerate(('token_file = "%s";' % path, listed)):
        with Attacked(folder, before=become, name="token%d" % i, http="http = { %s };" % access) as g:
            check("does not map" not in g.said(), "nothing to say with tokens")
            for uid in (OURS, OTHER):
                check(asks(g.port, uid, message("GET", "/api/v2/nodes")) == 401, "%s: no token" % access)
            check(asks(g.port, OURS, with_token("GET", "/api/v2/nodes")) == 200, "%s: a token" % access)


def by_name(folder):
    """A name without a file has no mode that tells users apart."""
    name = "busbar-test-unmapped-%d" % os.getpid()
    with Attacked(folder, before=become, name="name", args=("--control=@" + name,)) as g:
        check(" @%s\n" % name in open("/proc/net/unix").read(), "it listens there")
        for uid in (OURS, OTHER):
            check(control("\0" + name, uid) is None, "user %d by a name without a file" % uid)


if __name__ == "__main__":
    if os.getuid() or not allowed():
        print("only root can be two users" if os.getuid() else "no user namespaces")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o755)
        os.chown(parent, OURS, OURS)
        by_number(parent, become, "asked")
        by_number(parent, become_without_sock_diag, "tables")
        by_token(parent)
        by_name(parent)
