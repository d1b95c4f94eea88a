// SPDX-License-Identifier: MIT
import DBus
import Loop

/// Lets tests drive the screen: `org.vitrine.TestScreen1`.
///
/// Thread: the loop's.
final class Control {
    static let busName: BusName = "org.vitrine.TestScreen1"
    static let path: ObjectPath = "/org/vitrine/TestScreen1"

    private static let invalidArguments = "org.freedesktop.DBus.Error.InvalidArgs"
    private static let noStream = "org.vitrine.TestScreen1.Error.NoStream"

    private let server: ObjectServer
    private let screen: Screen
    private let pipeWire: PipeWire
    private let backend: Backend?

    init(_ server: ObjectServer, _ screen: Screen, _ pipeWire: PipeWire, _ backend: Backend?) {
        (self.server, self.screen, self.pipeWire, self.backend) = (server, screen, pipeWire, backend)
        server.export(Control.path, [ExportedInterface(Control.interface, methods: methods, properties: properties)])
        backend?.onChange = { [unowned self] in changed($0) }
    }

    private func changed(_ names: [MemberName]) { server.propertiesChanged(Control.path, Control.interface.name, names) }

    private var properties: [MemberName: Property] {
        func count(_ read: @escaping (Backend) -> UInt64) -> Property {
            Property(get: { [unowned self] in .uint64(backend.map(read) ?? 0) })
        }
        return [
            "FramesProduced": Property(get: { [unowned self] in .uint64(screen.framesProduced) }),
            "NullDequeues": Property(get: { [unowned self] in .uint64(screen.nullDequeues) }),
            "OpenSessions": Property(get: { [unowned self] in .uint32(UInt32(backend?.openSessions ?? 0)) }),
            "PickersOpen": Property(get: { [unowned self] in .uint32(UInt32(backend?.pickersOpen ?? 0)) }),
            "PickersOpened": count(\.pickersOpened),
            "PickersClosed": count(\.pickersClosed),
            "RestoresUsed": count(\.restoresUsed),
            "LastStart": Property(get: { [unowned self] in .options(backend?.lastStart ?? [:]) }),
            "Settings": Property(get: { [unowned self] in
                .options(Dictionary(uniqueKeysWithValues: screen.knobs.map { ($0.name, $0.get(screen.settings)) }))
            }),
            "Streams": Property(get: { [unowned self] in .array(of: "a{sv}", screen.sources.map(describe)) }),
            "Timeline": Property(get: { [unowned self] in
                let sent = screen.sources.flatMap(\.timeline)
                return .array(of: "(ut)", sent.map { .structure([.uint32($0.number), .uint64(UInt64($0.time.nanoseconds))]) })
            }),
        ]
    }

    private var methods: [MemberName: (Call) -> Void] {
        [
            "Configure": { [unowned self] in configure($0) },
            "Reset": { [unowned self] call in
                screen.reset()
                backend?.announceProperties()
                changed(["Settings"])
                call.reply()
            },
            "Answer": { [unowned self] in answer($0) },
            "EndSession": { [unowned self] call in call.reply([.uint32(UInt32(backend?.endSessions() ?? 0))]) },
            "Vanish": { [unowned self] call in
                screen.closeAll()
                call.reply()
            },
            "VanishStream": { [unowned self] call in forStream(call) { screen.remove($0) } },
            "Pause": { [unowned self] call in forAll(call) { $0.setActive(false) } },
            "Resume": { [unowned self] call in forAll(call) { $0.setActive(true) } },
            "PauseStream": { [unowned self] call in forStream(call) { $0.setActive(false) } },
            "ResumeStream": { [unowned self] call in forStream(call) { $0.setActive(true) } },
            "SetSize": { [unowned self] in setSize($0, of: nil, $0.arguments) },
            "SetStreamSize": { [unowned self] call in
                setSize(call, of: call.arguments.first?.asUInt32.map(Int.init), Array(call.arguments.dropFirst()))
            },
            "PushFrames": { [unowned self] call in push(call, screen.sources, call.arguments.first?.asUInt32 ?? 0) },
            "PushStreamFrames": { [unowned self] call in
                forStream(call, replies: false) { push(call, [$0], call.arguments.last?.asUInt32 ?? 0) }
            },
            "EmitCursorOnly": { [unowned self] call in forAll(call) { $0.sendCursorOnly() } },
            "Corrupt": { [unowned self] in corrupt($0) },
            "SetError": { [unowned self] call in
                forAll(call) { $0.setError(call.arguments.first?.asString ?? "") }
            },
            "Unlink": { [unowned self] call in
                screen.unlink()
                call.reply()
            },
            "ClearFormat": { [unowned self] call in
                screen.clearFormats()
                call.reply()
            },
        ]
    }

