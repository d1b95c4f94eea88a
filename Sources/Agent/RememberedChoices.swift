// SPDX-License-Identifier: MIT
import Choices
import DBus
import Loop

/// For how long the desktop may remember what was chosen: the option `persist`.
enum Persistence: String, CaseIterable, Sendable {
    case none
    /// While the program that asked for it is on the bus.
    case session
    /// Until the person takes it back: with `vitrinectl forget`, or in the desktop's settings.
    case forever
}

/// Which remembered choice one start may use and replace.
///
/// It is the starting program's own: a stranger that starts somebody's track has none.
struct ChoiceKey: Equatable, Sendable {
    let persistence: Persistence
    /// The connection that starts, for `session`.
    let client: BusName
    /// The verified identity that starts, for `forever`.
    let identity: String
    /// The option `restore-key`.
    let name: String
}

/// The portal's tokens: what skips the picker the next time. They are secrets and never logged.
///
/// A token that was used up, lost or refused leads to the picker; a new one takes its place after each start.
final class RememberedChoices {
    private let log = Log("choices")
    private let file: ChoiceFile?
    private var ofClients: [BusName: [(name: String, token: String)]] = [:]
    /// More are not kept of one client: the oldest go first.
    private static let greatestCountOfClient = 32

    init(_ file: ChoiceFile?) { self.file = file }

    /// The token that a start may be tried with.
    func token(for key: ChoiceKey) -> String? {
        switch key.persistence {
        case .none: return nil
        case .session: return ofClients[key.client]?.last { $0.name == key.name }?.token
        case .forever:
            do throws(Errno) {
                return try file?.choices().last { $0.identity == key.identity && $0.name == key.name }?.token
            } catch {
                log.warning("the remembered choices cannot be read: \(error)")
                return nil
            }
        }
    }

    /// Keeps what a start has brought.
    ///
    /// - Parameter token: nil when the desktop remembers nothing: the one before is used up then.
    func replace(_ token: String?, for key: ChoiceKey) {
        switch key.persistence {
        case .none: break
        case .session:
            var choices = ofClients[key.client] ?? []
            choices.removeAll { $0.name == key.name }
            if let token { choices.append((key.name, token)) }
            ofClients[key.client] = choices.isEmpty ? nil : choices.suffix(RememberedChoices.greatestCountOfClient)
        case .forever: replaceInFile(token, key)
        }
    }

    private func replaceInFile(_ token: String?, _ key: ChoiceKey) {
        guard let file else { return log.warning("no choice can be remembered: neither XDG_STATE_HOME nor HOME is set") }
        do throws(Errno) {
            try file.change { choices in
                choices.removeAll { $0.identity == key.identity && $0.name == key.name }
                if let token { choices.append(Choice(identity: key.identity, name: key.name, token: token)) }
            }
        } catch {
            log.warning("the choice of \(key.identity) cannot be remembered: \(error)")
        }
    }

    /// Whether nothing is remembered that would be lost with the agent.
    var isEmpty: Bool { ofClients.isEmpty }

    /// A client has left the bus: what was remembered for its time is forgotten.
    func forget(_ client: BusName) { ofClients[client] = nil }
}
