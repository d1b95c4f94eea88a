// SPDX-License-Identifier: MIT
import DBus
import Loop

/// The portal's backend: `org.freedesktop.impl.portal.ScreenCast` without a person, who is replaced by the settings.
///
/// Thread: the loop's.
///
/// Spec: <https://flatpak.github.io/xdg-desktop-portal/docs/doc-org.freedesktop.impl.portal.ScreenCast.html>
final class Backend {
    static let path: ObjectPath = "/org/freedesktop/portal/desktop"

    /// One session of the portal.
    private final class Session {
        let handle: ObjectPath
        let owner: BusName
        var options: [String: Value] = [:]
        var cast: Screen.Cast?
        init(_ handle: ObjectPath, _ owner: BusName) { (self.handle, self.owner) = (handle, owner) }

        /// Whether the portal handed back what this backend gave it to remember.
        var isRestored: Bool {
            guard let data = options["restore_data"]?.asStructure, data.count == 3 else { return false }
            return data[0].asString == Backend.vendor
        }
    }

    /// A question that is not answered yet.
    private struct Question {
        let call: Call
        let session: Session?
        let isPicker: Bool
        let timer: Timer?
        let accept: () -> Void
    }

    private static let vendor = "vitrine-testscreen"

    /// A property of the control interface that counts what happens here has changed.
    var onChange: ((_ properties: [MemberName]) -> Void)?
    /// Pickers that were opened, and those that the portal closed before they were answered.
    private(set) var pickersOpened: UInt64 = 0
    private(set) var pickersClosed: UInt64 = 0
    private(set) var restoresUsed: UInt64 = 0
    /// What the portal asked of the last Start, options of SelectSources included.
    private(set) var lastStart: [String: Value] = [:]
    var openSessions: Int { sessions.count }
    var pickersOpen: Int { questions.values.count { $0.isPicker } }

    private let log = Log("backend")
    private let server: ObjectServer
    private let screen: Screen
    private let connection: Connection
    private var sessions: [ObjectPath: Session] = [:]
    private var questions: [ObjectPath: Question] = [:]
    private var owners: [BusName: Subscription] = [:]

    init(_ connection: Connection, _ server: ObjectServer, _ screen: Screen) {
        (self.connection, self.server, self.screen) = (connection, server, screen)
        let screenCast = ExportedInterface(
            BackendInterfaces.screenCast,
            methods: [
                "CreateSession": { [unowned self] in createSession($0) },
                "SelectSources": { [unowned self] in selectSources($0) },
                "Start": { [unowned self] in start($0) },
            ],
            properties: [
                "AvailableSourceTypes": Property(get: { [unowned self] in .uint32(self.screen.settings.sourceTypes) }),
                "AvailableCursorModes": Property(get: { [unowned self] in .uint32(self.screen.settings.cursorModes) }),
                "version": Property(get: { [unowned self] in .uint32(self.screen.settings.version) }),
            ])
        server.export(Backend.path, [screenCast])
    }

    /// Says that versions or masks may have changed.
    func announceProperties() {
        let names: [MemberName] = ["AvailableSourceTypes", "AvailableCursorModes", "version"]
        server.propertiesChanged(Backend.path, BackendInterfaces.screenCast.name, names)
    }

    // MARK: - Methods

    private func createSession(_ call: Call) {
        guard call.arguments.count > 1, let handle = call.arguments[1].asObjectPath else { return }
        let settings = screen.settings
        ask(call, settings.answerCreate, session: nil) { [unowned self] in
            let session = Session(handle, call.sender)
            sessions[handle] = session
            server.export(handle, [sessionInterface(session)])
            if owners[call.sender] == nil {
                owners[call.sender] = connection.watchName(call.sender) { [unowned self] owner in
                    if owner == nil { ownerLeft(call.sender) }
                }
            }
            log.debug("session \(handle)")
            onChange?(["OpenSessions"])
            answer(call, 0)
        }
    }

    private func selectSources(_ call: Call) {
        guard let session = session(of: call), let options = call.arguments.last?.asOptions else { return answer(call, 2) }
        session.options = options
        ask(call, screen.settings.answerSelect, session: session) { [unowned self] in answer(call, 0) }
    }

    private func start(_ call: Call) {
        guard let session = session(of: call), call.arguments.count > 4 else { return answer(call, 2) }
        let settings = screen.settings
        lastStart = session.options.merging(call.arguments[4].asOptions ?? [:]) { _, new in new }
        lastStart["app_id"] = call.arguments[2]
        lastStart["parent_window"] = call.arguments[3]
        lastStart["session_handle"] = .objectPath(session.handle)
        onChange?(["LastStart"])
        let skipsPicker = session.isRestored && settings.persistence == .honour
        if skipsPicker { restoresUsed += 1 }
        ask(call, skipsPicker ? .ok : settings.answer, session: session, picker: !skipsPicker, after: skipsPicker ? 0 : settings.delay) {
            [unowned self] in
            let cursorMode = session.options["cursor_mode"]?.asUInt32 ?? 1
            session.cast = screen.open(cursorMode: cursorMode) { [unowned self] cast in grant(call, session, cast) }
        }
    }

