// SPDX-License-Identifier: MIT
import DBus
import TestSupport
import Testing

@Suite(.serialized) struct SubscriptionTests {
    let stage: Stage
    static let service: BusName = "org.example.Service"

    init() throws { stage = try Stage() }

    private func emit(
        _ connection: Connection, _ text: String, path: ObjectPath = "/a", member: MemberName = "Happened", to: BusName? = nil
    ) {
        connection.emit(path: path, interface: Thing.name, member: member, arguments: [.string(text)], to: to)
    }

    @Test func onlyMatchingSignalsCome() {
        var seen: [String: [String]] = [:]
        func record(_ key: String) -> (Signal) -> Void { { seen[key, default: []].append($0.arguments[0].asString ?? "") } }
        _ = stage.subscribe(stage.client, MatchRule(), record("all"))
        _ = stage.subscribe(stage.client, MatchRule(path: "/a"), record("path"))
        _ = stage.subscribe(stage.client, MatchRule(pathNamespace: "/a"), record("namespace"))
        _ = stage.subscribe(stage.client, MatchRule(interface: Thing.name, member: "Other"), record("member"))
        _ = stage.subscribe(stage.client, MatchRule(argument0: "3"), record("argument"))
        _ = stage.subscribe(stage.client, MatchRule(sender: stage.client.uniqueName), record("sender"))
        _ = stage.subscribe(stage.client, MatchRule(interface: "org.example.Other"), record("interface"))
        seen = [:]
        emit(stage.service, "1")
        emit(stage.service, "2", path: "/a/b")
        emit(stage.service, "3", path: "/ab", member: "Other")
        stage.settle()
        emit(stage.client, "4", path: "/x")
        stage.settle()
        #expect(seen["all"] == ["1", "2", "3", "4"])
        #expect(seen["path"] == ["1"] && seen["namespace"] == ["1", "2"] && seen["member"] == ["3"])
        #expect(seen["argument"] == ["3"] && seen["sender"] == ["4"] && seen["interface"] == nil)
    }

    @Test func signalsSaySenderAndPlace() throws {
        var signals: [Signal] = []
        _ = stage.subscribe(stage.client, MatchRule(interface: Thing.name)) { signals.append($0) }
        emit(stage.service, "x")
        stage.wait { !signals.isEmpty }
        let signal = try #require(signals.first)
        #expect(signal.sender == stage.service.uniqueName && signal.path == "/a" && signal.interface == Thing.name)
        #expect(signal.member == "Happened" && signal.arguments == [.string("x")])
    }

    @Test func aNameIsFollowedFromOwnerToOwner() throws {
        let third = try stage.connect()
        var seen: [String] = []
        let rule = MatchRule(sender: Self.service, interface: Thing.name)
        _ = stage.subscribe(stage.client, rule) { seen.append($0.arguments[0].asString ?? "") }
        // Nobody has the name; unicast signals come past every rule.
        emit(stage.service, "nobody", to: stage.client.uniqueName)
        stage.settle(third)
        #expect(stage.request(Self.service, stage.service) == nil)
        emit(third, "impostor", to: stage.client.uniqueName)
        emit(third, "impostor")
        emit(stage.service, "first")
        emit(stage.service, "unicast", to: stage.client.uniqueName)
        stage.settle(third)
        stage.service.releaseName(Self.service)
        emit(stage.service, "late", to: stage.client.uniqueName)
        stage.settle(third)
        #expect(stage.request(Self.service, third) == nil)
        emit(stage.service, "former", to: stage.client.uniqueName)
        emit(third, "second")
        stage.settle(third)
        #expect(seen == ["first", "unicast", "second"])
    }

    @Test func whatIsCalledAfterSubscribingMissesNothing() {
        #expect(stage.request(Self.service, stage.service) == nil)
        let server = ObjectServer(stage.service)
        let description = try? InterfaceDescription.parse(
            "<node><interface name='org.example.Bell'><method name='Ring'/><signal name='Rang'/></interface></node>")
        guard let description = description?.first else { return }
        server.export(
            "/bell",
            [
                ExportedInterface(
                    description,
                    methods: [
                        "Ring": { call in
                            // As portals do: the signal before the reply.
                            server.emit("/bell", "org.example.Bell", "Rang", to: call.sender)
                            server.emit("/bell", "org.example.Bell", "Rang")
                            call.reply()
                        }
                    ])
            ])
        var log: [String] = []
        stage.client.subscribe(
            MatchRule(sender: Self.service, path: "/bell"), { _ in log.append("signal") }, ready: { _ in log.append("ready") })
        stage.client.call(MethodCall(destination: Self.service, path: "/bell", interface: "org.example.Bell", member: "Ring")) { _ in
            log.append("reply")
        }
        stage.wait { log.contains("reply") }
        #expect(log == ["ready", "signal", "signal", "reply"])
    }

    @Test func cancelledSubscriptionsAreSilent() {
        var seen: [String] = []
        let rule = MatchRule(interface: Thing.name)
        let first = stage.subscribe(stage.client, rule) { _ in seen.append("first") }
        let second = stage.subscribe(stage.client, rule) { _ in seen.append("second") }
        emit(stage.service, "x")
        stage.settle()
        first.cancel()
        first.cancel()
        emit(stage.service, "x")
        stage.settle()
        #expect(seen == ["first", "second", "second"])
        second.cancel()
        emit(stage.service, "x")
        stage.settle()
        #expect(seen.count == 3)
        // The rule is put up again.
        let third = stage.subscribe(stage.client, rule) { _ in seen.append("third") }
        emit(stage.service, "x")
        stage.settle()
        #expect(seen.last == "third" && seen.count == 4)
        third.cancel()
    }

