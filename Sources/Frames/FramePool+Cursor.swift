// SPDX-License-Identifier: MIT
import Glibc
public import Loop

/// The pointer of a share in which it comes beside the pixels. Only the newest counts; a pool whose capture sets none has none.
extension FramePool {
    // MARK: - The writer

    /// Gets the memory for bitmaps, so that ``showCursor(x:y:hotspotX:hotspotY:_:isNew:)`` need not. Call it when a format was negotiated.
    ///
    /// - Throws: when there is no memory for them.
    public func prepareCursor() throws(Errno) {
        if state.withLock({ $0.cursorBitmap != nil }) { return }
        let memory = try CursorBitmap.makeMemory()
        state.withLock { $0.cursorBitmap = memory }
    }

    /// Shows the pointer at a place of the latest picture. The readers hear of it by ``wakeReaders()``.
    ///
    /// Nothing is allocated. That it is what it was already is no change.
    ///
    /// - Parameters:
    ///   - x: of the point that it points at, in pixels of the picture; like `y` it may lie outside.
    ///   - hotspotX: of the same point in the bitmap.
    ///   - isNew: whether the bitmap is another one than in the call before.
    public func showCursor(x: Int, y: Int, hotspotX: Int, hotspotY: Int, _ bitmap: CursorBitmap, isNew: Bool) {
        state.withLock { state in
            var new = state.cursor
            (new.isVisible, new.x, new.y) = (true, x, y)
            (new.hotspotX, new.hotspotY, new.size) = (hotspotX, hotspotY, bitmap.size)
            if isNew, let target = state.cursorBitmap, let source = bitmap.pixels.baseAddress {
                memcpy(target.base, source, bitmap.pixels.count)
                new.bitmapSerial += 1
            }
            state.setCursor(new)
        }
    }

    /// Shows no pointer any more: it is hidden, or where nobody may see it.
    public func hideCursor() {
        state.withLock { state in
            var hidden = Cursor()
            (hidden.serial, hidden.bitmapSerial) = (state.cursor.serial, state.cursor.bitmapSerial)
            state.setCursor(hidden)
        }
    }

    // MARK: - Readers

    /// The pointer, when it has changed since this reader took it last. The bell rings again for the next change. Call it after ``take(_:)``.
    ///
    /// It belongs to the latest picture, and may be newer than the one that was taken; then the bell rings for that.
    ///
    /// - Parameters:
    ///   - reader: one that was added with `followsCursor`.
    ///   - image: the reader's own, always the same one.
    /// - Returns: whether there was a change. Without memory for a bitmap there is none.
    public func takeCursor(_ reader: ReaderID, into image: CursorImage) -> Bool {
        let isVisible = state.withLock { state -> Bool? in
            guard let index = state.index(of: reader) else { return nil }
            state.readers[index].isRungForCursor = false
            guard state.readers[index].lastCursor != state.cursor.serial else { return nil }
            return state.cursor.isVisible
        }
        guard let isVisible, !isVisible || image.prepare() else { return false }
        return state.withLock { state in
            // It may have appeared between the two.
            guard let index = state.index(of: reader), state.cursor.isVisible == isVisible || !state.cursor.isVisible else { return false }
            state.readers[index].lastCursor = state.cursor.serial
            image.update(state.cursor, state.cursorBitmap)
            return true
        }
    }
}

extension FramePool.State {
    fileprivate mutating func setCursor(_ new: Cursor) {
        guard new != cursor else { return }
        cursor = new
        cursor.serial += 1
    }

    /// Forgets the pointer of an ended share.
    mutating func clearCursor() {
        cursorBitmap?.wipe()
        var hidden = Cursor()
        (hidden.serial, hidden.bitmapSerial) = (cursor.serial, cursor.bitmapSerial)
        setCursor(hidden)
    }
}
