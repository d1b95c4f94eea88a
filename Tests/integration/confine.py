#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""confine.py UNIT COMMAND ...: runs COMMAND confined as the systemd unit file UNIT says, where no systemd runs.

What the unit's SystemCallFilter leaves out kills the process here, so that no test passes by a call that failed unnoticed. Only @resources
fails as it does under systemd: PipeWire asks for priorities where it may have them.
"""

import ctypes
import errno
import os
import socket
import subprocess
import sys

import seccomp
from seccomp import ALLOW, ERRNO, KILL_PROCESS, MASKED_EQ, NE, Arg

PR_SET_NO_NEW_PRIVS = 38
PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
NAMESPACES = {"CLONE_NEWNS": 0x20000, "CLONE_NEWCGROUP": 0x2000000, "CLONE_NEWUTS": 0x4000000, "CLONE_NEWIPC": 0x8000000,
              "CLONE_NEWUSER": 0x10000000, "CLONE_NEWPID": 0x20000000, "CLONE_NEWNET": 0x40000000}


class Unit(dict):
    """The [Service] section of a unit file: each key with its values, in their order."""

    def __init__(self, path):
        super().__init__()
        section = ""
        for line in open(path).read().splitlines():
            if line.startswith("["):
                section = line
            elif section == "[Service]" and line and line[0] not in "#;":
                key, _, value = line.partition("=")
                self.setdefault(key, []).append(value)

    def has(self, key):
        return self.get(key, ["no"])[-1] == "yes"


def members(name):
    """The system calls of a set, as systemd defines it."""
    if not name.startswith("@"):
        return {name}
    done = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True)
    lines = [line.strip() for line in done.stdout.splitlines()[1:]]
    return set().union(*(members(line) for line in lines if line and not line.startswith("#")))


def allowed(unit):
    """The system calls that the unit's SystemCallFilter lets through."""
    # What systemd itself always allows.
    calls = set(members("@default"))
    for value in unit["SystemCallFilter"]:
        named = set().union(*(members(name) for name in value.removeprefix("~").split()))
        calls = calls - named if value.startswith("~") else calls | named
    return calls


def add(rules, action, call, *arguments):
    try:
        rules.add_rule(action, call, *arguments)
    except (RuntimeError, ValueError):
        # Not a call of this machine.
        pass


def confine(unit):
    if unit.has("NoNewPrivileges"):
        ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if "UMask" in unit:
        os.umask(int(unit["UMask"][-1], 8))
    calls = allowed(unit)
    listed = seccomp.SyscallFilter(KILL_PROCESS)
    for call in calls:
        add(listed, ALLOW, call)
    for call in members("@resources") - calls:
        add(listed, ERRNO(errno.EPERM), call)
    # The kernel asks every filter, and obeys the strictest.
    denied = seccomp.SyscallFilter(ALLOW)
    if unit.get("RestrictAddressFamilies") == ["AF_UNIX"]:
        add(denied, KILL_PROCESS, "socket", Arg(0, NE, socket.AF_UNIX))
        add(denied, KILL_PROCESS, "socketpair", Arg(0, NE, socket.AF_UNIX))
    if unit.has("MemoryDenyWriteExecute"):
        add(denied, KILL_PROCESS, "mmap", Arg(2, MASKED_EQ, PROT_WRITE | PROT_EXEC, PROT_WRITE | PROT_EXEC))
        add(denied, KILL_PROCESS, "mprotect", Arg(2, MASKED_EQ, PROT_EXEC, PROT_EXEC))
        add(denied, KILL_PROCESS, "pkey_mprotect", Arg(2, MASKED_EQ, PROT_EXEC, PROT_EXEC))
        add(denied, KILL_PROCESS, "shmat", Arg(2, MASKED_EQ, SHM_EXEC, SHM_EXEC))
    if unit.has("RestrictNamespaces"):
        # Its flags lie in memory, where no filter looks: so the C library has to do without.
        add(denied, ERRNO(errno.ENOSYS), "clone3")
        add(denied, KILL_PROCESS, "setns")
        for flag in NAMESPACES.values():
            add(denied, KILL_PROCESS, "clone", Arg(0, MASKED_EQ, flag, flag))
            add(denied, KILL_PROCESS, "unshare", Arg(0, MASKED_EQ, flag, flag))
    if unit.has("LockPersonality"):
        add(denied, KILL_PROCESS, "personality", Arg(0, NE, 0xFFFFFFFF))
    denied.load()
    listed.load()


if __name__ == "__main__":
    confine(Unit(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
