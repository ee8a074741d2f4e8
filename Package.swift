// swift-tools-version: 6.2
import PackageDescription

/// Every Swift target is checked alike; targets that wrap C also say where they leave memory safety.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]
let wrapsC: [SwiftSetting] = strict + [.strictMemorySafety()]

let package = Package(
    name: "TransportKit",
    products: [
        .library(name: "TransportKit", targets: ["TransportKit"]),
        .library(name: "TransportIO", targets: ["TransportIO"]),
        .library(name: "QUICTransport", targets: ["QUICTransport"]),
        .library(name: "WebSocketTransport", targets: ["WebSocketTransport"]),
        .library(name: "MemoryTransport", targets: ["MemoryTransport"]),
        .library(name: "DirectCarrier", targets: ["DirectCarrier"]),
        .library(name: "MuxCarrier", targets: ["MuxCarrier"]),
        .library(name: "FallbackCarrier", targets: ["FallbackCarrier"]),
        .library(name: "NoiseCarrier", targets: ["NoiseCarrier"]),
        .library(name: "TunnelCarrier", targets: ["TunnelCarrier"]),
        .library(name: "DoorService", targets: ["DoorService"]),
        .library(name: "RelayCarrier", targets: ["RelayCarrier"]),
        .library(name: "RelayService", targets: ["RelayService"]),
        .library(name: "TransportHost", targets: ["TransportHost"]),
        .library(name: "TransportKitTesting", targets: ["TransportKitTesting"]),
        .executable(name: "transportkit", targets: ["transportkit"]),
    ],
    targets: [
        // The core: no C, no Foundation, nothing of ours.
        .target(name: "TransportKit", swiftSettings: strict),

        // Transports.
        .target(name: "CLinux", path: "Sources/Transports/CLinux"),
        .target(
            name: "TransportIO", dependencies: ["TransportKit", "CLinux"], path: "Sources/Transports/IO",
            swiftSettings: wrapsC),
        .systemLibrary(
            name: "CGnuTLS", path: "Sources/Transports/CGnuTLS", pkgConfig: "gnutls",
            providers: [.apt(["libgnutls28-dev"])]),
        .target(
            name: "TransportTLS", dependencies: ["TransportKit", "TransportIO", "CGnuTLS"],
            path: "Sources/Transports/TLS", swiftSettings: wrapsC),
        .systemLibrary(
            name: "CNgtcp2", path: "Sources/Transports/CNgtcp2", pkgConfig: "libngtcp2_crypto_gnutls",
            providers: [.apt(["libngtcp2-dev", "libngtcp2-crypto-gnutls-dev"])]),
        .target(
            name: "QUICTransport", dependencies: ["TransportKit", "TransportIO", "TransportTLS", "CNgtcp2"],
            path: "Sources/Transports/QUIC", swiftSettings: wrapsC),
        // wslay has no pkg-config file in Debian.
        .systemLibrary(
            name: "CWslay", path: "Sources/Transports/CWslay", providers: [.apt(["libwslay-dev"])]),
        .target(
            name: "WebSocketTransport",
            dependencies: ["TransportKit", "TransportIO", "TransportTLS", "CWslay", "CGnuTLS"],
            path: "Sources/Transports/WebSocket", swiftSettings: wrapsC),
        .target(
            name: "MemoryTransport", dependencies: ["TransportKit"], path: "Sources/Transports/Memory",
            swiftSettings: strict),

        // Carriers.
        .target(
            name: "DirectCarrier", dependencies: ["TransportKit"], path: "Sources/Carriers/Direct",
            swiftSettings: strict),
        .target(
            name: "MuxCarrier", dependencies: ["TransportKit"], path: "Sources/Carriers/Mux", swiftSettings: strict),
        .target(
            name: "FallbackCarrier", dependencies: ["TransportKit"], path: "Sources/Carriers/Fallback",
            swiftSettings: strict),
        .systemLibrary(
            name: "CSodium", path: "Sources/Carriers/CSodium", pkgConfig: "libsodium",
            providers: [.apt(["libsodium-dev"])]),
        .target(
            name: "NoiseCarrier", dependencies: ["TransportKit", "CSodium"], path: "Sources/Carriers/Noise",
            swiftSettings: wrapsC),
        .target(
            name: "TunnelCarrier", dependencies: ["TransportKit", "NoiseCarrier", "CSodium"],
            path: "Sources/Carriers/Tunnel", swiftSettings: wrapsC),
        .target(
            name: "RelayCarrier", dependencies: ["TransportKit", "NoiseCarrier", "CSodium"],
            path: "Sources/Carriers/Relay", swiftSettings: wrapsC),

        // Services.
        .target(
            name: "DoorService", dependencies: ["TransportKit", "NoiseCarrier", "TunnelCarrier"],
            path: "Sources/Services/Door", swiftSettings: strict),
        .target(
            name: "RelayService", dependencies: ["TransportKit", "RelayCarrier"], path: "Sources/Services/Relay",
            swiftSettings: strict),

        // The host.
        .systemLibrary(
            name: "CYAML", path: "Sources/Host/CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .systemLibrary(
            name: "CQREncode", path: "Sources/Host/CQREncode", pkgConfig: "libqrencode",
            providers: [.apt(["libqrencode-dev"])]),
        .target(
            name: "TransportHost",
            dependencies: [
                "TransportKit", "TransportIO", "TransportTLS", "QUICTransport", "WebSocketTransport",
                "MemoryTransport", "DirectCarrier", "MuxCarrier", "NoiseCarrier", "TunnelCarrier", "FallbackCarrier",
                "DoorService", "RelayCarrier", "RelayService", "CYAML", "CQREncode",
            ],
            path: "Sources/Host", exclude: ["CYAML", "CQREncode", "CLI"], swiftSettings: wrapsC),
        .executableTarget(
            name: "transportkit", dependencies: ["TransportKit", "TransportIO", "TransportHost"],
            path: "Sources/Host/CLI", swiftSettings: strict),

        // For tests, ours and those of plug-in authors.
        .target(name: "TransportKitTesting", dependencies: ["TransportKit"], swiftSettings: strict),

        // Examples use what any outside package can: `packageAccess` is off.
        .executableTarget(
            name: "compose-a-chain",
            dependencies: [
                "TransportKit", "TransportIO", "TransportTLS", "QUICTransport", "WebSocketTransport", "DirectCarrier",
                "MuxCarrier",
            ],
            path: "Examples/compose-a-chain", exclude: ["README.md"], packageAccess: false, swiftSettings: strict),
        .executableTarget(
            name: "swap-a-policy",
            dependencies: ["TransportKit", "TransportIO", "MemoryTransport", "DirectCarrier"],
            path: "Examples/swap-a-policy", exclude: ["README.md"], packageAccess: false, swiftSettings: strict),
        .target(
            name: "FramedTCP", dependencies: ["TransportKit", "TransportIO"],
            path: "Examples/write-a-transport/FramedTCP", packageAccess: false, swiftSettings: strict),
        .executableTarget(
            name: "write-a-transport", dependencies: ["TransportKit", "TransportIO", "TransportHost", "FramedTCP"],
            path: "Examples/write-a-transport/Demo", packageAccess: false, swiftSettings: strict),

        // Measurements; see docs/performance.md.
        .executableTarget(
            name: "bench",
            dependencies: [
                "TransportKit", "TransportIO", "TransportTLS", "QUICTransport", "WebSocketTransport", "DirectCarrier",
                "MuxCarrier", "TransportHost", "CLinux",
            ],
            path: "Benchmarks/bench", swiftSettings: strict),
        // Measurements on the rig's shaped links; see docs/measurements.md.
        .executableTarget(
            name: "tables",
            dependencies: [
                "TransportKit", "TransportIO", "TransportTLS", "QUICTransport", "WebSocketTransport", "DirectCarrier",
                "MuxCarrier", "RigSupport",
            ],
            path: "Benchmarks/tables", swiftSettings: strict),

        // Tests mirror Sources.
        .testTarget(
            name: "TransportKitTests", dependencies: ["TransportKit", "MemoryTransport", "TransportKitTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "TransportIOTests", dependencies: ["TransportKit", "TransportIO", "CLinux", "TransportKitTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "TransportTLSTests",
            dependencies: ["TransportKit", "TransportIO", "TransportTLS", "TransportKitTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "QUICTransportTests",
            dependencies: ["TransportKit", "TransportIO", "TransportTLS", "QUICTransport", "TransportKitTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "WebSocketTransportTests",
            dependencies: [
                "TransportKit", "TransportIO", "TransportTLS", "WebSocketTransport", "TransportKitTesting",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "DirectCarrierTests",
            dependencies: ["TransportKit", "DirectCarrier", "MemoryTransport", "TransportKitTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "MuxCarrierTests",
            dependencies: ["TransportKit", "MuxCarrier", "MemoryTransport", "TransportKitTesting"],
            exclude: ["Peer"], swiftSettings: strict),
        .testTarget(
            name: "FallbackCarrierTests",
            dependencies: ["TransportKit", "FallbackCarrier", "MemoryTransport", "TransportKitTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "NoiseCarrierTests",
            dependencies: ["TransportKit", "NoiseCarrier", "MuxCarrier", "MemoryTransport", "TransportKitTesting"],
            swiftSettings: strict),
        .testTarget(
            name: "TunnelCarrierTests",
            dependencies: [
                "TransportKit", "NoiseCarrier", "MuxCarrier", "TunnelCarrier", "DoorService", "MemoryTransport",
                "TransportKitTesting",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "DoorServiceTests",
            dependencies: [
                "TransportKit", "NoiseCarrier", "TunnelCarrier", "DoorService", "MemoryTransport",
                "TransportKitTesting",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "RelayCarrierTests",
            dependencies: [
                "TransportKit", "NoiseCarrier", "RelayCarrier", "MemoryTransport", "TransportKitTesting",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "RelayServiceTests",
            dependencies: [
                "TransportKit", "NoiseCarrier", "RelayCarrier", "RelayService", "MemoryTransport",
                "TransportKitTesting",
            ],
            swiftSettings: strict),
        // Every carrier against the one suite.
        .testTarget(
            name: "CarrierConformanceTests",
            dependencies: [
                "TransportKit", "DirectCarrier", "MuxCarrier", "NoiseCarrier", "FallbackCarrier", "MemoryTransport",
                "TransportKitTesting",
            ],
            swiftSettings: strict),
        // Every transport against the one suite.
        .testTarget(
            name: "ConformanceTests",
            dependencies: [
                "TransportKit", "TransportIO", "TransportTLS", "QUICTransport", "WebSocketTransport",
                "MemoryTransport", "MuxCarrier", "FramedTCP", "TransportKitTesting",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TransportHostTests",
            dependencies: [
                "TransportKit", "TransportIO", "TransportTLS", "NoiseCarrier", "TunnelCarrier", "TransportHost",
                "TransportKitTesting", "RelayCarrier", "WebSocketTransport",
            ],
            swiftSettings: strict),
        // The rig: namespaces, shaped links and the real executables; see docs/rig.md.
        .executableTarget(name: "linkshaper", path: "Tests/Rig/linkshaper"),
        .target(name: "CRig", path: "Tests/Rig/CRig"),
        .target(
            name: "RigSupport", dependencies: ["TransportKit", "TransportIO", "CRig"], path: "Tests/Rig/RigSupport",
            swiftSettings: strict),
        .testTarget(
            name: "RigTests", dependencies: ["TransportKit", "TransportIO", "RigSupport"], path: "Tests/Rig/RigTests",
            swiftSettings: strict),
        // Peers that nobody here wrote.
        .target(name: "CFuzz", path: "Tests/Fuzz/CFuzz"),
        .testTarget(
            name: "FuzzTests",
            dependencies: [
                "TransportKit", "TransportIO", "QUICTransport", "WebSocketTransport", "MuxCarrier", "NoiseCarrier",
                "TunnelCarrier", "TransportHost", "TransportKitTesting", "CFuzz",
            ],
            path: "Tests/Fuzz/FuzzTests", swiftSettings: strict),
        .testTarget(
            name: "InteropTests",
            dependencies: [
                "TransportKit", "TransportIO", "TransportTLS", "QUICTransport", "WebSocketTransport", "MuxCarrier",
                "NoiseCarrier", "RelayCarrier", "RelayService",
            ],
            exclude: ["Peers"], swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
