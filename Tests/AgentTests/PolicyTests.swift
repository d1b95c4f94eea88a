// SPDX-License-Identifier: MIT
import Contract
import Glibc
import Loop
import Testing

@testable import Agent

@Suite struct PolicyTests {
    /// The table of the contract, "Who may do what", row by row: who may on a client's track, who on the desktop track.
    @Test(arguments: Act.allCases) func followsTheContract(act: Act) {
        for isOwner in [false, true] {
            for isAllowed in [false, true] {
                for isSandboxed in [false, true] {
                    for isDesktopTrack in [false, true] where !(isOwner && isDesktopTrack) {
                        let standing = Standing(
                            isOwner: isOwner, isAllowed: isAllowed, isSandboxed: isSandboxed, isDesktopTrack: isDesktopTrack)
                        let expected =
                            switch act {
                            case .stop, .start: isOwner || !isSandboxed
                            case .subscribe: isDesktopTrack ? isAllowed || !isSandboxed : isOwner || isAllowed
                            case .manage: isDesktopTrack ? !isSandboxed : isOwner
                            }
                        #expect(Policy.permits(act, standing) == expected, "\(act) \(standing)")
                    }
                }
            }
        }
    }

    @Test func errorsHaveOneNameAndOneExitCodeEach() {
        let names = ErrorName.allCases.map(\.dbusName)
        #expect(Set(names).count == names.count)
        for name in ErrorName.allCases {
            #expect(ErrorName(dbusName: name.dbusName) == name)
            #expect((1...5).contains(name.exitCode))
        }
        #expect(ErrorName.cancelled.exitCode == 3 && ErrorName.timedOut.exitCode == 5 && ErrorName.portalUnavailable.exitCode == 4)
    }
}

@Suite struct IdentityTests {
    @Test func knowsAFlatpakByItsInstanceFile() {
        let info = FlatpakInstance.parse("[Application]\nname=org.example.App\nruntime=x\n\n[Instance]\nname=no\ninstance-id=12\n")
        #expect(info == FlatpakInstance.Info(application: "org.example.App", instance: "12"))
        #expect(FlatpakInstance.parse("[Instance]\nname=no\n[Application]\nname=yes\ninstance-id=1\n")?.instance == nil)
        #expect(FlatpakInstance.parse("garbage") == nil)
        #expect(FlatpakInstance.parse("") == nil)
    }

    @Test func findsTheFirstProcessOfASandbox() {
        #expect(FlatpakInstance.child("{\n    \"child-pid\": 30569,\n    \"mnt-namespace\": 1\n}\n") == "30569")
        for text in ["{}", "", "{ \"child-pid\": \"self\" }", "{ \"child-pid\": -1 }", "\"child-pid\""] {
            #expect(FlatpakInstance.child(text) == nil)
        }
    }

    @Test func knowsASnapByItsLabel() {
        #expect(Identity.snapName("snap.firefox.firefox (enforce)\n") == "firefox")
        #expect(Identity.snapName("unconfined\n") == nil)
        #expect(Identity.snapName("") == nil)
    }

    @Test func knowsAUserUnitByItsControlGroup() {
        let service = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/org.example.Bar.service\n"
        #expect(Identity.userUnit(service) == "org.example.Bar.service")
        #expect(Identity.userUnit("0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-foot-1234.scope\n") == nil)
        #expect(Identity.userUnit("0::/system.slice/ssh.service\n") == nil)
        #expect(Identity.userUnit("0::/\n") == nil)
    }

    /// The bus's descriptor becomes readable when the process ends: its number may be another one's then.
    @Test func doesNotKnowAProcessThatHasEndedSinceItCalled() throws {
        let process = try FileDescriptor.pipe()
        let own = UInt32(getpid())
        #expect(Identity.inspect(processID: own, descriptor: process.reading).name.hasPrefix("exe:/"))
        _ = try Errno.check { write(process.writing.raw, "x", 1) }
        #expect(Identity.inspect(processID: own, descriptor: process.reading) == .unknown(processID: own))
    }

