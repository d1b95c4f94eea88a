// SPDX-License-Identifier: MIT
import Glibc
import Loop

extension Identity {
    /// Programs that do what a file, an argument or the other end of a connection says: to trust one of them is to trust every script of this user.
    ///
    /// By kind: languages and shells; what has one of them built in; what runs other programs in its own process; what passes on what others
    /// say; what speaks to the bus as it is told.
    private static let interpreters = [
        "python", "pypy", "perl", "raku", "ruby", "node", "nodejs", "bun", "deno", "tsx", "electron", "bash", "dash", "sh", "zsh", "fish",
        "ksh", "mksh", "tcsh", "csh", "nu", "pwsh", "elvish", "xonsh", "busybox", "toybox", "lua", "luajit", "tclsh", "wish", "expect",
        "php",
        "java", "mono", "dotnet", "gjs", "cjs", "qjs", "seed", "guile", "r", "rscript", "julia", "octave", "erl", "beam", "escript",
        "elixir", "ocaml", "ocamlrun", "ghc", "runghc", "racket", "sbcl", "clisp", "ecl", "gforth", "swipl", "awk", "gawk", "mawk",
        "jshell",
        "groovy", "scala", "kotlin", "wasmtime", "wasmer", "swift", "tcc", "cling",

        "emacs", "vim", "nvim", "vi", "gimp", "blender", "inkscape", "soffice", "mpv", "vlc", "sqlite",

        "env", "ld", "qemu", "wine", "box", "fexinterpreter", "gdb", "lldb", "strace", "ltrace", "valgrind", "rr", "perf",
        "proot", "systemd-run", "systemd-executor", "gst-launch",

        "socat", "ssh", "sshd", "dropbear", "dbclient", "nc", "ncat", "netcat", "systemd-socket-proxyd", "systemd-stdio-bridge",

        "busctl", "gdbus", "dbus-send", "qdbus", "qdbusviewer", "d-feet", "d-spy", "dbus-monitor",
    ]

    /// Whether this identity says who was granted something, for good: a name that neither the program itself nor its user can give to another one.
    ///
    /// An `app:` is vouched for by the sandbox it runs in. An executable is what it is only while its user cannot write it, and when it is no
    /// interpreter. A unit is a file of its user.
    var isVerified: Bool {
        if name.hasPrefix("app:") { return true }
        guard name.hasPrefix("exe:/"), !isSandboxed else { return false }
        let path = String(name.dropFirst(4))
        return !Identity.isInterpreter(path) && Identity.isOutOfReach(path)
    }

    /// Whether a program goes by an interpreter's name, a version behind it or not.
    static func isInterpreter(_ path: String) -> Bool {
        let file = path.split(separator: "/").last?.lowercased() ?? ""
        return interpreters.contains { name in
            guard file.hasPrefix(name) else { return false }
            guard let next = file.dropFirst(name.count).first, name.last?.isLetter ?? false else { return true }
            return !next.isLetter
        }
    }

    /// Whether a user can write neither the file nor any folder above it, and owns none of them. A path that can be looked at in part only is in reach.
    static func isOutOfReach(_ path: String, of user: uid_t = getuid()) -> Bool {
        if user == 0 { return false }
        var prefix = ""
        let parts: [Substring] = ["."] + path.split(separator: "/")
        for part in parts {
            prefix += "/" + part
            var status = stat()
            guard lstat(prefix, &status) == 0, status.st_mode & S_IFMT != S_IFLNK, status.st_uid != user else { return false }
            // Who is in the group is not looked up: nobody needs write permission there.
            guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else { return false }
        }
        return user != getuid() || access(path, W_OK) != 0
    }
}
