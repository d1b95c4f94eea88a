// SPDX-License-Identifier: MIT
import DBus
import Glibc
import Loop
import TestSupport
import Testing

@Suite(.serialized) struct ConnectionTests {
    let stage: Stage
    let thing: Thing
    let server: ObjectServer

    init() throws {
        stage = try Stage()
        thing = try Thing()
        server = ObjectServer(stage.service)
        server.export("/org/example/Thing", thing.exported)
    }

    private func echo(_ value: Value) throws(DBusError) -> Value? {
        try stage.client.callAndWait(thingCall(stage.service, "Echo", [.variant(value)])).first?.asVariant
    }

    @Test(arguments: [
        Value.byte(255), .bool(true), .bool(false), .int16(.min), .uint16(.max), .int32(.min), .uint32(.max), .int64(.min), .uint64(.max),
        .double(-0.1), .double(.infinity), .string(""), .string("grüße 🖥 \u{10fffd}"), .objectPath("/"), .objectPath("/a/b_1"),
        .signature(""), .signature("a{sv}(i)"), .array(of: "y", []), .array(of: "y", [.byte(0), .byte(9)]), .array(of: "(iiuu)", []),
        .array(of: "(xy)", [.structure([.int64(1), .byte(2)]), .structure([.int64(3), .byte(4)])]), .array(of: "a{sv}", [.options([:])]),
        .dictionary(key: "u", value: "(uuuu)", []),
        .dictionary(key: "s", value: "as", [Value.Entry(key: .string("k"), value: .strings(["a", ""]))]),
        .dictionary(key: "o", value: "a{sa{sv}}", []), .options(["a": .variant(.variant(.uint64(1)))]), .variant(.string("v")),
        .structure([.byte(1), .structure([.string("x"), .double(2)]), .strings([])]),
    ])
    func everyTypeComesBackTheSame(_ value: Value) throws { #expect(try echo(value) == value) }

    @Test func randomValuesComeBackTheSame() throws {
        var random = ValueGenerator(seed: 1)
        for _ in 0..<300 {
            let value = random.value()
            #expect(try echo(value) == value)
        }
    }

    @Test func descriptorsGoThrough() throws {
        let (reading, writing) = try FileDescriptor.pipe()
        let sent = Value.structure([.descriptor(writing), .string("x"), .descriptor(reading)])
        let back = try #require(try echo(sent)?.asStructure)
        let end = try #require(back[checked: 0]?.asDescriptor)
        #expect(back.count == 3 && end !== writing && end.raw != writing.raw)
        #expect(fcntl(end.raw, F_GETFD) & FD_CLOEXEC != 0)
        #expect(write(end.raw, "!", 1) == 1)
        var byte: UInt8 = 0
        #expect(read(reading.raw, &byte, 1) == 1 && byte == UInt8(ascii: "!"))
    }

    @Test func noDescriptorIsLeftOpen() throws {
        let (reading, _) = try FileDescriptor.pipe()
        /// How many descriptors of the pipe this process has. Other tests run meanwhile.
        func openCount() -> Int {
            var wanted = stat()
            fstat(reading.raw, &wanted)
            return (0..<1_000 as Range<Int32>).count { number in
                var status = stat()
                return fstat(number, &status) == 0 && status.st_dev == wanted.st_dev && status.st_ino == wanted.st_ino
            }
        }
        let before = openCount()
        for _ in 0..<20 { #expect(try echo(.descriptor(reading))?.asDescriptor != nil) }
        // Refused before it is decoded, and answered to a call that is forgotten.
        _ = failure { () throws(DBusError) in
            try stage.client.callAndWait(thingCall(stage.service, "Add", [.descriptor(reading)]))
        }
        stage.client.call(thingCall(stage.service, "Echo", [.variant(.descriptor(reading))])) { _ in }.cancel()
        stage.settle()
        #expect(openCount() == before)
    }

    @Test func depthEndsAt64() throws {
        func nested(_ depth: Int) -> Value { (0..<depth).reduce(.byte(1)) { value, _ in .variant(value) } }
        // The argument itself is a variant.
        #expect(try echo(nested(63)) == nested(63))
        #expect(failure { () throws(DBusError) in try echo(nested(64)) } == .malformed("The message nests more than 64 containers."))
        let structures = (0..<32).reduce(Value.byte(1)) { value, _ in .structure([value]) }
        #expect(try echo(structures) == structures)
        #expect(try echo(.array(of: "v", [.variant(structures)])) != nil)
    }

    // Not in the attribute: Swift 6.0 crashes on a closure there.
    private static let unsendable: [Value] = [
        .string("a\0b"), .structure([]), .array(of: "s", [.uint32(1)]), .array(of: "ss", []), .array(of: "", []),
        .dictionary(key: "v", value: "s", []), .dictionary(key: "ss", value: "s", []), .dictionary(key: "s", value: "", []),
        .dictionary(key: "s", value: "v", [Value.Entry(key: .string("a"), value: .string("b"))]),
        .array(of: "(s)", [.structure([.string("\0")])]), .options(["\0": .byte(1)]),
        .structure((0..<300).map { _ in .byte(1) }), (0..<33).reduce(Value.byte(1)) { value, _ in .structure([value]) },
    ]

    @Test(arguments: unsendable)
    func whatCannotBeSentIsRefused(_ value: Value) throws {
        guard case .malformed = failure({ () throws(DBusError) in try echo(value) }) else {
            Issue.record("\(value) was sent")
            return
        }
        #expect(try echo(.byte(1)) == .byte(1))
    }

    @Test func tooManyOrClosedDescriptorsAreRefused() throws {
        let (reading, _) = try FileDescriptor.pipe()
        let many = Value.array(of: "h", (0..<254).map { _ in .descriptor(reading) })
        let closed = Value.descriptor(FileDescriptor(owning: -1))
        for value in [many, closed, .structure([.array(of: "h", [closed])])] {
            guard case .malformed = failure({ () throws(DBusError) in try echo(value) }) else {
                Issue.record("\(value) was sent")
                continue
            }
        }
        #expect(try echo(.byte(1)) == .byte(1))
    }

    @Test func largeMessagesGoThrough() throws {
        let long = String(repeating: "ü", count: 4_000_000)
        #expect(try echo(.string(long)) == .string(long))
        // A million values are more than a message may have.
        let many = Value.array(of: "y", [Value](repeating: .byte(1), count: 1_000_001))
        #expect(failure { () throws(DBusError) in try echo(many) }?.remoteName == StandardError.limitsExceeded)
    }

    @Test func errorsKeepNameAndText() {
        let error = failure { () throws(DBusError) in
            try stage.client.callAndWait(thingCall(stage.service, "Fail", [.string("org.example.Error.Odd"), .string("odd, isn't it")]))
        }
        #expect(error == .remote(name: "org.example.Error.Odd", message: "odd, isn't it"))
        #expect(error?.description == "odd, isn't it (org.example.Error.Odd)")
    }

    @Test func nobodyAnswersForAnUnknownName() {
        var call = MethodCall(destination: "org.example.Nobody", path: "/", interface: Thing.name, member: "Echo")
        #expect(failure { () throws(DBusError) in try stage.client.callAndWait(call) }?.remoteName == StandardError.serviceUnknown)
        call.noAutoStart = true
        #expect(failure { () throws(DBusError) in try stage.client.callAndWait(call) }?.remoteName == StandardError.nameHasNoOwner)
    }

    @Test func aConnectionWithoutServerRefusesCalls() throws {
        let error = failure { () throws(DBusError) in try stage.service.callAndWait(thingCall(stage.client, "Echo", [.variant(.byte(1))])) }
        #expect(error?.remoteName == StandardError.unknownObject)
    }

    @Test func silenceTimesOut() {
        let error = failure { () throws(DBusError) in
            try stage.client.callAndWait(thingCall(stage.service, "Hold"), timeout: .milliseconds(20))
        }
        #expect(error == .timedOut("Hold"))
        stage.wait { thing.held.count == 1 }
        // The late answer disturbs nobody.
        thing.held.removeAll()
        stage.settle()
    }

    @Test func aCallWithoutTimeoutIsAnsweredLate() {
        var result: Result<[Value], DBusError>?
        stage.client.call(thingCall(stage.service, "Hold"), timeout: nil) { result = $0 }
        stage.wait { !thing.held.isEmpty }
        stage.settle()
        #expect(result == nil)
        thing.held.removeFirst().reply()
        stage.wait { result != nil }
        #expect(result == .success([]))
    }

    @Test func cancelledCallsAreSilent() {
        var isAnswered = false
        let pending = stage.client.call(thingCall(stage.service, "Hold"), timeout: .milliseconds(1)) { _ in isAnswered = true }
        pending.cancel()
        pending.cancel()
        let refused = stage.client.call(thingCall(stage.service, "Echo", [.string("\0")])) { _ in isAnswered = true }
        refused.cancel()
        stage.wait { !thing.held.isEmpty }
        thing.held.removeFirst().reply()
        stage.settle()
        #expect(!isAnswered)
    }

    @Test func completionsNeverRunInsideTheCall() {
        var isInside = true
        var count = 0
        let completion = { (_: Result<[Value], DBusError>) in
            #expect(!isInside)
            count += 1
        }
        stage.client.call(thingCall(stage.service, "Echo", [.string("\0")]), completion)
        stage.client.close()
        stage.client.call(thingCall(stage.service, "Echo", [.variant(.byte(1))]), completion)
        isInside = false
        stage.wait { count == 2 }
    }

    @Test func aThousandCallsAreUnderWayAtOnce() {
        var answers: [UInt32] = []
        for number in 0..<1_000 as Range<UInt32> {
            stage.client.call(thingCall(stage.service, "Add", [.uint32(number), .uint32(1)])) { result in
                if let sum = (try? result.get())?.first?.asUInt32 { answers.append(sum) }
            }
        }
        stage.wait { answers.count == 1_000 }
        #expect(answers == Array(1...1_000))
    }

    @Test func muchIsWrittenWithoutBlocking() {
        // More than the socket takes at once: the rest waits for the loop.
        let chunk = Value.variant(.string(String(repeating: "x", count: 1_000_000)))
        var answers = 0
        for _ in 0..<10 { stage.client.call(thingCall(stage.service, "Echo", [chunk])) { if case .success = $0 { answers += 1 } } }
        stage.wait { answers == 10 }
    }

    @Test func aHandlerMayRunTheLoop() {
        var inner: [Value]?
        var outer = 0
        stage.client.call(thingCall(stage.service, "Echo", [.variant(.byte(1))])) { [stage] _ in
            outer += 1
            inner = try? stage.client.callAndWait(thingCall(stage.service, "Add", [.uint32(1), .uint32(2)]), timeout: .seconds(30))
        }
        stage.client.call(thingCall(stage.service, "Echo", [.variant(.byte(2))])) { _ in outer += 1 }
        stage.client.call(thingCall(stage.service, "Echo", [.string("\0")])) { [stage] _ in
            outer += 1
            _ = try? stage.client.callAndWait(thingCall(stage.service, "Add", [.uint32(1), .uint32(2)]), timeout: .seconds(30))
        }
        stage.wait { outer == 3 && inner != nil }
        #expect(inner == [.uint32(3)])
    }

    @Test func theEndOfTheBusIsNoticed() {
        var log: [String] = []
        stage.client.call(thingCall(stage.service, "Hold"), timeout: nil) { log.append("\($0)") }
        stage.client.onDisconnect = { log.append("gone") }
        stage.wait { !thing.held.isEmpty }
        stage.bus.stop()
        stage.wait { log.count == 2 }
        #expect(log == ["\(Result<[Value], DBusError>.failure(.disconnected))", "gone"])
        #expect(!stage.client.isConnected)
        #expect(failure { () throws(DBusError) in try stage.client.callAndWait(thingCall(stage.service, "Hold")) } == .disconnected)
        // What has no answer is dropped without a word.
        stage.client.emit(path: "/", interface: Thing.name, member: "Happened")
        thing.held.removeFirst().reply()
        stage.client.flush()
        stage.client.close()
    }

    @Test func closingFailsWhatIsPending() {
        var result: Result<[Value], DBusError>?
        stage.client.onDisconnect = { Issue.record("closing is no disconnection") }
        stage.client.call(thingCall(stage.service, "Hold"), timeout: nil) { result = $0 }
        stage.client.close()
        #expect(result == nil)
        stage.wait { result != nil }
        #expect(result == .failure(.disconnected))
    }

    @Test func whoLeavesWithoutAnAnswerIsReported() throws {
        var leaving: Connection? = try stage.connect()
        let other = try Thing()
        var otherServer = leaving.map { ObjectServer($0) }
        otherServer?.export("/org/example/Thing", other.exported)
        var result: Result<[Value], DBusError>?
        stage.client.call(thingCall(try #require(leaving), "Hold"), timeout: nil) { result = $0 }
        stage.wait { !other.held.isEmpty }
        leaving?.close()
        (otherServer, leaving) = (nil, nil)
        stage.wait { result != nil }
        guard case .failure(.remote(StandardError.noReply, _)) = result else {
            Issue.record("\(String(describing: result))")
            return
        }
        other.held.removeAll()
    }

    @Test func lettingGoCloses() throws {
        var connection: Connection? = try stage.connect()
        let name = try #require(connection?.uniqueName)
        var owners: [BusName?] = []
        stage.client.watchName(name) { owners.append($0) }
        stage.wait { owners == [name] }
        connection = nil
        stage.wait { owners == [name, nil] }
    }

    @Test func aHandlerMayLetGo() throws {
        let leaving = Holder(try stage.connect())
        var seen = 0
        let name = try #require(leaving.connection?.uniqueName)
        leaving.connection?.subscribe(MatchRule(interface: Thing.name)) { _ in
            seen += 1
            leaving.connection = nil
        }
        for _ in 0..<3 { stage.client.emit(path: "/", interface: Thing.name, member: "Happened", to: name) }
        var owners: [BusName?] = []
        stage.client.watchName(name) { owners.append($0) }
        stage.wait { owners.last == .some(nil) }
        #expect(seen == 1)
    }

    @Test func whoFloodsUsDoesNotStopTheRest() throws {
        var seen = 0
        stage.client.subscribe(MatchRule(sender: stage.service.uniqueName, interface: Thing.name)) { _ in seen += 1 }
        stage.settle()
        for _ in 0..<3_000 { stage.service.emit(path: "/", interface: Thing.name, member: "Happened", to: stage.client.uniqueName) }
        // What the socket holds is read while the loop is looked at again and again.
        var looks = 0
        stage.wait {
            looks += 1
            return seen == 3_000
        }
        #expect(looks > 3_000 / 64)
    }

    @Test func wrongAddressesAreRefused() throws {
        let loop = try EventLoop()
        for address in ["", "nonsense", "unix:path=/nowhere/bus", "unix:", "tcp:host=127.0.0.1,port=1"] {
            guard case .cannotConnect(let reason) = failure({ () throws(DBusError) in try Connection.open(.at(address), on: loop) }) else {
                Issue.record("\(address) was opened")
                continue
            }
            #expect(!reason.isEmpty)
        }
    }

    @Test func credentialsAreThoseOfTheProcess() {
        var result: Result<Credentials, DBusError>?
        stage.client.credentials(of: stage.service.uniqueName) { result = $0 }
        stage.wait { result != nil }
        let credentials = try? result?.get()
        #expect(credentials?.processID == UInt32(getpid()) && credentials?.userID == getuid())
        result = nil
        stage.client.credentials(of: "org.example.Nobody") { result = $0 }
        stage.wait { result != nil }
        guard case .failure(.remote(StandardError.nameHasNoOwner, _)) = result else {
            Issue.record("\(String(describing: result))")
            return
        }
    }
}
