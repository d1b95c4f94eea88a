// SPDX-License-Identifier: MIT
import DBus

/// The backend's interfaces, as xdg-desktop-portal calls them.
enum BackendInterfaces {
    static let screenCast = described(
        """
        <node>
          <!-- What xdg-desktop-portal calls. "handle" is where the Request is while the call is open. Response: 0 yes, 1 cancelled, 2 failed. -->
          <interface name="org.freedesktop.impl.portal.ScreenCast">
            <method name="CreateSession">
              <arg type="o" name="handle" direction="in"/>
              <arg type="o" name="session_handle" direction="in"/>
              <arg type="s" name="app_id" direction="in"/>
              <arg type="a{sv}" name="options" direction="in"/>
              <arg type="u" name="response" direction="out"/>
              <arg type="a{sv}" name="results" direction="out"/>
            </method>
            <method name="SelectSources">
              <arg type="o" name="handle" direction="in"/>
              <arg type="o" name="session_handle" direction="in"/>
              <arg type="s" name="app_id" direction="in"/>
              <arg type="a{sv}" name="options" direction="in"/>
              <arg type="u" name="response" direction="out"/>
              <arg type="a{sv}" name="results" direction="out"/>
            </method>
            <method name="Start">
              <arg type="o" name="handle" direction="in"/>
              <arg type="o" name="session_handle" direction="in"/>
              <arg type="s" name="app_id" direction="in"/>
              <arg type="s" name="parent_window" direction="in"/>
              <arg type="a{sv}" name="options" direction="in"/>
              <arg type="u" name="response" direction="out"/>
              <arg type="a{sv}" name="results" direction="out"/>
            </method>
            <property name="AvailableSourceTypes" type="u" access="read"/>
            <property name="AvailableCursorModes" type="u" access="read"/>
            <property name="version" type="u" access="read"/>
          </interface>
        </node>
        """)

    static let request = described(
        """
        <node>
          <interface name="org.freedesktop.impl.portal.Request">
            <!-- Takes the question away. -->
            <method name="Close"/>
          </interface>
        </node>
        """)

    static let session = described(
        """
        <node>
          <interface name="org.freedesktop.impl.portal.Session">
            <!-- Ends the session and its streams. -->
            <method name="Close"/>
            <!-- The desktop ended the session. -->
            <signal name="Closed"/>
            <property name="version" type="u" access="read"/>
          </interface>
        </node>
        """)
}

/// The interface in XML that is part of the program.
func described(_ xml: String) -> InterfaceDescription {
    do {
        if let interface = try InterfaceDescription.parse(xml).first { return interface }
        preconditionFailure("no interface in:\n\(xml)")
    } catch {
        preconditionFailure("\(error) of:\n\(xml)")
    }
}
