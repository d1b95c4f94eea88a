// SPDX-License-Identifier: MIT
import DBus
import Loop

/// The agent's resident memory by part, of one moment: from its tracks' counters, and from what the kernel counts of its process.
struct MemoryReport {
    /// A part; all of them together are what is resident.
    struct Part: Equatable {
        let name: String
        let bytes: Int
        let words: String
    }

    /// Of pictures beside the pool's less than this is the capture's own.
    private static let smallPictures = 512 << 10

    let process: UInt32
    let parts: [Part]

    /// - Returns: nil when the agent does not run.
    /// - Throws: also when its process cannot be looked at.
    static func taken(from agent: Agent) throws(Failure) -> MemoryReport? {
        guard let objects = try agent.objects(), let process = try agent.process() else { return nil }
        let tracks = ListVerb.tracks(in: objects)
        let footprint = tracks.reduce(0) { $0 + Int(clamping: $1.statistics["footprint"] ?? 0) }
        let path = "/proc/\(process)/smaps"
        do throws(Errno) {
            let text = String(decoding: try Files.contents(of: path, limit: 1 << 24), as: UTF8.self)
            return MemoryReport(process: process, footprint: footprint, ProcessMemory(smaps: text))
        } catch {
            throw .ended(.failed, "cannot read \(path): \(error). Ask as the user whose agent it is, outside of sandboxes")
        }
    }

    /// - Parameter footprint: bytes of all tracks' frame pools, as the agent counts them.
    init(process: UInt32, footprint: Int, _ memory: ProcessMemory) {
        self.process = process
        let pool = min(footprint, memory.pixels)
        let others = memory.pixels - pool
        let isSmall = others < MemoryReport.smallPictures
        parts = [
            Part(name: "pool", bytes: pool, words: "frames, from the source to the encoders"),
            Part(name: "encoders", bytes: memory.blocks + (isSmall ? 0 : others), words: "libvpx, and the pictures it works on"),
            Part(name: "frames", bytes: memory.frames, words: "what readers of frames map"),
            Part(name: "libraries", bytes: memory.files, words: "and programs: files, most of it shared with others that use them"),
            Part(name: "rest", bytes: memory.rest + (isSmall ? others : 0), words: "everything else"),
            Part(name: "buffers", bytes: memory.shared, words: "PipeWire's: they belong to the compositor, and are no cost of the agent's"),
        ]
    }

    var resident: Int { parts.reduce(0) { $0 + $1.bytes } }

    var lines: [String] {
        var table = TextTable(headings: ["PART", "RESIDENT"], numeric: [1])
        for part in parts { table.add([part.name, byteCount(UInt64(part.bytes)), part.words]) }
        table.add(["all", byteCount(UInt64(resident)), "of process \(process)"])
        return table.lines
    }

    var json: JSON {
        .members([
            "pid": .unsigned(UInt64(process)),
            "parts": .object(parts.map { JSON.Member(name: $0.name, value: .unsigned(UInt64($0.bytes))) }),
            "resident": .unsigned(UInt64(resident)),
        ])
    }
}