    @Test func doesNotKnowAProcessThatIsNotThere() {
        #expect(Identity.inspect(processID: 0).isSandboxed)
        #expect(Identity.inspect(processID: UInt32.max).isSandboxed)
    }
}

@Suite struct VerificationTests {
    private func identity(_ name: String, isSandboxed: Bool = false) -> Identity {
        Identity(name: name, processID: 1, isSandboxed: isSandboxed)
    }

    @Test func aSandboxVouchesForItsApplication() {
        #expect(identity("app:org.example.App", isSandboxed: true).isVerified)
        #expect(!identity("unit:something.service").isVerified)
        #expect(!identity("unknown:", isSandboxed: true).isVerified)
        #expect(!identity("exe:/usr/bin/cat", isSandboxed: true).isVerified)
    }

    @Test(arguments: [
        "/usr/bin/python3.11", "/usr/bin/python", "/bin/bash", "/usr/bin/busctl", "/usr/bin/gdbus", "/usr/lib/jvm/bin/java",
        "/usr/bin/ld.so",
        "/usr/bin/qemu-x86_64", "/usr/bin/env", "/usr/lib/erlang/beam.smp", "/usr/bin/PYTHON3", "/usr/bin/node",
        "/usr/bin/nodejs", "/usr/bin/socat", "/usr/bin/socat1", "/usr/bin/ssh", "/usr/lib/R/bin/exec/R", "/usr/bin/deno", "/usr/bin/bun",
        "/usr/bin/mono-sgen", "/usr/bin/dotnet", "/usr/lib/wine/wine64", "/usr/bin/qemu-system-x86_64", "/usr/bin/gdb", "/usr/bin/strace",
        "/usr/bin/busybox", "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "/usr/bin/vim.basic", "/usr/bin/nc.openbsd",
    ]) func anInterpreterIsNobody(path: String) { #expect(Identity.isInterpreter(path)) }

    @Test(arguments: [
        "/usr/bin/vitrinectl", "/usr/bin/shotwell", "/usr/bin/envision", "/usr/bin/perlmutter", "/usr/bin/ldap", "/usr/bin/rsync",
        "/usr/bin/boxes", "/usr/bin/view",
    ])
    func aNameThatOnlyBeginsLikeOneIsNot(path: String) { #expect(!Identity.isInterpreter(path)) }

    /// A file of the system is out of a user's reach; nothing is out of root's; a folder that all may write spoils what is in it.
    @Test func whatAUserCanChangeIsNotVerified() throws {
        #expect(Identity.isOutOfReach("/usr/bin/cat", of: 1_000))
        #expect(!Identity.isOutOfReach("/usr/bin/cat", of: 0))
        #expect(!Identity.isOutOfReach("/usr/bin/no-such-program", of: 1_000))
        #expect(!Identity.isOutOfReach("/tmp/program", of: 1_000))
        #expect(!Identity.isOutOfReach("/dev/null", of: 1_000))
    }
}

@Suite struct SandboxTests {
    @Test(arguments: ["org.example.A\u{0}evil", "", "a b", "org.example.\u{202E}x", String(repeating: "a", count: 256), "a/b"])
    func whatIsNoApplicationsNameIsNone(name: String) {
        #expect(FlatpakInstance.parse("[Application]\nname=\(name)\n") == nil)
    }

    @Test func aNameOfAnApplicationIsRead() {
        #expect(FlatpakInstance.parse("[Application]\nname=org.example.App_1-x\nruntime=r\n")?.application == "org.example.App_1-x")
    }

    /// A path inside of a sandbox is what the sandbox says: it tells nobody who that is.
    @Test func aPathInASandboxIsNobodysName() {
        #expect(!Identity(name: "exe:/usr/bin/ffmpeg", processID: 1, isSandboxed: true).isTellingName)
        #expect(Identity(name: "exe:/usr/bin/ffmpeg", processID: 1, isSandboxed: false).isTellingName)
        #expect(Identity(name: "app:org.example.A", processID: 1, isSandboxed: true).isTellingName)
    }
}
