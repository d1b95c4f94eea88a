// SPDX-License-Identifier: MIT
import DBus

/// The one call, `Agent.SetScreenShare`, on the desktop track.
extension Track {
    /// SetScreenShare(true): listens and opens the picker, joins a start that is under way, or applies live options.
    func share(_ call: Call, _ identity: Identity) {
        if !isUnderWay { agent.readConfiguration() }
        let mix = Agent.mix(in: call.options(at: 1)) ?? (isUnderWay ? .none : agent.defaults.audio)
        whenSoundIsKnown(for: mix, call) {
            self.whenSettled(call) { self.shareKnowingSound(call, identity) }
        }
    }

    private var isUnderWay: Bool { machine.isChoosing || machine.isActive }

    private func shareKnowingSound(_ call: Call, _ identity: Identity) {
        do throws(AgentError) {
            let given = call.options(at: 1)
            var reader = OptionReader(given)
            // A new share starts from the defaults, except for the properties: what was hidden stays hidden. One that runs goes on from what it has.
            let isUnderWay = isUnderWay
            var new = isUnderWay ? options : agent.defaults
            (new.crop, new.masks, new.layout) = (options.crop, options.masks, options.layout)
            try new.apply(&reader)
            let start = try StartOptions(&reader)
            try reader.finish()
            // What the person has set holds for those programs for which it can.
            if given["persist"] != nil { try new.checkPersistence(of: identity, onDesktopTrack: true) }
            let waiter: ((AgentError?) -> Void)? = start.waits ? { [path] error in call.answer(error, [.objectPath(path)]) } : nil
            if !isUnderWay { try agent.checkSound(new.audio) }
            if isUnderWay {
                try checkLive(new, given)
                options = new
                endForbiddenSubscriptions()
                let waits = waiter != nil && machine.isChoosing
                // How long the picker stays open was said by who opened it; who joins may still wait less long.
                if let waiter, waits { joinStart(waiter, atMost: given["timeout"] == nil ? 0 : start.timeout) }
                applyOptions { [path] in if !waits { call.reply([.objectPath(path)]) } }
            } else {
                try agent.checkNoPickerIsOpen()
                options = new
                endForbiddenSubscriptions()
                applyOptions()
                startCapture()
                try startBroadcast(start, by: Starter(client: call.sender, identity: identity), waiter)
                if waiter == nil { call.reply([.objectPath(path)]) }
            }
        } catch {
            call.fail(error)
        }
    }

    /// SetScreenShare(false): closes an open picker, or ends broadcast and capture.
    func stopSharing(_ call: Call, _ identity: Identity) {
        do throws(AgentError) {
            // Accepted and checked, as for true: a client passes the same ones.
            var reader = OptionReader(call.options(at: 1))
            var ignored = TrackOptions()
            try ignored.apply(&reader)
            _ = try StartOptions(&reader)
            try reader.finish()
        } catch {
            return call.fail(error)
        }
        stopCapture(.stopped(by: identity)) { [path] in call.reply([.objectPath(path)]) }
    }

    /// - Throws: `Busy`, naming what only a new start can change.
    private func checkLive(_ new: TrackOptions, _ given: [String: Value]) throws(AgentError) {
        var frozen: [String] = []
        if new.sources != options.sources { frozen.append("sources") }
        if new.isMultiple != options.isMultiple { frozen.append("multiple") }
        if new.cursor != options.cursor { frozen.append("cursor") }
        if new.audio != options.audio { frozen.append("audio") }
        if new.isDetached != options.isDetached { frozen.append("detached") }
        if new.persistence != options.persistence { frozen.append("persist") }
        if new.restoreKey != options.restoreKey { frozen.append("restore-key") }
        guard !frozen.isEmpty else { return }
        throw AgentError(
            .busy, "\(frozen.joined(separator: ", ")) cannot change while the share is under way: call SetScreenShare(false) first")
    }
}
