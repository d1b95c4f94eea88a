// SPDX-License-Identifier: MIT

/// The D-Bus contract of the agent: the interface XML of this folder, which the build embeds.
public enum Contract {
    /// What the names of the agent's own errors begin with.
    public static let errorPrefix = "org.vitrine.ScreenShare1.Error."
    /// The version of the package.
    public static let packageVersion = "0.1.0"

    /// XML of `org.vitrine.ScreenShare1.Agent`.
    public static var agentXML: String { text(PackageResources.org_vitrine_ScreenShare1_Agent_xml) }
    /// XML of `org.vitrine.ScreenShare1.Track`.
    public static var trackXML: String { text(PackageResources.org_vitrine_ScreenShare1_Track_xml) }
    /// XML of `org.vitrine.ScreenShare1.Subscription`.
    public static var subscriptionXML: String { text(PackageResources.org_vitrine_ScreenShare1_Subscription_xml) }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
