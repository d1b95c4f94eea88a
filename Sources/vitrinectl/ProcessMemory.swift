// SPDX-License-Identifier: MIT

/// What a process has resident, in bytes, by what it is used for.
///
/// Spec: [proc_pid_smaps(5)](https://man7.org/linux/man-pages/man5/proc_pid_smaps.5.html).
struct ProcessMemory: Equatable {
    /// Of one kind of mapping.
    private enum Kind {
        /// Programs and libraries: files.
        case file
        /// Anonymous pages that are left out of core dumps, as the agent marks what pictures lie in.
        case pixels
        /// Other anonymous pages without a name. The agent's allocator takes each block of 128 kB or more from the system by itself.
        case anonymous
        /// Sealed memory of the agent's, which readers map: see `frames`.
        case frames
        /// Memory that other processes write, too.
        case shared
        /// The heap of small blocks, the stack.
        case other
    }

    /// Anonymous mappings that have less resident are thread stacks and small heaps.
    private static let smallBlock = 512 << 10

    /// How the names begin of what looks like a file and is memory, or a device's.
    private static let sharedMemory = ["/memfd:", "/dev/", "/dmabuf:", "/SYSV", "anon_inode:"]

    private(set) var files = 0
    private(set) var pixels = 0
    /// Of the allocator's large blocks: nearly all of them are libvpx's.
    private(set) var blocks = 0
    private(set) var frames = 0
    private(set) var shared = 0
    private(set) var rest = 0

    var resident: Int { files + pixels + blocks + frames + shared + rest }

    /// Reads the text of `/proc/PID/smaps`.
    init(smaps text: some StringProtocol) {
        var (header, rss): (Substring?, Int) = (nil, 0)
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 5)
            guard let first = words.first else { continue }
            switch first {
            case "Rss:": rss = (words.count > 1 ? Int(words[1]) ?? 0 : 0) * 1_024
            case "VmFlags:":
                if let header {
                    add(rss, ProcessMemory.kind(of: header, isDumped: !words.dropFirst().joined(separator: " ").contains("dd")))
                }
                (header, rss) = (nil, 0)
            default: if !first.hasSuffix(":") { header = Substring(line) }
            }
        }
    }

    private mutating func add(_ rss: Int, _ kind: Kind) {
        switch kind {
        case .file: files += rss
        case .pixels: pixels += rss
        case .anonymous: if rss < ProcessMemory.smallBlock { rest += rss } else { blocks += rss }
        case .frames: frames += rss
        case .shared: shared += rss
        case .other: rest += rss
        }
    }

    /// - Parameter header: `7f0000000000-7f0000001000 rw-p 00000000 00:01 1 /path`.
    private static func kind(of header: Substring, isDumped: Bool) -> Kind {
        let words = header.split(separator: " ", maxSplits: 5)
        guard words.count > 1 else { return .other }
        let name = words.count > 5 ? words[5].drop { $0 == " " } : ""
        if name.hasPrefix("/memfd:vitrine-") { return .frames }
        if sharedMemory.contains(where: name.hasPrefix) { return .shared }
        if name.hasPrefix("/") { return .file }
        guard name.isEmpty || name.hasPrefix("[anon:") else { return .other }
        return isDumped ? .anonymous : .pixels
    }
}
