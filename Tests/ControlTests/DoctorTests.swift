// SPDX-License-Identifier: MIT
import Testing

@testable import vitrinectl

@Suite struct DoctorTests {
    @Test(
        arguments: [
            ([:], nil),
            (["XDG_RUNTIME_DIR": "/run/user/7"], "/run/user/7/pipewire-0"),
            (["XDG_RUNTIME_DIR": "/run/user/7", "PIPEWIRE_RUNTIME_DIR": "/pw"], "/pw/pipewire-0"),
            (["XDG_RUNTIME_DIR": "/run/user/7", "PIPEWIRE_REMOTE": "other"], "/run/user/7/other"),
            (["PIPEWIRE_REMOTE": "/abs/socket"], "/abs/socket"),
            (["XDG_RUNTIME_DIR": ""], nil),
        ] as [([String: String], String?)])
    func pipeWireIsLookedForWhereItsClientsDo(variables: [String: String], path: String?) {
        #expect(PipeWireDiagnosis.socketPath { variables[$0] } == path)
    }

    @Test(arguments: [
        ("GNOME", "xdg-desktop-portal-gnome"), ("ubuntu:GNOME", "xdg-desktop-portal-gnome"), ("KDE", "xdg-desktop-portal-kde"),
        ("sway", "xdg-desktop-portal-wlr"), ("Budgie:Hyprland", "xdg-desktop-portal-hyprland"),
    ])
    func theBackendFitsTheDesktop(desktop: String, package: String) { #expect(PortalDiagnosis.backendPackage(desktop) == package) }

    @Test func anUnknownDesktopGetsAGeneralRemedy() {
        #expect(PortalDiagnosis.backendPackage(nil).contains("your desktop"))
        #expect(PortalDiagnosis.backendPackage("Other").contains("your desktop"))
    }

    private static let gnome = PortalBackend(
        name: "gnome",
        text: "[portal]\nInterfaces=org.freedesktop.impl.portal.Access;org.freedesktop.impl.portal.ScreenCast;\nUseIn=gnome\n")
    private static let wlr = PortalBackend(name: "wlr", text: "Interfaces=org.freedesktop.impl.portal.ScreenCast\nUseIn=sway;River;\n")

    @Test func backendsSayWhatTheyAreFor() throws {
        let (gnome, wlr) = (try #require(Self.gnome), try #require(Self.wlr))
        #expect(gnome.words == "gnome" && wlr.words == "wlr (for sway, river)")
        #expect(gnome.suits("ubuntu:GNOME") && wlr.suits("River") && !wlr.suits("GNOME") && !gnome.suits(""))
        #expect(PortalBackend(name: "gtk", text: "Interfaces=org.freedesktop.impl.portal.FileChooser\nUseIn=gnome\n") == nil)
        #expect(PortalBackend(name: "none", text: "=\nInterfaces\n") == nil)
    }

    @Test func withoutScreenCastTheCauseIsTold() throws {
        let installed = [try #require(Self.gnome), try #require(Self.wlr)]
        func absence(_ desktop: String?, _ installed: [PortalBackend], running: [String] = []) -> Finding {
            PortalDiagnosis.absence("screen sharing", "it cannot", desktop, installed, running: running)
        }
        let none = absence("sway", [])
        #expect(
            none.text.hasSuffix("no backend that shares screens is installed") && none.remedy?.contains("xdg-desktop-portal-wlr") == true)
        let other = absence("KDE", installed)
        #expect(other.text.hasSuffix("no installed backend is for XDG_CURRENT_DESKTOP=KDE, there are: gnome, wlr (for sway, river)"))
        #expect(absence(nil, installed).text.contains("XDG_CURRENT_DESKTOP is not set"))
        let dead = absence("sway", installed, running: ["a.b"])
        #expect(dead.text.contains("its backend wlr was not there") && dead.remedy?.contains("restart xdg-desktop-portal") == true)
    }

    @Test func bitsHaveNames() {
        #expect(PortalDiagnosis.names(5, ["monitors", "windows", "virtual monitors"]) == ["monitors", "virtual monitors"])
        #expect(PortalDiagnosis.names(0x8000_0000, ["a"]) == [])
    }

    @Test func environmentsAreReadFromTheirBytes() {
        let bytes = Array("A=1\0B=x=y\0noise\0C=\0".utf8)
        #expect(PortalDiagnosis.readVariables(bytes) == ["A": "1", "B": "x=y", "C": ""])
    }

    @Test func aFindingIsALineAndItsRemedy() {
        let finding = Finding("portal", .missing, "it is not there", "install it")
        #expect(finding.lines(Output(-1)) == ["missing  portal: it is not there", "         -> install it"])
        #expect(finding.json.text == #"{"check":"portal","result":"missing","text":"it is not there","remedy":"install it"}"#)
    }
}