    private func grant(_ call: Call, _ session: Session, _ cast: Screen.Cast) {
        var results = StreamsAnswer(settings: screen.settings, sources: cast.sources).results
        if case .uint32(let mode)? = session.options["persist_mode"], mode > 0, screen.settings.persistence != .refuse {
            results["persist_mode"] = .uint32(mode)
            results["restore_data"] = .structure([.string(Backend.vendor), .uint32(1), .variant(.string(screen.settings.streamID))])
        }
        if screen.settings.fault == .vanishedNode { screen.close(cast) }
        answer(call, 0, results)
    }

    private func session(of call: Call) -> Session? {
        guard call.arguments.count > 1, let handle = call.arguments[1].asObjectPath else { return nil }
        return sessions[handle]
    }

    // MARK: - Questions

    /// Asks the person that the settings are.
    ///
    /// - Parameter accept: what happens when the answer is yes. It answers the call.
    private func ask(
        _ call: Call, _ wanted: Answer, session: Session?, picker: Bool = false, after delay: UInt32 = 0, accept: @escaping () -> Void
    ) {
        guard let handle = call.arguments.first?.asObjectPath else { return answer(call, 2) }
        if picker { pickersOpened += 1 }
        var timer: Timer?
        if wanted != .never {
            guard delay > 0 else { return settle(call, wanted, accept) }
            timer = connection.loop.after(.milliseconds(Int64(delay))) { [unowned self] in resolve(handle, wanted) }
        }
        questions[handle] = Question(call: call, session: session, isPicker: picker, timer: timer, accept: accept)
        let request = ExportedInterface(
            BackendInterfaces.request, methods: ["Close": { [unowned self] in closeRequest($0, handle) }], properties: [:])
        server.export(handle, [request])
        if picker { onChange?(["PickersOpen"]) }
    }

    /// Answers what is open.
    ///
    /// - Returns: how many questions that were.
    func answerAll(_ wanted: Answer) -> Int {
        let handles = Array(questions.keys)
        for handle in handles { resolve(handle, wanted) }
        return handles.count
    }

    private func resolve(_ handle: ObjectPath, _ wanted: Answer) {
        guard let question = forget(handle) else { return }
        settle(question.call, wanted, question.accept)
    }

    private func settle(_ call: Call, _ wanted: Answer, _ accept: () -> Void) {
        switch wanted {
        case .ok: accept()
        case .cancel: answer(call, 1)
        case .fail: answer(call, 2)
        case .error: call.fail(name: "org.freedesktop.DBus.Error.Failed", message: "The test screen was told to fail.")
        case .never: break
        }
    }

    private func forget(_ handle: ObjectPath) -> Question? {
        guard let question = questions.removeValue(forKey: handle) else { return nil }
        question.timer?.cancel()
        server.unexport(handle)
        if question.isPicker { onChange?(["PickersOpen"]) }
        return question
    }

    private func closeRequest(_ close: Call, _ handle: ObjectPath) {
        close.reply()
        guard let question = forget(handle) else { return }
        log.debug("request closed: \(handle)")
        if question.isPicker { pickersClosed += 1 }
        onChange?(["PickersClosed"])
        // Nobody hears it any more, but the portal still counts the call as open.
        answer(question.call, 2)
    }

    private func answer(_ call: Call, _ response: UInt32, _ results: [String: Value] = [:]) {
        log.debug("\(call.member) answered \(response)")
        call.reply([.uint32(response), .options(results)])
    }

    // MARK: - Ends

    /// Ends all sessions as the desktop's own indicator does.
    func endSessions() -> Int {
        let ended = sessions.values
        for session in ended {
            server.emit(session.handle, BackendInterfaces.session.name, "Closed", [])
            close(session)
        }
        return ended.count
    }

    private func sessionInterface(_ session: Session) -> ExportedInterface {
        ExportedInterface(
            BackendInterfaces.session,
            methods: [
                "Close": { [unowned self, unowned session] call in
                    call.reply()
                    close(session)
                }
            ],
            properties: ["version": Property(get: { .uint32(1) })])
    }

    private func close(_ session: Session) {
        guard sessions.removeValue(forKey: session.handle) != nil else { return }
        for (handle, question) in questions where question.session === session {
            _ = forget(handle)
            answer(question.call, 2)
        }
        if let cast = session.cast, !screen.settings.keepsNode { screen.close(cast) }
        server.unexport(session.handle)
        log.debug("session closed: \(session.handle)")
        onChange?(["OpenSessions"])
    }

    private func ownerLeft(_ owner: BusName) {
        owners.removeValue(forKey: owner)?.cancel()
        for session in sessions.values where session.owner == owner { close(session) }
    }
}
