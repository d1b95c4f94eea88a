// SPDX-License-Identifier: MIT
import DBus

extension CastMachine {
    /// Where the session is, or will be. Nil when there is none.
    var sessionPath: ObjectPath? {
        switch session {
        case .expected(let path), .open(let path): path
        case .none, .gone: nil
        }
    }

    /// The portal ended a session.
    mutating func sessionClosed(_ path: ObjectPath) -> [Action] {
        guard path == sessionPath else { return [] }
        if case .open = session { session = .gone }
        return end(.closed)
    }

    /// The portal is gone, and with it all that it held.
    mutating func lose() -> [Action] {
        session = .gone
        return finish(reporting: .portalLost)
    }

    /// Ends the cast and closes what is open.
    ///
    /// - Parameter event: what the caller hears. Nil when it is the caller who ends it.
    mutating func end(_ event: CastEvent?) -> [Action] {
        guard case .requesting(let request) = state else { return endWithoutRequest(event) }
        let closes = [Action.closeRequest(request.closingPath)] + closeSession()
        // A session that was asked for may still come into being, and a request whose path is not known may still open.
        guard request.step == .createSession || !request.isAnswered else {
            return closes + finish(reporting: event)
        }
        state = .closing(request)
        return closes + [.setTimer(Self.answerLimit)] + report(event)
    }

    /// Ends the cast at a point where no request is open.
    mutating func endWithoutRequest(_ event: CastEvent?) -> [Action] {
        let closes = closeSession()
        return closes + finish(reporting: event)
    }

    /// Takes an event in after the end, while a late answer may leave something open.
    mutating func close(_ request: Request, _ event: Event) -> [Action] {
        var request = request
        switch event {
        case .replied(request.call, .success(let values)):
            request.isAnswered = true
            request.handle = values.first?.pathValue
            let early = request.early.first { $0.path == request.handle }
            request.early = []
            state = .closing(request)
            // The first Close may have come before there was anything to close.
            let closes = [Action.closeRequest(request.closingPath)]
            if request.step != .createSession { return closes + finish(reporting: nil) }
            if let early { return closes + lateResponse(early.arguments) }
            let listen: [Action] = request.handle.map { $0 == request.expected ? [] : [.listenAlso($0)] } ?? []
            return closes + listen
        case .replied(request.call, .failure(.timedOut)) where request.step == .createSession:
            return []
        case .replied(request.call, .failure), .portalLost, .timerFired:
            return finish(reporting: nil)
        case .response(let path, let arguments) where request.isAt(path):
            return lateResponse(arguments)
        case .response(let path, let arguments) where !request.isAnswered && request.early.count < 8:
            request.early.append((path, arguments))
            state = .closing(request)
            return []
        default:
            return []
        }
    }

    /// A session that came too late is closed at once.
    private mutating func lateResponse(_ arguments: [Value]) -> [Action] {
        if case .expected(let path) = session {
            switch PortalResponse(arguments) {
            case .success(let results):
                let handle = results["session_handle"]?.pathValue
                session = .open(handle.flatMap { paths.isOwnSession($0) ? $0 : nil } ?? path)
            case nil:
                // For all that is known, it may mean that there is a session.
                session = .open(path)
            case .cancelled, .ended:
                session = .gone
            }
        }
        let closes = closeSession()
        return closes + finish(reporting: nil)
    }

    /// Closes the session if there is one for certain.
    private mutating func closeSession() -> [Action] {
        guard case .open(let path) = session else { return [] }
        session = .gone
        return [.closeSession(path)]
    }

    mutating func finish(reporting event: CastEvent?) -> [Action] {
        state = .ended
        return [.setTimer(nil)] + report(event) + [.finish]
    }

    private func report(_ event: CastEvent?) -> [Action] { event.map { [.report($0)] } ?? [] }
}
