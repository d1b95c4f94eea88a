# SPDX-License-Identifier: MIT
"""What a client heard of a transition, message by message, in the order in which it came from the bus."""

import dataclasses

from harness import DESKTOP_TRACK, ROOT


@dataclasses.dataclass(frozen=True)
class Message:
    """`what` is `track`, `agent` (a PropertiesChanged of that object), or `signal`, `reply`, `error`."""

    what: str
    name: str
    value: object

    def __repr__(self):
        return f"{self.what} {self.name} {self.value}"


def story(agent, since, path=DESKTOP_TRACK):
    """The messages about one track and about the agent itself, since a mark."""
    messages, last = [], None
    for event in agent.events[since:]:
        if event.kind == "changed":
            if event.path not in (path, ROOT):
                continue
            if last == (event.path, event.batch):
                messages[-1].value[event.name] = event.value
            else:
                messages.append(Message("track" if event.path == path else "agent", "", {event.name: event.value}))
                last = (event.path, event.batch)
            continue
        if event.path == path or (event.path == ROOT and event.kind in ("reply", "error")):
            # Replies to Get and the like are no part of it.
            if not event.interface.startswith("org.freedesktop."):
                messages.append(Message(event.kind, event.name, event.value))
    return messages


def last_of(agent, since, count, path=DESKTOP_TRACK):
    """The last messages; fails when there were fewer."""
    found = story(agent, since, path)
    assert len(found) >= count, found
    return found[-count:]
