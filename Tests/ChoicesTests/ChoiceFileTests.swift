// SPDX-License-Identifier: MIT
import Choices
import Glibc
import Loop
import Testing

/// A folder of the test's own, gone with it.
private final class Folder {
    let path: String

    init() throws {
        var template = Array("/tmp/vitrine-choices-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for name in ["/state/vitrine/choices", "/state/vitrine/choices.new"] { unlink(path + name) }
        for name in ["/state/vitrine", "/state", ""] { rmdir(path + name) }
    }

    var file: ChoiceFile { ChoiceFile(folder: path + "/state/vitrine") }

    func mode(of name: String) -> mode_t {
        var status = stat()
        return stat(path + name, &status) == 0 ? status.st_mode & 0o7777 : 0
    }
}

@Suite struct ChoiceFileTests {
    @Test func nothingIsRememberedAtFirst() throws {
        let folder = try Folder()
        #expect(try folder.file.choices().isEmpty)
        #expect(folder.mode(of: "/state") == 0, "looking makes no folder")
    }

    @Test func whatWasAddedIsReadAgain() throws {
        let folder = try Folder()
        let choices = [
            Choice(identity: "app:org.example.App", name: "", token: "f3b5-1"),
            Choice(identity: "exe:/opt/a b\tc\n%41/d", name: "täb\tline\nend\r%", token: "t\u{1}"),
        ]
        try folder.file.change { $0 = choices }
        #expect(try folder.file.choices() == choices)
        try folder.file.change { $0.removeFirst() }
        #expect(try folder.file.choices() == [choices[1]])
    }

    @Test func onlyItsUserCanReadIt() throws {
        let folder = try Folder()
        let mask = umask(0)
        defer { umask(mask) }
        try folder.file.change { $0.append(Choice(identity: "app:a", name: "", token: "t")) }
        #expect(folder.mode(of: "/state/vitrine") == 0o700)
        #expect(folder.mode(of: "/state/vitrine/choices") == 0o600)
        #expect(folder.mode(of: "/state/vitrine/choices.new") == 0)
    }

    /// Whoever has the file open reads all of the old one: nothing is written over it.
    @Test func theFileIsReplacedAsAWhole() throws {
        let folder = try Folder()
        try folder.file.change { $0.append(Choice(identity: "app:a", name: "", token: "before")) }
        let path = folder.path + "/state/vitrine/choices"
        let old = FileDescriptor(owning: try Errno.check { open(path, O_RDONLY | O_CLOEXEC) })
        let before = try Files.contents(of: path)
        try folder.file.change { $0 = [Choice(identity: "app:a", name: "", token: "x"), Choice(identity: "app:b", name: "", token: "y")] }
        #expect(try Files.contents(of: "/proc/self/fd/\(old.raw)") == before)
        #expect(try Files.contents(of: path) != before)
    }

    @Test func aFileWithoutChoicesGoes() throws {
        let folder = try Folder()
        try folder.file.change { $0.append(Choice(identity: "app:a", name: "", token: "t")) }
        try folder.file.change { $0 = [] }
        #expect(folder.mode(of: "/state/vitrine") == 0, "and its folder")
        try folder.file.change { $0 = [] }
        #expect(folder.mode(of: "/state/vitrine") == 0, "forgetting nothing makes none")
        #expect(try folder.file.choices().isEmpty)
    }

    @Test func damagedLinesArePassedOver() throws {
        let folder = try Folder()
        try folder.file.change { $0.append(Choice(identity: "app:a", name: "", token: "t")) }
        let path = folder.path + "/state/vitrine/choices"
        let file = FileDescriptor(owning: try Errno.check { open(path, O_WRONLY | O_APPEND | O_CLOEXEC) })
        let noise = Array("one\n\t\t\nno\ttoken\t\n%zz\tname\ttoken\n".utf8) + [0xFF, 0xFE, 10] + Array("app:b\t\t\u{0}\n".utf8)
        #expect(noise.withUnsafeBytes { write(file.raw, $0.baseAddress, $0.count) } == noise.count)
        let choices = try folder.file.choices()
        #expect(choices.map(\.identity) == ["app:a", "%zz"])
    }

    @Test func theOldestGoWhenThereAreTooMany() throws {
        let folder = try Folder()
        try folder.file.change { choices in
            for number in 0..<(ChoiceFile.greatestCount + 5) { choices.append(Choice(identity: "app:\(number)", name: "", token: "t")) }
        }
        let kept = try folder.file.choices()
        #expect(kept.count == ChoiceFile.greatestCount)
        #expect(kept.first?.identity == "app:5")
    }

    @Test func aLeftoverOfACrashIsNoHindrance() throws {
        let folder = try Folder()
        try folder.file.change { $0.append(Choice(identity: "app:a", name: "", token: "t")) }
        let leftover = open(folder.path + "/state/vitrine/choices.new", O_WRONLY | O_CREAT, 0o644)
        close(leftover)
        try folder.file.change { $0.append(Choice(identity: "app:b", name: "", token: "t")) }
        #expect(try folder.file.choices().count == 2)
        #expect(folder.mode(of: "/state/vitrine/choices") == 0o600)
    }

    /// Neither the folder nor the file is what stands somewhere else.
    @Test(arguments: ["/state/vitrine", "/state/vitrine/choices"]) func aLinkIsNotFollowed(name: String) throws {
        let folder = try Folder()
        try folder.file.change { $0.append(Choice(identity: "app:a", name: "", token: "t")) }
        let elsewhere = folder.path + "/elsewhere"
        try Errno.check { rename(folder.path + name, elsewhere) }
        try Errno.check { symlink(elsewhere, folder.path + name) }
        defer {
            for path in [folder.path + name, elsewhere + "/choices", elsewhere] { unlink(path) }
            rmdir(elsewhere)
        }
        #expect(throws: Errno.self) { try folder.file.choices() }
        #expect(throws: Errno.self) { try folder.file.change { $0.append(Choice(identity: "app:b", name: "", token: "t")) } }
    }

    @Test func aFolderThatOthersMayLookIntoIsClosedToThem() throws {
        let folder = try Folder()
        try folder.file.change { $0.append(Choice(identity: "app:a", name: "", token: "t")) }
        try Errno.check { chmod(folder.path + "/state/vitrine", 0o777) }
        #expect(try folder.file.choices().count == 1)
        #expect(folder.mode(of: "/state/vitrine") == 0o700)
    }

    @Test(.enabled(if: geteuid() == 0)) func aFolderOfAnotherUserIsAnError() throws {
        let folder = try Folder()
        try folder.file.change { $0.append(Choice(identity: "app:a", name: "", token: "t")) }
        for name in ["/state/vitrine/choices", "/state/vitrine"] {
            try Errno.check { chown(folder.path + name, 1_000, 1_000) }
            #expect(throws: Errno.self) { try folder.file.choices() }
            try Errno.check { chown(folder.path + name, 0, 0) }
        }
        #expect(try folder.file.choices().count == 1)
    }

    @Test func aFolderThatCannotBeMadeIsAnError() throws {
        let file = ChoiceFile(folder: "/proc/vitrine")
        #expect(throws: Errno.self) { try file.change { $0.append(Choice(identity: "app:a", name: "", token: "t")) } }
    }
}
