// SPDX-License-Identifier: MIT
public import DBus
import Glibc
import Loop

/// A bus of a test's own: a `dbus-daemon` with a configuration that knows nothing of this machine.
///
/// It ends with the object, and so does its directory.
public final class PrivateBus {
    /// Why there is no bus.
    public struct Failure: Error, CustomStringConvertible {
        /// In words.
        public let description: String
    }

    /// Where it is, as D-Bus writes it.
    public let addressText: String
    /// The same.
    public var address: BusAddress { .at(addressText) }
    private let directory: String
    private var process: pid_t?

    /// Starts a bus, and waits until it listens.
    ///
    /// - Parameter services: names that the bus can start, each with the command that is run. The bus takes whoever asks for the
    ///   name then: `/bin/sleep 60` lets the test itself be the service.
    public init(services: [BusName: String] = [:]) throws(Failure) {
        var template = Array("/tmp/vitrine-bus-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { throw Failure(description: "no temporary directory") }
        directory = String(cString: made)
        try Self.write(Self.configuration(directory), to: "\(directory)/bus.conf")
        for (name, command) in services {
            try Self.write("[D-BUS Service]\nName=\(name)\nExec=\(command)\n", to: "\(directory)/\(name).service")
        }
        let reading: FileDescriptor
        let started: pid_t
        (started, reading) = try Self.start(configuration: "\(directory)/bus.conf")
        addressText = try Self.address(from: reading, of: started)
        process = started
    }

    /// Ends the bus under its clients' feet.
    public func stop() {
        guard let process else { return }
        kill(process, SIGTERM)
        waitpid(process, nil, 0)
        self.process = nil
    }

    deinit {
        stop()
        guard let stream = opendir(directory) else { return }
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            if name != "." && name != ".." { unlink("\(directory)/\(name)") }
        }
        closedir(stream)
        rmdir(directory)
    }

    private static func configuration(_ directory: String) -> String {
        """
        <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
         "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
        <busconfig>
          <type>session</type>
          <listen>unix:path=\(directory)/bus</listen>
          <servicedir>\(directory)</servicedir>
          <policy context="default">
            <allow send_destination="*" eavesdrop="true"/>
            <allow eavesdrop="true"/>
            <allow own="*"/>
          </policy>
          <!-- As session buses have it. -->
          <limit name="max_replies_per_connection">50000</limit>
        </busconfig>
        """
    }

    private static func write(_ text: String, to path: String) throws(Failure) {
        guard let file = fopen(path, "w") else { throw Failure(description: "cannot write \(path)") }
        defer { fclose(file) }
        guard fputs(text, file) >= 0 else { throw Failure(description: "cannot write \(path)") }
    }

    /// - Returns: the daemon, which alone holds the writing end by now, and the end from which its address can be read.
    private static func start(configuration: String) throws(Failure) -> (pid_t, FileDescriptor) {
        // The bus says on its descriptor 3 that it listens, and where.
        let arguments = ["dbus-daemon", "--nofork", "--nopidfile", "--print-address=3", "--config-file=\(configuration)"]
        do {
            let daemon = try Child(arguments, output: 3)
            return (daemon.id, daemon.output)
        } catch {
            throw Failure(description: "cannot start dbus-daemon: \(error)")
        }
    }

    /// Reads the line that says where the bus is, or the end that a daemon which fails leaves.
    private static func address(from reading: FileDescriptor, of process: pid_t) throws(Failure) -> String {
        var line: [UInt8] = []
        var byte = UInt8.zero
        while read(reading.raw, &byte, 1) == 1, byte != UInt8(ascii: "\n") { line.append(byte) }
        guard !line.isEmpty else {
            waitpid(process, nil, 0)
            throw Failure(description: "dbus-daemon did not start")
        }
        return String(decoding: line, as: UTF8.self)
    }
}
