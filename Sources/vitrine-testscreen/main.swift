// SPDX-License-Identifier: MIT
import Contract
import DBus
import Glibc
import Loop

/// The program: connects everything, runs until a signal or until the bus or PipeWire goes.
private func run(_ options: Options) -> Int32 {
    if options.isVerbose { Log.level = .debug }
    let log = Log("testscreen")
    signal(SIGPIPE, SIG_IGN)
    var status: Int32 = 0
    let loop: EventLoop
    do throws(Errno) {
        loop = try EventLoop()
        try loop.onSignals([SIGTERM, SIGINT]) { _ in loop.stop() }
    } catch {
        log.error("no event loop: \(error)")
        return 1
    }
    func fail(_ message: String) {
        log.error(message)
        status = 1
        loop.stop()
    }

    let pipeWire: PipeWire
    do throws(Errno) {
        pipeWire = try PipeWire(on: loop)
    } catch {
        log.error("cannot connect to PipeWire: \(error). Start pipewire and a session manager, with this XDG_RUNTIME_DIR.")
        return 1
    }
    pipeWire.onLost = { fail("PipeWire is gone. Start it and this program again.") }

    let screen = Screen(pipeWire, on: loop, settings: options.settings)
    var connection: Connection?
    do throws(DBusError) {
        connection = try Connection.open(.session, on: loop)
    } catch {
        guard !options.isBackend else {
            log.error("cannot connect to the session bus: \(error). Run within dbus-run-session, or with --no-portal.")
            return 1
        }
        log.info("no session bus (\(error)): there is nothing to control this with")
    }
    let control = connection.map { connection in
        let server = ObjectServer(connection)
        let backend = options.isBackend ? Backend(connection, server, screen) : nil
        connection.onDisconnect = { fail("The session bus is gone.") }
        connection.onNameLost = { fail("The name \($0) went to somebody else.") }
        func own(_ names: ArraySlice<BusName>) {
            guard let name = names.first else { return log.info("ready: \(screen.settings.size), \(screen.settings.workload)") }
            connection.requestName(name) { result in
                if case .failure(let error) = result {
                    return fail("Cannot have the name \(name): \(error). Is another test screen running?")
                }
                own(names.dropFirst())
            }
        }
        own(options.isBackend ? [Control.busName, options.backendName] : [Control.busName])
        return Control(server, screen, pipeWire, backend)
    }
    if !options.isBackend {
        _ = screen.open { cast in for source in cast.sources { log.info("stream \(source.index) is node \(source.node ?? 0)") } }
    }

    withExtendedLifetime(control) { loop.run() }
    screen.shutDown()
    pipeWire.close()
    connection?.flush()
    connection?.close()
    return status
}

/// Writes all of a text.
private func write(_ text: String, to descriptor: Int32) {
    var bytes = Array(text.utf8)
    bytes.withUnsafeMutableBytes { buffer in _ = write(descriptor, buffer.baseAddress, buffer.count) }
}

/// Writes the pictures that a source with these settings would show first.
private func writePictures(_ count: UInt32, _ settings: Settings) -> Int32 {
    let painter = Painter(
        size: settings.size(of: 0), format: settings.formats[0], rest: settings.unusedByte, workload: settings.workload, number: 1)
    let canvas = painter.canvas
    let byteCount = canvas.size.width * canvas.size.height * 4
    for index in 0..<count {
        if index > 0 && settings.workload.changes { _ = painter.advance() }
        var written = 0
        while written < byteCount {
            let result = write(1, UnsafeRawPointer(canvas.pixels) + written, byteCount - written)
            guard result > 0 else { return 1 }
            written += result
        }
    }
    return 0
}

switch Options.read(Array(CommandLine.arguments.dropFirst())) {
case .run(let options) where options.pictures != nil: exit(writePictures(options.pictures ?? 0, options.settings))
case .run(let options): exit(run(options))
case .help: write(Options.help, to: 1)
case .version: write("vitrine-testscreen \(Contract.packageVersion)\n", to: 1)
case .wrong(let complaint):
    write("vitrine-testscreen: \(complaint). Try --help.\n", to: 2)
    exit(2)
}
