// SPDX-License-Identifier: MIT
import DBus
import Loop

/// The agent, as a client sees it.
final class Agent {
    static let name: BusName = "org.vitrine.ScreenShare1"
    static let path: ObjectPath = "/org/vitrine/ScreenShare1"
    static let interface: InterfaceName = "org.vitrine.ScreenShare1.Agent"
    static let trackInterface: InterfaceName = "org.vitrine.ScreenShare1.Track"
    static let subscriptionInterface: InterfaceName = "org.vitrine.ScreenShare1.Subscription"
    static let desktopTrack: ObjectPath = "/org/vitrine/ScreenShare1/track/desktop"
    static let properties: InterfaceName = "org.freedesktop.DBus.Properties"

    let context: Context
    let connection: Connection

    /// Connects to the session bus. The agent need not run.
    init(_ context: Context) throws(Failure) {
        self.context = context
        connection = try context.connect()
    }

    /// Calls one of the agent's methods and waits for the answer.
    ///
    /// - Parameter starting: whether the bus may start the agent for it.
    @discardableResult
    func call(
        _ path: ObjectPath, _ interface: InterfaceName, _ member: MemberName, _ arguments: [Value] = [], starting: Bool = true,
        timeout: Duration? = .seconds(30)
    ) throws(Failure) -> [Value] {
        let call = Agent.method(path, interface, member, arguments, starting: starting)
        switch try context.result(of: call, on: connection, timeout: timeout) {
        case .success(let values): return values
        case .failure(let error): throw Failure(error, track: path)
        }
    }

    /// A call of one of the agent's methods.
    static func method(
        _ path: ObjectPath, _ interface: InterfaceName, _ member: MemberName, _ arguments: [Value] = [], starting: Bool = true
    ) -> MethodCall {
        var call = MethodCall(destination: name, path: path, interface: interface, member: member, arguments: arguments)
        call.noAutoStart = !starting
        return call
    }

    /// Writes `Layout` of the desktop track.
    func setLayout(_ name: String) throws(Failure) {
        try call(
            Agent.desktopTrack, Agent.properties, "Set", [.string(Agent.trackInterface.text), .string("Layout"), .variant(.string(name))])
    }

    /// `SetScreenShare` with the answer awaited.
    func setScreenShare(_ on: Bool, _ options: [String: Value] = [:], timeout: Duration? = .seconds(30)) throws(Failure) {
        try call(Agent.path, Agent.interface, "SetScreenShare", [.bool(on), .options(options)], starting: on, timeout: timeout)
    }

    /// All properties of an object's interface; nil when the agent does not run and may not be started.
    func properties(_ path: ObjectPath, _ interface: InterfaceName, starting: Bool = false) throws(Failure) -> [String: Value]? {
        let call = Agent.method(path, Agent.properties, "GetAll", [.string(interface.text)], starting: starting)
        switch try context.result(of: call, on: connection) {
        case .success(let values):
            guard let properties = values.first?.asOptions else { throw .ended(.failed, "the agent's answer to GetAll is no dictionary") }
            return properties
        case .failure(.remote(let name, _)) where !starting && Failure.isAbsence(name):
            return nil
        case .failure(let error):
            throw Failure(error, track: path)
        }
    }

    /// What a track shows; nil when the agent does not run and may not be started.
    func track(_ path: ObjectPath, starting: Bool = false) throws(Failure) -> Track? {
        try properties(path, Agent.trackInterface, starting: starting).map { Track(path: path, properties: $0) }
    }

    /// All objects of the agent; nil when it does not run.
    func objects() throws(Failure) -> [ObjectPath: [String: [String: Value]]]? {
        let call = Agent.method(Agent.path, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", starting: false)
        switch try context.result(of: call, on: connection) {
        case .success(let values): return values.first.map(Agent.readObjects) ?? [:]
        case .failure(.remote(let name, _)) where Failure.isAbsence(name): return nil
        case .failure(let error): throw Failure(error)
        }
    }

    /// The process that is the agent; nil when it does not run.
    func process() throws(Failure) -> UInt32? {
        let call = MethodCall(
            destination: .bus, path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", member: "GetConnectionUnixProcessID",
            arguments: [.string(Agent.name.text)])
        switch try context.result(of: call, on: connection) {
        case .success(let values): return values.first?.asUInt32
        case .failure(.remote(let name, _)) where Failure.isAbsence(name): return nil
        case .failure(let error): throw Failure(error)
        }
    }

    /// The tracks that programs have made, in the order of their numbers.
    func programsTracks() throws(Failure) -> [Track] {
        ListVerb.tracks(in: try objects() ?? [:]).filter { $0.path != Agent.desktopTrack }
    }

    /// Reads `a{oa{sa{sv}}}`.
    static func readObjects(_ value: Value) -> [ObjectPath: [String: [String: Value]]] {
        var objects: [ObjectPath: [String: [String: Value]]] = [:]
        guard case .dictionary(_, _, let entries) = value else { return [:] }
        for entry in entries {
            guard let path = entry.key.asObjectPath, case .dictionary(_, _, let interfaces) = entry.value else { continue }
            objects[path] = [:]
            for interface in interfaces {
                guard let name = interface.key.asString else { continue }
                objects[path]?[name] = interface.value.asOptions ?? [:]
            }
        }
        return objects
    }

    /// The object of a track that the person names: `desktop`, a number, or a whole path.
    static func trackPath(_ text: String, verb: String) throws(Failure) -> ObjectPath {
        let isWhole = text.hasPrefix("/")
        let path =
            isWhole
            ? (text.hasPrefix("\(path)/track/") ? ObjectPath(text) : nil)
            : path.appending("track").flatMap { text.contains("/") ? nil : $0.appending(text) }
        guard let path else {
            throw .usage(
                .badValue(text, of: "--track", expected: "'desktop', a number, or a path that 'vitrinectl list' shows", verb: verb))
        }
        return path
    }
}

extension Arguments {
    /// The track that `--track` names; without it the desktop track.
    func trackPath() throws(Failure) -> ObjectPath { try Agent.trackPath(string("track") ?? "desktop", verb: verb) }
}

extension OptionSpec {
    /// `--track`, of several verbs.
    static let track = OptionSpec(
        name: "track", letter: "t", value: "T", text: "the track: 'desktop' (the default), a number, or a path that 'vitrinectl list' shows"
    )
    /// `--json`, of several verbs.
    static let json = OptionSpec(name: "json", text: "write JSON, one object a line")
}
