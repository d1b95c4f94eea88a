// SPDX-License-Identifier: MIT
import DBus

/// The portal's interfaces, as far as casts use them.
///
/// Spec: https://flatpak.github.io/xdg-desktop-portal/docs/doc-org.freedesktop.portal.ScreenCast.html
enum Interfaces {
    static let registry = description(
        """
        <node>
          <interface name="org.freedesktop.host.portal.Registry">
            <method name="Register">
              <arg name="app_id" type="s" direction="in"/>
              <arg name="options" type="a{sv}" direction="in"/>
            </method>
          </interface>
        </node>
        """)

    static let screenCast = description(
        """
        <node>
          <interface name="org.freedesktop.portal.ScreenCast">
            <method name="CreateSession">
              <arg name="options" type="a{sv}" direction="in"/>
              <arg name="handle" type="o" direction="out"/>
            </method>
            <method name="SelectSources">
              <arg name="session_handle" type="o" direction="in"/>
              <arg name="options" type="a{sv}" direction="in"/>
              <arg name="handle" type="o" direction="out"/>
            </method>
            <method name="Start">
              <arg name="session_handle" type="o" direction="in"/>
              <arg name="parent_window" type="s" direction="in"/>
              <arg name="options" type="a{sv}" direction="in"/>
              <arg name="handle" type="o" direction="out"/>
            </method>
            <method name="OpenPipeWireRemote">
              <arg name="session_handle" type="o" direction="in"/>
              <arg name="options" type="a{sv}" direction="in"/>
              <arg name="fd" type="h" direction="out"/>
            </method>
            <property name="AvailableSourceTypes" type="u" access="read"/>
            <property name="AvailableCursorModes" type="u" access="read"/>
            <property name="version" type="u" access="read"/>
          </interface>
        </node>
        """)

    static let request = description(
        """
        <node>
          <interface name="org.freedesktop.portal.Request">
            <method name="Close"/>
            <signal name="Response">
              <arg name="response" type="u"/>
              <arg name="results" type="a{sv}"/>
            </signal>
          </interface>
        </node>
        """)

    static let session = description(
        """
        <node>
          <interface name="org.freedesktop.portal.Session">
            <method name="Close"/>
            <signal name="Closed">
              <arg name="details" type="a{sv}"/>
            </signal>
            <property name="version" type="u" access="read"/>
          </interface>
        </node>
        """)

    private static func description(_ xml: String) -> InterfaceDescription {
        guard let description = try? InterfaceDescription.parse(xml).first else { preconditionFailure("no interface in \(xml)") }
        return description
    }
}
