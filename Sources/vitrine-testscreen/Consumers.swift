// SPDX-License-Identifier: MIT
import CPipeWire

/// Who reads which node: the links that the daemon knows, and whether pictures get through them.
///
/// Thread: the loop's that iterates PipeWire.
final class Consumers {
    /// A link, and the node at its end.
    private final class Link {
        let (output, input): (UInt32, UInt32)
        unowned let owner: Consumers
        var state = PW_LINK_STATE_INIT
        var isReaderRunning = false
        /// After a renegotiation a link comes back no further than to paused, and pictures go through it all the same.
        var wasActive = false
        fileprivate var proxies: [(proxy: OpaquePointer, hook: UnsafeMutablePointer<spa_hook>)] = []

        init(output: UInt32, input: UInt32, owner: Consumers) { (self.output, self.input, self.owner) = (output, input, owner) }

        var isReady: Bool { state.rawValue >= PW_LINK_STATE_PAUSED.rawValue }
        var flows: Bool { isReaderRunning && (state == PW_LINK_STATE_ACTIVE || isReady && wasActive) }

        func addHook(to proxy: OpaquePointer) -> UnsafeMutablePointer<spa_hook> {
            let hook = UnsafeMutablePointer<spa_hook>.allocate(capacity: 1)
            hook.initialize(to: spa_hook())
            proxies.append((proxy, hook))
            return hook
        }

        func forget() {
            for (proxy, hook) in proxies {
                spa_hook_remove(hook)
                pw_proxy_destroy(proxy)
                hook.deallocate()
            }
            proxies = []
        }
    }

    /// Pictures of the node with this id get through to a reader, at first or again.
    var onConsumer: ((_ node: UInt32) -> Void)?

    private let registry: OpaquePointer
    private var links: [UInt32: Link] = [:]
    private let linkEvents = UnsafeMutablePointer<pw_link_events>.allocate(capacity: 1)
    private let nodeEvents = UnsafeMutablePointer<pw_node_events>.allocate(capacity: 1)

    /// Lives as long as the registry.
    init(_ registry: OpaquePointer) {
        self.registry = registry
        linkEvents.initialize(to: pw_link_events())
        linkEvents.pointee.version = UInt32(PW_VERSION_LINK_EVENTS)
        linkEvents.pointee.info = linkInfo
        nodeEvents.initialize(to: pw_node_events())
        nodeEvents.pointee.version = UInt32(PW_VERSION_NODE_EVENTS)
        nodeEvents.pointee.info = nodeInfo
    }

    /// How many links come out of a node that have a format and buffers.
    func count(of node: UInt32) -> Int { links.values.count { $0.output == node && $0.isReady } }

    /// Whether anybody gets the node's pictures.
    func doFlow(from node: UInt32) -> Bool { links.values.contains { $0.output == node && $0.flows } }

    /// Cuts every link that comes out of a node.
    func unlink(_ node: UInt32) {
        for (id, link) in links where link.output == node { _ = cpw_registry_destroy(registry, id) }
    }

    /// Takes the format from a node and from all who read it, by suspending them, as a session manager does. While they are active the daemon agrees
    /// on one again at once.
    func clearFormats(_ node: UInt32) {
        for id in [node] + links.values.filter({ $0.output == node }).map(\.input) {
            guard let proxy = cpw_registry_bind_node(registry, id) else { continue }
            _ = cpw_node_suspend(proxy)
            pw_proxy_destroy(proxy)
        }
    }

    func appeared(_ id: UInt32, output: UInt32, input: UInt32) {
        guard let proxy = cpw_registry_bind_link(registry, id), let reader = cpw_registry_bind_node(registry, input) else { return }
        let link = Link(output: output, input: input, owner: self)
        links[id] = link
        let context = Unmanaged.passUnretained(link).toOpaque()
        _ = cpw_link_add_listener(proxy, link.addHook(to: proxy), linkEvents, context)
        _ = cpw_node_add_listener(reader, link.addHook(to: reader), nodeEvents, context)
    }

    func disappeared(_ id: UInt32) { links.removeValue(forKey: id)?.forget() }

    fileprivate static func changed(_ context: UnsafeMutableRawPointer, link state: pw_link_state?, readerRuns: Bool?) {
        let link = Unmanaged<Link>.fromOpaque(context).takeUnretainedValue()
        let flowed = link.flows
        link.state = state ?? link.state
        link.isReaderRunning = readerRuns ?? link.isReaderRunning
        link.wasActive = link.wasActive || link.state == PW_LINK_STATE_ACTIVE
        if link.flows, !flowed { link.owner.onConsumer?(link.output) }
    }
}

private func linkInfo(_ context: UnsafeMutableRawPointer?, _ info: UnsafePointer<pw_link_info>?) {
    guard let context, let info else { return }
    Consumers.changed(context, link: info.pointee.state, readerRuns: nil)
}

private func nodeInfo(_ context: UnsafeMutableRawPointer?, _ info: UnsafePointer<pw_node_info>?) {
    guard let context, let info else { return }
    Consumers.changed(context, link: nil, readerRuns: info.pointee.state == PW_NODE_STATE_RUNNING)
}
