// SPDX-License-Identifier: MIT
import Frames
import Testing

@testable import Encoding

@Suite struct ThreadsTests {
    private let hd = PixelSize(width: 1280, height: 720)
    private let fullHD = PixelSize(width: 1920, height: 1080)
    private let uhd = PixelSize(width: 3840, height: 2160)

    /// Two that wait for each other by spinning need cores that nobody else wants.
    @Test func aSecondThreadSpinsOnlyWhereThereAreCoresToSpare() {
        #expect(VPXEncoder.threads(.vp8, size: uhd, cores: 2) == 1)
        #expect(VPXEncoder.threads(.vp8, size: uhd, cores: 4) == 2)
        #expect(VPXEncoder.threads(.vp8, size: fullHD, cores: 64) == 1)
    }

    @Test func aSecondThreadThatSleepsWorksWhereItIsWorthIt() {
        #expect(VPXEncoder.threads(.vp9, size: hd, cores: 64) == 1)
        #expect(VPXEncoder.threads(.vp9, size: fullHD, cores: 1) == 2)
    }
}
