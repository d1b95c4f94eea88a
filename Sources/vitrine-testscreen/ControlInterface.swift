// SPDX-License-Identifier: MIT
import DBus

extension Control {
    /// The control interface. The keys of `Configure` are documented by `vitrine-testscreen --help`; `Settings` lists them.
    static let interface = described(
        """
        <node>
          <!--
            Drives the test screen: its pictures, its buffers, and its answers to the portal.
            A stream is meant by its index within its session, from 0. Methods that need a stream and find none fail with
            org.vitrine.TestScreen1.Error.NoStream.
          -->
          <interface name="org.vitrine.TestScreen1">
            <!--
              Sets some of the settings, at once for streams that run. Unknown key, wrong type or range: InvalidArgs naming the key, and
              nothing changes. The keys and their types are those of the property Settings; the program's own help explains each.
            -->
            <method name="Configure"><arg name="settings" type="a{sv}" direction="in"/></method>
            <!-- Goes back to the settings that the program was started with. -->
            <method name="Reset"/>
            <!-- Answers all pickers that are open, "ok", "cancel", "fail" or "error"; returns how many that were. -->
            <method name="Answer">
              <arg name="answer" type="s" direction="in"/>
              <arg name="answered" type="u" direction="out"/>
            </method>
            <!-- Ends all sessions, as the desktop's own indicator does: Closed, and the nodes go. Returns how many that were. -->
            <method name="EndSession"><arg name="ended" type="u" direction="out"/></method>
            <!-- Removes all nodes, without a word to the portal. -->
            <method name="Vanish"/>
            <!-- Removes one stream's node, without a word to the portal. -->
            <method name="VanishStream"><arg name="stream" type="u" direction="in"/></method>
            <!-- Makes all streams inactive, as for a minimised window. -->
            <method name="Pause"/>
            <!-- Takes Pause back. -->
            <method name="Resume"/>
            <!-- Makes one stream inactive. -->
            <method name="PauseStream"><arg name="stream" type="u" direction="in"/></method>
            <!-- Takes PauseStream back. -->
            <method name="ResumeStream"><arg name="stream" type="u" direction="in"/></method>
            <!-- Changes the size of all streams. -->
            <method name="SetSize">
              <arg name="width" type="u" direction="in"/>
              <arg name="height" type="u" direction="in"/>
            </method>
            <!-- Changes the size of one stream. -->
            <method name="SetStreamSize">
              <arg name="stream" type="u" direction="in"/>
              <arg name="width" type="u" direction="in"/>
              <arg name="height" type="u" direction="in"/>
            </method>
            <!-- Sends so many new pictures of each stream, at the rate that is set, and returns the last number of the first stream. -->
            <method name="PushFrames">
              <arg name="count" type="u" direction="in"/>
              <arg name="number" type="u" direction="out"/>
            </method>
            <!-- Sends so many new pictures of one stream, and returns the last one's number. -->
            <method name="PushStreamFrames">
              <arg name="stream" type="u" direction="in"/>
              <arg name="count" type="u" direction="in"/>
              <arg name="number" type="u" direction="out"/>
            </method>
            <!-- Sends one buffer of size 0 with garbage in it. Where cursor metadata are sent, the pointer goes a step in it. -->
            <method name="EmitCursorOnly"/>
            <!-- Sends one buffer with garbage in it that is marked as corrupted: in its "header" or in its "chunk". -->
            <method name="Corrupt"><arg name="place" type="s" direction="in"/></method>
            <!-- Puts the nodes into their error state, with a message. -->
            <method name="SetError"><arg name="message" type="s" direction="in"/></method>
            <!-- Destroys the links between the streams and those who look. -->
            <method name="Unlink"/>
            <!-- Takes format and buffers from the streams and from those who look. They get new ones at once, or, of a stream that is paused, with Resume. -->
            <method name="ClearFormat"/>

            <!-- Buffers that were handed over, by all streams that ever were. -->
            <property name="FramesProduced" type="t" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>
            </property>
            <!-- How often a picture was due and no buffer was free: whoever looks holds on to them. -->
            <property name="NullDequeues" type="t" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>
            </property>
            <!-- Sessions of the portal. -->
            <property name="OpenSessions" type="u" access="read"/>
            <!-- Starts that wait for an answer. -->
            <property name="PickersOpen" type="u" access="read"/>
            <!-- Starts that asked for an answer, ever; those that a remembered choice answered are not among them. -->
            <property name="PickersOpened" type="t" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>
            </property>
            <!-- Pickers that the portal closed before they were answered, ever. -->
            <property name="PickersClosed" type="t" access="read"/>
            <!-- Starts that a remembered choice answered, ever. -->
            <property name="RestoresUsed" type="t" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>
            </property>
            <!--
              What the portal asked for last: the options of SelectSources and Start (types, multiple, cursor_mode, persist_mode,
              restore_data), app_id, parent_window, session_handle. Empty before the first Start.
            -->
            <property name="LastStart" type="a{sv}" access="read"/>
            <!-- All settings. -->
            <property name="Settings" type="a{sv}" access="read"/>
            <!--
              The streams that exist: stream u, node u, serial t, state s, number u (of the newest picture), size (uu) and format s and
              stride u (as negotiated; absent before), buffers u, consumers u, frames t, null-dequeues t.
            -->
            <property name="Streams" type="aa{sv}" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>
            </property>
            <!--
              The last buffers that the streams that exist handed over, each with its picture's number and CLOCK_MONOTONIC in ns; stream by
              stream, at least 8192 of each.
            -->
            <property name="Timeline" type="a(ut)" access="read">
              <annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>
            </property>
          </interface>
        </node>
        """)
}
