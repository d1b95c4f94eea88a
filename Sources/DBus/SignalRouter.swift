// SPDX-License-Identifier: MIT

/// Hands signals to those who subscribed to them, and knows who owns the names that subscriptions mention.
final class SignalRouter {
    private unowned let connection: Connection
    private var subscribers: [Subscriber] = []
    private var rules: [String: RuleUse] = [:]
    private var names: [BusName: NameWatch] = [:]

    /// - Parameter connection: the one that this router is a part of.
    init(_ connection: Connection) { self.connection = connection }

    private final class Subscriber {
        let rule: MatchRule
        let handler: (Signal) -> Void
        /// The owner of the well-known name that the rule has as its sender.
        let owner: NameWatch?
        var isActive = true

        init(_ rule: MatchRule, _ owner: NameWatch?, _ handler: @escaping (Signal) -> Void) {
            (self.rule, self.owner, self.handler) = (rule, owner, handler)
        }

        func isSentBy(_ sender: BusName?) -> Bool {
            if let owner { return owner.owner != nil && owner.owner == sender }
            return rule.sender == nil || rule.sender == sender
        }
    }

    // MARK: Subscribing

    func subscribe(_ rule: MatchRule, _ handler: @escaping (Signal) -> Void, _ ready: ((DBusError?) -> Void)?) -> Subscription {
        if let argument = rule.argument0, argument.utf8.contains(0) {
            connection.loop.later { ready?(.malformed("The string \(Value.string(argument)) contains a NUL, which the bus cannot carry.")) }
            return Subscription {}
        }
        let use = addRule(rule)
        let followed = rule.sender.flatMap { $0.isUnique || $0 == .bus ? nil : $0 }
        let owner = followed.map { useName($0) }
        let subscriber = Subscriber(rule, owner, handler)
        subscribers.append(subscriber)
        if let ready {
            use.whenSettled(connection) { error in
                guard subscriber.isActive else { return }
                guard error == nil, let owner else { return ready(error) }
                owner.whenKnown { if subscriber.isActive { ready(nil) } }
            }
        }
        return Subscription { [weak self] in
            subscriber.isActive = false
            self?.subscribers.removeAll { $0 === subscriber }
            self?.removeRule(rule, use)
            if let owner { self?.stopUsing(owner) }
        }
    }

    // MARK: Rules

    private func addRule(_ rule: MatchRule) -> RuleUse {
        let text = rule.text
        if let use = rules[text] {
            use.count += 1
            return use
        }
        let use = RuleUse()
        rules[text] = use
        connection.callBus("AddMatch", [.string(text)]) { [weak self] result in
            if case .failure(let error) = result {
                // The next subscriber tries again.
                if let self, self.rules[text] === use { self.rules[text] = nil }
                use.settle(error)
            } else {
                use.settle(nil)
            }
        }
        return use
    }

    private func removeRule(_ rule: MatchRule, _ use: RuleUse) {
        use.count -= 1
        let text = rule.text
        guard use.count == 0, rules[text] === use else { return }
        rules[text] = nil
        connection.send(.bus("RemoveMatch", [.string(text)]))
    }

    // MARK: Names

    func watchName(_ name: BusName, _ changed: @escaping (BusName?) -> Void) -> Subscription {
        let watch = useName(name)
        let watcher = NameWatcher(changed)
        watch.whenKnown { [weak watch] in
            // Changes before this moment are part of the owner that is told now.
            guard watcher.isActive, let watch else { return }
            watch.watchers.append(watcher)
            changed(watch.owner)
        }
        return Subscription { [weak self] in
            watcher.isActive = false
            watch.watchers.removeAll { $0 === watcher }
            self?.stopUsing(watch)
        }
    }

    private func useName(_ name: BusName) -> NameWatch {
        if let watch = names[name] {
            watch.useCount += 1
            return watch
        }
        let rule = MatchRule(
            sender: .bus, path: "/org/freedesktop/DBus", interface: .bus, member: "NameOwnerChanged", argument0: name.text)
        let watch = NameWatch(name, rule, addRule(rule), connection)
        names[name] = watch
        // The bus answers in order: what this reply says holds until the first NameOwnerChanged that comes after it.
        connection.callBus("GetNameOwner", [.string(name.text)]) { result in
            if case .failure(.disconnected) = result { return }
            watch.learn((try? result.get())?.first?.asString.flatMap { BusName($0) })
        }
        return watch
    }

