// SPDX-License-Identifier: MIT
import Glibc

/// What a program wants to know about the terminal that a descriptor may be.
public enum Terminal {
    /// Whether a person may be looking at what is written to the descriptor.
    public static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// The number of columns at present; nil when the descriptor is no terminal, or one that does not know.
    public static func columns(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Opens `/dev/null` in place of each standard descriptor that the caller has closed, so that no other file gets its number.
    public static func openStandardDescriptors() {
        while true {
            let descriptor = open("/dev/null", O_RDWR)
            if descriptor < 0 { return }
            if descriptor > 2 {
                close(descriptor)
                return
            }
        }
    }
}
