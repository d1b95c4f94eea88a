// SPDX-License-Identifier: MIT
import Loop

final class CaptureLoop {
    init(_ loop: EventLoop) {}
    func handle(_ command: CaptureThread.Command) {}
}
