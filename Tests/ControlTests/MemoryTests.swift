// SPDX-License-Identifier: MIT
import Testing

@testable import vitrinectl

/// Mappings as the kernel lists them, with what is resident of each, kB.
private func smaps(_ mappings: [(header: String, resident: Int, flags: String)]) -> String {
    mappings.map { "\($0.header)\nSize: 999999 kB\nRss: \($0.resident) kB\nPss: 7 kB\nVmFlags: \($0.flags)\n" }.joined()
}

@Suite struct MemoryTests {
    private let anonymous = "7f0000000000-7f0000100000 rw-p 00000000 00:00 0"
    private let plain = "rd wr mr mw me sd"
    private let undumped = "rd wr mr mw me dd nr"

    private func agent(pixels: Int, blocks: Int) -> ProcessMemory {
        ProcessMemory(
            smaps: smaps([
                (
                    "55a000000000-55a000300000 r-xp 00000000 fe:00 42                         /usr/bin/vitrine-agent", 3_000,
                    "rd ex mr mw me"
                ),
                ("7f0000000000-7f0000100000 rw-p 00000000 fe:00 43   /usr/lib/libvpx.so.7 (deleted)", 100, plain),
                ("55a001000000-55a001300000 rw-p 00000000 00:00 0                          [heap]", 900, plain),
                (anonymous, 60, plain), (anonymous, blocks, plain), (anonymous, pixels, undumped),
                ("7f1000000000-7f1000100000 rw-s 00000000 00:01 9   /memfd:pipewire-memfd:flags=0x0000000f (deleted)", 8_100, plain),
                ("7f1000000000-7f1000100000 rw-s 00000000 00:01 9   /memfd:vitrine-frames (deleted)", 6_000, undumped),
                ("7ffc00000000-7ffc00100000 rw-p 00000000 00:00 0   [stack]", 40, plain),
                ("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]", 0, "ex"),
            ]))
    }

    @Test func mappingsAreToldApart() {
        let memory = agent(pixels: 6_200, blocks: 74_000)
        #expect(memory.files == 3_100 << 10)
        #expect(memory.pixels == 6_200 << 10)
        #expect(memory.blocks == 74_000 << 10)
        #expect(memory.frames == 6_000 << 10)
        #expect(memory.shared == 8_100 << 10)
        #expect(memory.rest == 1_000 << 10)
    }

    @Test func thePartsAreTheWhole() {
        for (pixels, blocks, footprint) in [(6_200, 74_000, 3_100 << 10), (0, 0, 1 << 30), (3_200, 0, 3_100 << 10)] {
            let memory = agent(pixels: pixels, blocks: blocks)
            let report = MemoryReport(process: 1, footprint: footprint, memory)
            #expect(report.resident == memory.resident)
            #expect(report.parts.allSatisfy { $0.bytes >= 0 })
        }
    }

    @Test func whatIsDrawnOnBelongsToTheEncoders() {
        let parts = { (pixels: Int, blocks: Int) in
            let report = MemoryReport(process: 1, footprint: 3_100 << 10, agent(pixels: pixels, blocks: blocks))
            return Dictionary(uniqueKeysWithValues: report.parts.map { ($0.name, $0.bytes >> 10) })
        }
        let encoding = parts(6_200, 74_000)
        #expect(encoding["pool"] == 3_100 && encoding["encoders"] == 77_100 && encoding["rest"] == 1_000)
        let capturing = parts(3_190, 0)
        #expect(capturing["pool"] == 3_100 && capturing["encoders"] == 0 && capturing["rest"] == 1_090)
    }

    @Test func whatIsNoListOfMappingsIsNothing() {
        #expect(ProcessMemory(smaps: "").resident == 0)
        #expect(ProcessMemory(smaps: "Rss:\nVmFlags:\nRss: 12\n\n  x \nVmFlags: dd\n").resident == 12 << 10)
    }
}
