# SPDX-License-Identifier: MIT
"""squatter.py BUS NAME ...: takes these names of a desktop's services, and answers as they would; presses Stop on every notification, again and again."""

import sys
import threading
import time
import types

from services import Notifications, Panel, Service


class PressingNotifications(Notifications):
    def Notify(self, *arguments):
        number = super().Notify(*arguments)
        threading.Thread(target=self._keep_pressing, args=number.unpack(), daemon=True).start()
        return number

    def _keep_pressing(self, number):
        for count in range(1_000):
            self.press(number, "stop")
            time.sleep(0.05)
            if count == 20:
                print("pressed", flush=True)


session = types.SimpleNamespace(bus_address=sys.argv[1])
kinds = {"org.kde.StatusNotifierWatcher": Panel, "org.freedesktop.Notifications": PressingNotifications}
kept = []
for name in sys.argv[2:]:
    if name in kinds:
        kept.append(kinds[name](session))
    else:
        kept.append(Service(session.bus_address, name))
        kept[-1].own()
print("ready", flush=True)
while True:
    time.sleep(3600)
