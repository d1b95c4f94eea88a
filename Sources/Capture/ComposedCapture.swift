// SPDX-License-Identifier: MIT
import Composition
import Frames
import Loop

/// One composed picture: its sources' streams, and what has been told of it.
///
/// Thread: capture.
final class ComposedCapture {
    let request: CompositionRequest
    let composer: Composer
    private var announced: (size: PixelSize, whole: PixelSize)?
    private var hasAnnouncedFrame = false

    /// - Parameters:
    ///   - bell: rung when ``compose()`` is to be called although nothing came.
    ///   - predecessor: writes into the same pool, until this one does.
    init(_ request: CompositionRequest, bell: FileDescriptor?, replacing predecessor: (any PoolWriter)?) {
        self.request = request
        composer = Composer(
            into: request.pool, zip(request.sources, request.expectedSizes).map { (pool: $0.0.pool, expected: $0.1) }, view: request.view,
            layout: request.layout, hasCursor: request.sources.first?.hasCursor ?? false, bell: bell, replacing: predecessor)
    }

    /// Composes what has come. Call it after each iteration of PipeWire's loop, when the streams have announced what they have.
    func compose() {
        composer.compose()
        announce()
    }

    func setView(_ view: CaptureView) {
        composer.setView(view)
        announce()
    }

    func setLayout(_ layout: Layout) {
        composer.setLayout(layout)
        announce()
    }

    /// What was to replace it is gone.
    func goOn() {
        composer.goOn()
        announce()
    }

    /// Takes out the source of a request, if it is one of these.
    func remove(_ id: UInt64) {
        guard let source = request.sources.first(where: { $0.id == id }) else { return }
        composer.remove(source.pool)
        announce()
    }

    private func announce() {
        if let size = composer.size, let whole = composer.wholeSize, announced?.size != size || announced?.whole != whole {
            announced = (size, whole)
            request.events.send(.composed(id: request.id, size: size, whole: whole))
        }
        if composer.hasPicture && !hasAnnouncedFrame {
            hasAnnouncedFrame = true
            request.events.send(.firstFrame(id: request.id))
        }
    }
}