    private func describe(_ source: VideoSource) -> Value {
        var description: [String: Value] = [
            "stream": .uint32(UInt32(source.index)), "state": .string(source.state), "number": .uint32(source.number),
            "buffers": .uint32(UInt32(source.bufferCount)), "frames": .uint64(source.framesSent),
            "null-dequeues": .uint64(source.nullDequeues),
        ]
        if let node = source.node {
            description["node"] = .uint32(node)
            description["consumers"] = .uint32(UInt32(pipeWire.consumers.count(of: node)))
            description["serial"] = pipeWire.serial(of: node).map(Value.uint64)
        }
        if let agreement = source.agreement {
            description["size"] = agreement.size.value
            description["format"] = .string(agreement.format.rawValue)
            description["stride"] = .uint32(UInt32(clamping: agreement.stride(screen.settings)))
        }
        return .options(description)
    }

    // MARK: - Methods

    private func configure(_ call: Call) {
        var (settings, effects) = (screen.settings, [Knob.Effect]())
        for (key, value) in (call.arguments.first?.asOptions ?? [:]).sorted(by: { $0.key < $1.key }) {
            guard let knob = screen.knobs.first(where: { $0.name == key }) else {
                return call.fail(name: Control.invalidArguments, message: "\(key): no such setting. The property Settings lists them.")
            }
            do throws(Knob.Refusal) {
                try knob.set(&settings, value)
                effects.append(knob.effect)
            } catch .range(let allowed) {
                return call.fail(name: Control.invalidArguments, message: "\(key): \(value.text) is not \(allowed).")
            } catch {
                return call.fail(
                    name: Control.invalidArguments, message: "\(key): its type is \(knob.signature), not \(value.signature).")
            }
        }
        if screen.apply(settings, effects) { backend?.announceProperties() }
        changed(["Settings"])
        call.reply()
    }

    private func answer(_ call: Call) {
        guard let text = call.arguments.first?.asString, let answer = Answer(rawValue: text), answer != .never else {
            return call.fail(name: Control.invalidArguments, message: "The answer must be ok, cancel, fail or error.")
        }
        call.reply([.uint32(UInt32(backend?.answerAll(answer) ?? 0))])
    }

    private func setSize(_ call: Call, of stream: Int?, _ sides: [Value]) {
        do throws(Knob.Refusal) {
            let size = try Size.taken(from: .structure(sides))
            if let stream, stream > 7 { throw .range("a stream from 0 to 7") }
            screen.setSize(size, of: stream)
            changed(["Settings"])
            call.reply()
        } catch .range(let allowed) {
            call.fail(name: Control.invalidArguments, message: "Expected \(allowed).")
        } catch {
            call.fail(name: Control.invalidArguments, message: "Expected a size.")
        }
    }

    private func push(_ call: Call, _ sources: [VideoSource], _ count: UInt32) {
        guard let first = sources.first else { return failForNoStream(call) }
        var (left, number, isRefused) = (sources.count, UInt32(0), false)
        for source in sources {
            source.push(count) { [unowned self] last in
                left -= 1
                if let last, source.index == first.index { number = last }
                isRefused = isRefused || last == nil
                guard left == 0 else { return }
                if isRefused { failForNoStream(call) } else { call.reply([.uint32(number)]) }
            }
        }
    }

    private func corrupt(_ call: Call) {
        guard let place = call.arguments.first?.asString, ["header", "chunk"].contains(place) else {
            return call.fail(name: Control.invalidArguments, message: "The place must be header or chunk.")
        }
        forAll(call) { $0.sendCorrupted(inHeader: place == "header") }
    }

    private func forAll(_ call: Call, _ act: (VideoSource) -> Void) {
        guard !screen.sources.isEmpty else { return failForNoStream(call) }
        for source in screen.sources { act(source) }
        call.reply()
    }

    private func forStream(_ call: Call, replies: Bool = true, _ act: (VideoSource) -> Void) {
        let index = call.arguments.first?.asUInt32 ?? .max
        guard let source = screen.sources.last(where: { $0.index == Int(index) }) else { return failForNoStream(call) }
        act(source)
        if replies { call.reply() }
    }

    private func failForNoStream(_ call: Call) {
        call.fail(
            name: Control.noStream,
            message: "There is no such stream, or nobody looks at it. Start a session of the portal and read its node.")
    }
}
