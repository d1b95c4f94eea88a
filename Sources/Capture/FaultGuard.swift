// SPDX-License-Identifier: MIT
import Glibc

/// Lets the capture thread read memory that another process may cut short at any moment.
///
/// A mapped file that its owner truncates raises SIGBUS in whoever reads beyond the new end, and a check of the size before each copy cannot
/// rule that out. Seals would, but wlroots' portal shares unsealed memory. So the read itself is guarded: while a range is being read, a fault in
/// it puts zeroes there and the copy goes on; then the picture is thrown away. The path without a fault costs two stores.
enum FaultGuard {
    /// The guarded range's first address, its end, and whether there was a fault.
    ///
    /// SAFETY: written by the capture thread alone, and by the handler, which interrupts that thread when the fault lies in the range.
    nonisolated(unsafe) fileprivate static let range = {
        let words = UnsafeMutablePointer<UInt>.allocate(capacity: 3)
        words.initialize(repeating: 0, count: 3)
        return words
    }()

    /// What handled SIGBUS before.
    ///
    /// SAFETY: written once, before the handler can run.
    nonisolated(unsafe) fileprivate static let previous = {
        let action = UnsafeMutablePointer<sigaction>.allocate(capacity: 1)
        action.initialize(to: sigaction())
        return action
    }()

    /// Installs the handler; once a process.
    private static let isInstalled: Bool = {
        range[2] = 0
        var action = sigaction()
        action.__sigaction_handler.sa_sigaction = onFault
        action.sa_flags = SA_SIGINFO | SA_ONSTACK
        sigemptyset(&action.sa_mask)
        return sigaction(SIGBUS, &action, previous) == 0
    }()

    /// Installs what ``reading(_:_:)`` needs.
    static func install() { _ = isInstalled }

    /// Runs `body`, which reads the bytes.
    ///
    /// Thread: capture; not inside itself.
    ///
    /// - Returns: nil when some of the bytes were not there. The whole range is zeroes from then on.
    static func reading<Result>(_ bytes: UnsafeRawBufferPointer, _ body: () -> Result) -> Result? {
        let start = UInt(bitPattern: bytes.baseAddress)
        range[2] = 0
        range[1] = start + UInt(bytes.count)
        range[0] = start
        let result = body()
        (range[0], range[1]) = (0, 0)
        return range[2] == 0 ? result : nil
    }
}

/// Runs in the middle of a copy: only system calls and plain stores.
private func onFault(_ signal: Int32, _ info: UnsafeMutablePointer<siginfo_t>?, _ context: UnsafeMutableRawPointer?) {
    let range = FaultGuard.range
    let address = UInt(bitPattern: info?.pointee._sifields._sigfault.si_addr)
    let (start, end) = (range[0] & ~4_095, (range[1] + 4_095) & ~4_095)
    if range[0] != 0, address >= start, address < end,
        let base = UnsafeMutableRawPointer(bitPattern: start),
        mmap(base, Int(end - start), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base
    {
        range[2] = 1
        return
    }
    // Not ours: the instruction is run again, under whatever was there before.
    sigaction(SIGBUS, FaultGuard.previous, nil)
}
