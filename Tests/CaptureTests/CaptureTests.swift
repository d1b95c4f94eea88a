// SPDX-License-Identifier: MIT
import CPipeWire
import Frames
import Loop
import Testing

@testable import Capture

extension AllCaptureTests {
    @Suite struct FramesArrive {
        @Test(arguments: PixelFormat.allCases)
        func everyFormat(_ format: PixelFormat) throws {
            let stage = try Stage()
            var options = ProducerOptions()
            options.formats = [format.spaFormat.rawValue]
            options.filler = 0xff
            let producer = try stage.makeProducer(options)
            try stage.connect(producer)
            #expect(try stage.show(producer, ProducerFrame(100)).shows(100))
            #expect(try stage.show(producer, ProducerFrame(200)).shows(200))
            try stage.wait("its events") { stage.events.count >= 2 }
            let described = StreamFormat(
                size: options.size, sourceSize: options.size, pixelFormat: format, strideBytes: 256, memory: .sharedMemory)
            #expect(stage.events == [.formatChanged(id: 1, described), .firstFrame(id: 1)])
            try stage.close()
        }
    }
}

/// One after the other: they share two processors and a daemon.
@Suite(.serialized) struct AllCaptureTests {}