    private func stopUsing(_ watch: NameWatch) {
        watch.useCount -= 1
        guard watch.useCount == 0 else { return }
        names[watch.name] = nil
        removeRule(watch.rule, watch.ruleUse)
    }

    // MARK: Routing

    func route(_ message: Message) {
        guard let path = message.path, let interface = message.interface, let member = message.member else { return }
        let sender = message.sender
        let isOwnerChange = sender == .bus && interface == .bus && member == "NameOwnerChanged"
        let candidates = subscribers.filter { $0.rule.matches(path, interface, member) && $0.isSentBy(sender) }
        guard isOwnerChange || !candidates.isEmpty else { return }
        let arguments: [Value]
        do throws(DBusError) {
            arguments = try message.arguments()
        } catch {
            log.debug("A signal \(interface).\(member) was dropped: \(error)")
            return
        }
        if isOwnerChange { changeOwner(arguments) }
        let signal = Signal(sender: sender, path: path, interface: interface, member: member, arguments: arguments)
        for subscriber in candidates where subscriber.isActive && subscriber.rule.matches(arguments) { subscriber.handler(signal) }
    }

    private func changeOwner(_ arguments: [Value]) {
        guard arguments.count == 3, let name = arguments[0].asString.flatMap({ BusName($0) }),
            let owner = arguments[2].asString
        else { return }
        names[name]?.change(to: BusName(owner))
    }
}

extension MatchRule {
    fileprivate func matches(_ path: ObjectPath, _ interface: InterfaceName, _ member: MemberName) -> Bool {
        (self.member ?? member) == member && (self.path ?? path) == path && (self.interface ?? interface) == interface
            && (pathNamespace.map { path.isInside($0) } ?? true)
    }

    fileprivate func matches(_ arguments: [Value]) -> Bool {
        argument0 == nil || arguments.first?.asString == argument0
    }
}

/// A match rule that the bus was given, and how many need it.
private final class RuleUse {
    var count = 1
    private var isSettled = false
    private var failure: DBusError?
    private var waiting: [(DBusError?) -> Void] = []

    func settle(_ error: DBusError?) {
        (isSettled, failure) = (true, error)
        let waiting = waiting
        self.waiting = []
        for body in waiting { body(error) }
    }

    /// Calls `body` from the loop, now or when the bus has answered.
    func whenSettled(_ connection: Connection, _ body: @escaping (DBusError?) -> Void) {
        guard isSettled else { return waiting.append(body) }
        connection.loop.later { [failure] in body(failure) }
    }
}

/// One who wants to know who owns a name.
private final class NameWatcher {
    let changed: (BusName?) -> Void
    var isActive = true
    init(_ changed: @escaping (BusName?) -> Void) { self.changed = changed }
}

/// The owner of a name, as far as the bus has told.
private final class NameWatch {
    let name: BusName
    let rule: MatchRule
    let ruleUse: RuleUse
    var useCount = 1
    var watchers: [NameWatcher] = []
    private(set) var owner: BusName?
    private var isKnown = false
    private var waiting: [() -> Void] = []
    private unowned let connection: Connection

    init(_ name: BusName, _ rule: MatchRule, _ ruleUse: RuleUse, _ connection: Connection) {
        (self.name, self.rule, self.ruleUse, self.connection) = (name, rule, ruleUse, connection)
    }

    /// Takes the bus's answer.
    func learn(_ owner: BusName?) {
        (self.owner, isKnown) = (owner, true)
        let waiting = waiting
        self.waiting = []
        for body in waiting { body() }
    }

    /// Takes a signal's word; before the answer is there it is older than that.
    func change(to owner: BusName?) {
        guard isKnown else { return }
        self.owner = owner
        for watcher in watchers where watcher.isActive { watcher.changed(owner) }
    }

    /// Calls `body` from the loop, now or when the owner is known.
    func whenKnown(_ body: @escaping () -> Void) {
        guard isKnown else { return waiting.append(body) }
        connection.loop.later(body)
    }
}