    @Test func aHandlerMayCancelOthers() {
        var seen: [String] = []
        var second: Subscription?
        let rule = MatchRule(interface: Thing.name)
        let first = stage.subscribe(stage.client, rule) { _ in
            seen.append("first")
            second?.cancel()
        }
        second = stage.subscribe(stage.client, rule) { _ in seen.append("second") }
        emit(stage.service, "x")
        stage.settle()
        #expect(seen == ["first"])
        first.cancel()
    }

    @Test func rulesAreCountedOnTheBus() throws {
        func count() -> Int {
            let call = MethodCall(
                destination: .bus, path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus.Debug.Stats",
                member: "GetConnectionStats",
                arguments: [.string(stage.client.uniqueName.text)])
            let statistics = (try? stage.service.callAndWait(call))?.first?.asOptions
            return Int(statistics?["MatchRules"]?.asUInt32 ?? 0)
        }
        let before = count()
        try #require(before == 0)
        let rule = MatchRule(sender: Self.service, interface: Thing.name)
        let subscriptions = (0..<3).map { _ in stage.subscribe(stage.client, rule) { _ in } }
        let watch = stage.client.watchName(Self.service) { _ in }
        stage.settle()
        #expect(count() == 2)
        for subscription in subscriptions + [watch] { subscription.cancel() }
        stage.settle()
        #expect(count() == 0)
    }

    @Test func aRuleThatTheBusRefusesIsReported() {
        var outcome: DBusError?
        stage.client.subscribe(MatchRule(argument0: "a\0b"), { _ in }, ready: { outcome = $0 })
        stage.wait { outcome != nil }
        guard case .malformed = outcome else {
            Issue.record("\(String(describing: outcome))")
            return
        }
        // Longer than the bus allows a rule to be.
        outcome = nil
        stage.client.subscribe(MatchRule(argument0: String(repeating: "x", count: 100_000)), { _ in }, ready: { outcome = $0 })
        stage.wait { outcome != nil }
        #expect(outcome?.remoteName != nil)
    }
}

@Suite(.serialized) struct NameTrackingTests {
    let stage: Stage
    static let name: BusName = "org.example.Service"

    init() throws { stage = try Stage() }

    @Test func aTakenNameIsRefused() {
        #expect(stage.request(Self.name, stage.service) == nil)
        #expect(stage.request(Self.name, stage.service) == nil)
        #expect(stage.request(Self.name, stage.client) == .nameTaken(Self.name))
        #expect(stage.request(.bus, stage.client)?.remoteName == StandardError.invalidArguments)
        stage.service.releaseName(Self.name)
        stage.settle()
        #expect(stage.request(Self.name, stage.client) == nil)
    }

    @Test func losingANameIsTold() {
        var lost: [BusName] = []
        stage.service.onNameLost = { lost.append($0) }
        #expect(stage.request(Self.name, stage.service) == nil)
        // An impostor's word does not count.
        stage.client.emit(
            path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", member: "NameLost", arguments: [.string(Self.name.text)],
            to: stage.service.uniqueName)
        stage.settle()
        #expect(lost.isEmpty)
        stage.service.releaseName(Self.name)
        stage.settle()
        #expect(lost == [Self.name])
    }

    @Test func thePresentOwnerIsToldFirst() {
        #expect(stage.request(Self.name, stage.service) == nil)
        var first: [BusName?] = []
        stage.client.watchName(Self.name) { first.append($0) }
        #expect(first.isEmpty)
        stage.wait { first.count == 1 }
        var second: [BusName?] = []
        stage.client.watchName(Self.name) { second.append($0) }
        #expect(second.isEmpty)
        stage.wait { second.count == 1 }
        #expect(first == [stage.service.uniqueName] && second == first)
        stage.service.close()
        stage.wait { first.count == 2 && second.count == 2 }
        #expect(first.last == .some(nil) && second.last == .some(nil))
    }

    @Test func everyChangeIsToldOnceHoweverItMeetsTheStart() {
        // The requests are interleaved with the watch on the wire in every order that there is.
        for round in 0..<10 {
            var owners: [BusName?] = []
            var isDone = false
            let service: BusName? = stage.service.uniqueName
            if round % 2 == 0 { stage.service.requestName(Self.name) { _ in isDone = true } }
            let watch = stage.client.watchName(Self.name) { owners.append($0) }
            if round % 2 == 1 { stage.service.requestName(Self.name) { _ in isDone = true } }
            stage.wait { isDone && owners.last == .some(service) }
            stage.settle()
            #expect(owners == [service] || owners == [nil, service])
            watch.cancel()
            stage.service.releaseName(Self.name)
            stage.settle()
        }
    }

    @Test func forgedChangesAreIgnored() {
        var owners: [BusName?] = []
        stage.client.watchName(Self.name) { owners.append($0) }
        stage.wait { owners == [nil] }
        let forged: [Value] = [.string(Self.name.text), .string(""), .string(stage.service.uniqueName.text)]
        stage.service.emit(
            path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", member: "NameOwnerChanged", arguments: forged,
            to: stage.client.uniqueName)
        stage.settle()
        #expect(owners == [nil])
    }

    @Test func cancelledWatchesAreSilent() {
        var told = 0
        stage.client.watchName(Self.name) { _ in told += 1 }.cancel()
        let watch = stage.client.watchName(Self.name) { _ in told += 10 }
        stage.wait { told == 10 }
        stage.client.watchName(Self.name) { _ in told += 1 }.cancel()
        watch.cancel()
        #expect(stage.request(Self.name, stage.service) == nil)
        stage.settle()
        #expect(told == 10)
    }
}
