// SPDX-License-Identifier: MIT
public import DBus
import Loop

/// The desktop's portal, as far as it casts screens: starts casts, and knows what the portal last said of itself.
///
/// Nothing here starts the portal before somebody asks for a cast: one that starts before the desktop is ready finds no
/// backend, and never looks again. All calls go over the one connection, because sessions belong to the connection that
/// made them.
///
/// Thread: the connection's loop.
/// Ownership: keeps its casts; let go of it when they have ended.
///
/// Spec: https://flatpak.github.io/xdg-desktop-portal/docs/doc-org.freedesktop.portal.ScreenCast.html
public final class ScreenCastPortal {
    /// The portal's well-known name.
    static let name: BusName = "org.freedesktop.portal.Desktop"

    /// The application that this is, as its desktop file and its unit are named.
    static let applicationID = "org.vitrine.ScreenShare1"

    /// What the portal says of itself, as last known. Nil while no portal has been seen.
    public private(set) var properties: PortalProperties?
    /// Called when ``properties`` have become others. That happens in the course of a start.
    public var onPropertiesChanged: ((PortalProperties) -> Void)?
    /// Whether somebody owns the portal's name.
    public var isRunning: Bool { owner != nil }

    let connection: Connection
    /// How long a call may take. The first one may have to start the portal, which may wait 25 s for a backend that is dead.
    var callLimit = CastMachine.answerLimit
    private(set) var owner: BusName?
    /// Whom the properties are of.
    private var describedOwner: BusName?
    private var casts: [Int: Cast] = [:]
    private var lastNumber = 0

    /// Watches the portal's name. Does not start the portal.
    public init(_ connection: Connection) {
        self.connection = connection
        connection.watchName(Self.name) { [weak self] owner in self?.ownerChanged(owner) }
    }

    /// Starts a cast: makes a session, and has the portal open its picker.
    ///
    /// Ownership: the cast lives until its last event, whether the caller keeps it or not.
    ///
    /// - Parameter events: what becomes of it, on the connection's loop, never from within a call of the caller's.
    public func start(_ options: CastOptions, _ events: @escaping (CastEvent) -> Void) -> Cast {
        lastNumber += 1
        let cast = Cast(self, number: lastNumber, options, events)
        casts[lastNumber] = cast
        connection.loop.later { cast.begin() }
        return cast
    }

    /// Closes all casts. Flush the connection before it ends, so that the desktop's indicator goes out.
    public func closeAll() {
        for cast in casts.values { cast.close() }
    }

    /// The properties of the portal that runs now. Nil when they are to be read.
    var currentProperties: PortalProperties? {
        owner != nil && owner == describedOwner ? properties : nil
    }

    /// Tells the portal which application this is: the first that it hears of this connection, or it goes by the systemd unit.
    ///
    /// Portals before 1.19 do not know the call, and some want more than a host has: then it is the unit that says who asks.
    /// Spec: https://flatpak.github.io/xdg-desktop-portal/docs/doc-org.freedesktop.host.portal.Registry.html
    private func register() {
        connection.send(
            MethodCall(
                destination: Self.name, path: PortalPaths.desktop, interface: "org.freedesktop.host.portal.Registry", member: "Register",
                arguments: [.string(Self.applicationID), .options([:])]))
    }

    /// Reads the properties, and starts the portal when it does not run.
    func readProperties(_ completion: @escaping (Result<(properties: PortalProperties, owner: BusName), PortalError>) -> Void) {
        register()
        let call = MethodCall(
            destination: Self.name, path: PortalPaths.desktop, interface: "org.freedesktop.DBus.Properties", member: "GetAll",
            arguments: [.string(CastInterfaces.screenCast.text)])
        connection.call(call, timeout: callLimit) { [weak self] result in
            guard let self else { return }
            switch result {
            case .failure(let error):
                completion(.failure(PortalError(error, at: .properties)))
            case .success(let answer):
                guard let read = PortalProperties(answer) else {
                    completion(.failure(.malformed(.properties, "no version")))
                    return
                }
                findOwner { owner in
                    guard let owner else {
                        completion(.failure(.unresponsive(.properties)))
                        return
                    }
                    self.learn(read, of: owner)
                    completion(.success((read, owner)))
                }
            }
        }
    }

    /// Forgets a cast that has ended.
    func forget(_ number: Int) { casts[number] = nil }

    /// The bus tells of an owner before it delivers its answers, but the watch may not stand yet.
    private func findOwner(_ completion: @escaping (BusName?) -> Void) {
        if let owner { return completion(owner) }
        let call = MethodCall(
            destination: .bus, path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", member: "GetNameOwner",
            arguments: [.string(Self.name.text)])
        connection.call(call, timeout: callLimit) { result in
            let name = (try? result.get())?.first?.asString
            completion(name.flatMap { BusName($0) })
        }
    }

    private func learn(_ read: PortalProperties, of owner: BusName) {
        describedOwner = owner
        guard read != properties else { return }
        properties = read
        onPropertiesChanged?(read)
    }

    private func ownerChanged(_ new: BusName?) {
        let old = owner
        owner = new
        guard let old, old != new else { return }
        describedOwner = nil
        // In the order in which they were started.
        for number in casts.keys.sorted() { casts[number]?.portalLost() }
    }
}

/// The interfaces that a cast speaks.
enum CastInterfaces {
    static let screenCast: InterfaceName = "org.freedesktop.portal.ScreenCast"
    static let request: InterfaceName = "org.freedesktop.portal.Request"
    static let session: InterfaceName = "org.freedesktop.portal.Session"
}
