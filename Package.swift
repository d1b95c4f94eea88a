// swift-tools-version: 6.0
// SPDX-License-Identifier: MIT
import PackageDescription

/// Debian 13's own compiler is Swift 6.0: nothing newer is used.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

/// A layer of the agent, listed in the order in which a frame meets them. Each may import only what it names:
/// `make build` passes `--explicit-target-dependency-import-check error`.
func layer(_ name: String, _ dependencies: [Target.Dependency], path: String? = nil) -> Target {
    .target(name: name, dependencies: dependencies, path: path, swiftSettings: settings)
}

func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

let package = Package(
    name: "vitrine",
    products: [
        .executable(name: "vitrine-agent", targets: ["vitrine-agent"]),
        .executable(name: "vitrinectl", targets: ["vitrinectl"]),
        .executable(name: "vitrine-testscreen", targets: ["vitrine-testscreen"]),
    ],
    targets: [
        // C libraries: a module map and one-line re-exports of macros each.
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CDBus", pkgConfig: "dbus-1"),
        .systemLibrary(name: "CPipeWire", pkgConfig: "libpipewire-0.3"),
        .systemLibrary(name: "CVPX", pkgConfig: "vpx"),
        .systemLibrary(name: "COpus", pkgConfig: "opus"),
        .systemLibrary(name: "CYUV"),

        layer("Loop", ["CLinux"]),
        layer("DBus", ["Loop", "CDBus"]),
        layer("PipeWire", ["Loop", "CPipeWire"]),
        .target(
            name: "Contract",
            path: "dbus",
            exclude: ["frames.md"],
            resources: [
                .embedInCode("org.vitrine.ScreenShare1.Agent.xml"),
                .embedInCode("org.vitrine.ScreenShare1.Track.xml"),
                .embedInCode("org.vitrine.ScreenShare1.Subscription.xml"),
            ],
            swiftSettings: settings),
        layer("Portal", ["DBus", "Loop"]),
        layer("Frames", ["Loop", "CYUV"]),
        layer("Composition", ["Frames", "Loop"]),
        layer("Capture", ["Composition", "Frames", "PipeWire", "Loop", "CPipeWire"]),
        layer("Encoding", ["Frames", "Loop", "CVPX"]),
        layer("Sound", ["PipeWire", "Loop", "CPipeWire", "COpus"]),
        layer("Matroska", []),
        layer("Streams", ["Encoding", "Sound", "Frames", "Matroska", "Loop", "CLinux"]),
        layer("Choices", ["Loop"]),
        layer("Indicator", ["DBus", "Loop"]),
        layer(
            "Agent",
            [
                "Contract", "Choices", "Indicator", "Portal", "Capture", "Composition", "Sound", "Streams", "Encoding", "Frames", "DBus",
                "Loop",
            ]),

        program("vitrine-agent", ["Agent", "DBus", "Loop"]),
        program("vitrinectl", ["Contract", "Choices", "Matroska", "DBus", "Loop"]),
        program("vitrine-testscreen", ["Contract", "DBus", "PipeWire", "Loop", "CLinux", "CPipeWire"]),

        tests("LoopTests", ["Loop"]),
        // A bus of a test's own, and a portal front end that misbehaves on command.
        layer("TestSupport", ["DBus", "Loop"], path: "Tests/Support"),
        tests("DBusTests", ["DBus", "TestSupport", "Loop"]),
        tests("PortalTests", ["Portal", "TestSupport", "DBus", "Loop"]),
        // Counts allocations where there must be none.
        .target(name: "CAllocations", path: "Tests/CAllocations"),
        tests("FramesTests", ["Frames", "TestSupport", "Loop", "CAllocations"]),
        tests("CompositionTests", ["Composition", "Frames", "Loop"]),
        tests("CaptureTests", ["Capture", "Frames", "PipeWire", "TestSupport", "Loop", "CAllocations", "CLinux", "CPipeWire"]),
        .systemLibrary(name: "CVPXDecoding", path: "Tests/CVPXDecoding", pkgConfig: "vpx"),
        tests("EncodingTests", ["Encoding", "Frames", "Loop", "CVPXDecoding"]),
        tests("SoundTests", ["Sound", "Loop", "CAllocations", "COpus"]),
        tests("MatroskaTests", ["Matroska"]),
        tests("StreamsTests", ["Streams", "Encoding", "Sound", "Frames", "Loop", "CLinux"]),
        tests("ChoicesTests", ["Choices", "Loop"]),
        tests("AgentTests", ["Agent", "Contract", "Sound", "DBus", "Loop"]),
        tests("ControlTests", ["vitrinectl", "Contract", "Matroska", "DBus", "Loop"]),
    ]
)
