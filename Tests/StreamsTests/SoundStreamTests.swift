// SPDX-License-Identifier: MIT
import Loop
import Sound
import Streams
import Testing

extension LiveTests {
    @Suite struct SoundStreamTests {
        private func packet(_ byte: UInt8, count: Int = 100, period: UInt64 = 1) -> SoundPacket {
            SoundPacket(bytes: [UInt8](repeating: byte, count: count), time: .now, period: period)
        }

        private func contains(_ bytes: [UInt8], _ packet: SoundPacket) -> Bool {
            bytes.indices.contains { bytes[$0...].starts(with: packet.bytes) }
        }

        @Test func soundGoesToStreamsThatHaveBegunAndHaveAPlaceForIt() throws {
            let rig = try Rig(), gate = SoundGate()
            gate.open(for: 1)
            rig.track.hasSound = true
            let webm = try rig.read(), ivf = try rig.read(StreamOptions(format: .ivf))
            #expect(rig.track.wantsSound)
            let inlet = try #require(rig.track.makeSoundInlet(gate))
            let early = packet(0xE1)
            inlet(early)
            rig.idle(.milliseconds(200))
            #expect(webm.bytes.isEmpty)
            rig.publish(TestPicture(160, 90))
            rig.wait("both streams have begun") { webm.stream?.size != nil && ivf.stream?.size != nil }
            let late = packet(0xE2)
            inlet(late)
            rig.wait("sound has come") { contains(webm.bytes, late) }
            #expect(!contains(webm.bytes, early))
            #expect(!contains(ivf.bytes, late))
        }

        @Test func whatTheGateDoesNotLetPassIsNotWritten() throws {
            let rig = try Rig(), gate = SoundGate()
            rig.track.hasSound = true
            let reader = try rig.read()
            let inlet = try #require(rig.track.makeSoundInlet(gate))
            rig.publish(TestPicture(160, 90))
            rig.wait("the stream has begun") { reader.stream?.size != nil }
            let muted = packet(0xE3, period: 1), stale = packet(0xE4, period: 1), present = packet(0xE5, period: 2)
            inlet(muted)
            rig.idle(.milliseconds(100))
            gate.open(for: 2)
            inlet(stale)
            inlet(present)
            rig.wait("sound has come") { contains(reader.bytes, present) }
            #expect(!contains(reader.bytes, muted))
            #expect(!contains(reader.bytes, stale))
        }

        @Test func aReaderThatDoesNotReadLosesWholePackets() throws {
            let rig = try Rig(), gate = SoundGate()
            gate.open(for: 1)
            rig.track.hasSound = true
            let reader = try rig.read()
            let inlet = try #require(rig.track.makeSoundInlet(gate))
            rig.publish(TestPicture(160, 90))
            rig.wait("the stream has begun") { reader.stream?.size != nil }
            let slow = try rig.read(reads: false)
            rig.wait("the other stream has begun") { slow.stream?.size != nil }
            for _ in 0..<20 {
                let before = reader.bytes.count
                for _ in 0..<50 { inlet(packet(0xE6, count: 10_000)) }
                rig.wait("the one that reads has all of it") { reader.bytes.count >= before + 500_000 }
            }
            #expect((slow.stream?.statistics.queuedBytes ?? .max) <= 4 << 20)
        }

        @Test func aStreamThatBeganWithoutSoundWantsNone() throws {
            let rig = try Rig()
            let early = try rig.read()
            rig.publish(TestPicture(160, 90))
            rig.wait("the stream has begun") { early.stream?.size != nil }
            rig.track.hasSound = true
            #expect(!rig.track.wantsSound)
            let late = try rig.read()
            #expect(rig.track.wantsSound)
            rig.wait("the other stream has begun") { late.stream?.size != nil }
            #expect(rig.track.wantsSound)
            late.stream?.finish()
            rig.wait("the other stream has ended") { late.stream?.hasEnded ?? true }
            #expect(!rig.track.wantsSound)
        }

        @Test func aPausedReaderWantsNone() throws {
            let rig = try Rig()
            var asked = 0
            rig.track.onSoundWanted = { asked += 1 }
            let reader = try rig.read()
            #expect(rig.track.wantsSound && asked == 1)
            reader.stream?.isPaused = true
            #expect(!rig.track.wantsSound && asked == 2)
        }
    }
}
