// SPDX-License-Identifier: MIT
import DBus
import Loop
import TestSupport

@testable import Portal

/// A bus, a fake portal, and a client of it, all on one loop.
final class PortalRig {
    let loop: EventLoop
    let bus: PrivateBus
    let portal: ScreenCastPortal
    let client: Connection
    private(set) var fake: FakePortal
    /// What the last cast reported.
    private(set) var events: [CastEvent] = []
    private(set) var cast: Cast?

    /// - Parameter isPresent: whether a portal has the name already.
    init(services: [BusName: String] = [:], isPresent: Bool = true, offersScreenCast: Bool = true) throws {
        loop = try EventLoop()
        bus = try PrivateBus(services: services)
        client = try Connection.open(bus.address, on: loop)
        portal = ScreenCastPortal(client)
        fake = try FakePortal(bus.address, on: loop, offersScreenCast: offersScreenCast)
        fake.knobs.remote = try FileDescriptor.pipe().reading
        if isPresent { try fake.takeName() }
    }

    /// Puts another portal in the place of one that left.
    func restart() throws {
        fake = try FakePortal(bus.address, on: loop)
        fake.knobs.remote = try FileDescriptor.pipe().reading
        try fake.takeName()
    }

    /// Runs until something is so.
    ///
    /// - Returns: whether it became so in a time in which it should.
    func wait(until condition: () -> Bool) -> Bool { loop.run(until: condition, timeout: .seconds(20)) }

    /// Runs until all has been handled that was sent before now, there and back.
    func settle() {
        for connection in [client, fake.connection, client] where connection.isConnected {
            let ping = MethodCall(
                destination: fake.connection.isConnected ? fake.connection.uniqueName : .bus, path: "/org/freedesktop/DBus",
                interface: "org.freedesktop.DBus.Peer", member: "Ping")
            _ = try? connection.callAndWait(ping)
        }
    }

    /// Starts a cast whose events are collected.
    @discardableResult
    func start(_ options: CastOptions = CastOptions()) -> Cast {
        events = []
        let number = starts + 1
        starts = number
        let cast = portal.start(options) { [weak self] event in
            guard let self, number == starts else { return }
            events.append(event)
        }
        self.cast = cast
        return cast
    }
    private var starts = 0

    /// The last cast's events by name.
    var summaries: [String] { events.map(\.summary) }

    var isOver: Bool { events.last?.isLast ?? false }
    var isGranted: Bool { summaries.last == "granted" }

    var grant: CastGrant? {
        for case .granted(let grant) in events { return grant }
        return nil
    }

    /// How often the portal was asked for a step.
    func count(of step: FakePortal.Step) -> Int { fake.calls.filter { $0.step == step }.count }

    /// Whether the portal holds nothing for anybody.
    var isNothingOpen: Bool { fake.sessions.isEmpty && fake.requests.isEmpty }

    /// Whether a cast succeeds, now that the portal behaves, and leaves nothing behind.
    func nextStartWorks() -> Bool {
        cast?.close()
        guard wait(until: { self.isNothingOpen }) else { return false }
        let remote = fake.knobs.remote
        fake.knobs = FakePortal.Knobs()
        fake.knobs.remote = remote
        start()
        guard wait(until: { self.isGranted || self.isOver }), isGranted else { return false }
        cast?.close()
        return wait(until: { self.isNothingOpen }) && summaries == ["pickerOpened", "granted"]
    }
}
