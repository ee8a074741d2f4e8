internal import Dispatch
internal import Glibc
package import NoiseCarrier
internal import Synchronization
package import TransportKit
internal import TransportTLS
package import TunnelCarrier

/// The devices that a box lets in, and the codes with which new ones may come: one file in the state directory.
///
/// A device is told of only once it is in the file, so a restart forgets none. A file that cannot be read is set aside and
/// begun anew; one of a newer version is left alone, and then nothing can be changed.
package final class DeviceRoster: BoxAdmission {
    /// Why something cannot be done.
    package struct Failure: Error, Sendable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    /// A code that admits one device.
    private struct Code {
        var code: Bytes
        var until: Instant
    }

    private struct State {
        var devices: [StoredDevices.Device] = []
        var codes: [Code] = []
    }

    /// How long a code is good.
    package static let codeLifetime = Duration.seconds(600)
    /// How many codes are good at once; a further one takes the place of the oldest.
    static let codeLimit = 8
    /// How many devices a box has at most; a door takes 4,096.
    static let deviceLimit = 1024
    private static let sizeLimit = 4 << 20

    private let state = Mutex(State())
    private let turns = DispatchQueue(label: "transportkit.devices")
    private let directory: StateDirectory?
    private let path: String?
    private let isLeftAlone: Bool
    private let time: any TimeSource
    private let log: Log

    /// Reads the devices of a home.
    ///
    /// - Parameter directory: where they are kept; without it they are forgotten with the roster.
    package init(of home: HomeID, in directory: StateDirectory?, time: any TimeSource, log: Log) {
        self.directory = directory
        self.time = time
        self.log = log
        path = directory?.file("devices-\(home).json")
        var isLeftAlone = false
        if let path {
            do throws(StoredDevices.Unreadable) {
                if let bytes = try Self.contents(of: path) {
                    let stored = try StoredDevices(bytes)
                    state.withLock { $0.devices = Array(stored.devices.prefix(Self.deviceLimit)) }
                }
            } catch {
                switch error {
                case .newer(let version):
                    isLeftAlone = true
                    log.warning(
                        "\(path) has version \(version), which a newer transportkit wrote: it is left alone, so no device "
                            + "is let in and none can be added; run the newer one")
                case .broken:
                    let aside = "\(path).damaged"
                    let isAside = unsafe rename(path, aside) == 0
                    log.warning(
                        "\(path) cannot be read as what it should be"
                            + (isAside ? ", and is kept as \(aside)" : "")
                            + ": no device is known any more, and each must be paired again")
                }
            }
        } else {
            log.warning("there is no state directory, so devices are forgotten when this one stops")
        }
        self.isLeftAlone = isLeftAlone
    }

    private static func contents(of path: String) throws(StoredDevices.Unreadable) -> [UInt8]? {
        guard FileCheck.exists(path) else { return nil }
        guard let bytes = try? TLSFile.read(path, what: "the list of devices"), bytes.count <= sizeLimit else {
            throw .broken
        }
        return Array(bytes)
    }

    // MARK: - Admission

    /// The devices of the home.
    package func roster() async -> [StaticPublicKey] { state.withLock { $0.devices.compactMap(\.publicKey) } }

    /// Whether a device is let in; a fresh code is used up, whoever shows it.
    package func admits(_ key: StaticPublicKey, code: Bytes) async -> Bool {
        let now = time.now()
        let (isKnown, isFresh) = state.withLock { state in
            state.codes.removeAll { $0.until <= now }
            let count = state.codes.count
            state.codes.removeAll { $0.code == code }
            let isFresh = state.codes.count < count
            return (state.devices.contains { $0.publicKey == key }, isFresh)
        }
        if isKnown { return true }
        guard isFresh else { return false }
        let added = time.wallNow().seconds
        do throws(Failure) {
            try await change { (devices) throws(Failure) in
                guard devices.count < Self.deviceLimit else {
                    throw Failure("there are \(Self.deviceLimit) devices already; revoke one first")
                }
                devices.append(StoredDevices.Device(key, added: added))
            }
            log.info("a new device was paired: \(key)")
            return true
        } catch {
            log.warning("a new device was not paired: \(error)")
            return false
        }
    }

    /// Draws a code that admits one device, once.
    ///
    /// - Returns: the code, and one that no longer counts, if it took its place.
    package func makeCode() throws(Failure) -> (code: Bytes, dropped: Bytes?) {
        guard !isLeftAlone else { throw leftAlone }
        let code = Bytes((0..<PairingHash.codeLength).map { _ in UInt8.random(in: 0...255) })
        let now = time.now()
        return state.withLock { state in
            state.codes.removeAll { $0.until <= now }
            let dropped = state.codes.count < Self.codeLimit ? nil : state.codes.removeFirst().code
            state.codes.append(Code(code: code, until: now + Self.codeLifetime))
            return (code, dropped)
        }
    }

    // MARK: - Devices

    /// The devices, in the order in which they came.
    package var devices: [StoredDevices.Device] { state.withLock { $0.devices } }

    /// Gives a device a name.
    package func name(_ word: String, _ name: String) async throws(Failure) -> StaticPublicKey {
        let text = name.printable(limit: 64)
        guard !text.isEmpty, text == name else {
            throw Failure("a name has 1 to 64 characters, and none that moves a cursor")
        }
        let key = try find(word)
        try await change { (devices) throws(Failure) in
            guard !devices.contains(where: { $0.name == name && $0.publicKey != key }) else {
                throw Failure("another device is called '\(name)' already")
            }
            for index in devices.indices where devices[index].publicKey == key { devices[index].name = name }
        }
        return key
    }

    /// Removes a device.
    package func revoke(_ word: String) async throws(Failure) -> StaticPublicKey {
        let key = try find(word)
        try await change { (devices) throws(Failure) in devices.removeAll { $0.publicKey == key } }
        log.info("the device \(key) was removed")
        return key
    }

    /// The device that a word means: a key, the beginning of one, or a name.
    private func find(_ word: String) throws(Failure) -> StaticPublicKey {
        let devices = devices
        let named = devices.filter { $0.name == word || $0.key == word }
        let found = named.isEmpty && word.utf8.count >= 4 ? devices.filter { $0.key.hasPrefix(word) } : named
        guard let device = found.first, let key = device.publicKey else {
            throw Failure(
                "there is no device '\(word.printable(limit: 64))'; `transportkit devices` lists those there are")
        }
        guard found.count == 1 else { throw Failure("several devices begin with '\(word)'; write more of the key") }
        return key
    }

    // MARK: - The file

    private var leftAlone: Failure { Failure("\(path ?? "the list of devices") was written by a newer transportkit") }

    /// Changes the devices; what cannot be kept is not done.
    private func change(
        _ body: @escaping @Sendable (inout [StoredDevices.Device]) throws(Failure) -> Void
    ) async throws(Failure) {
        guard !isLeftAlone else { throw leftAlone }
        let outcome = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Void, Failure>, Never>) in
            turns.async { [self] in
                do throws(Failure) {
                    var devices = devices
                    try body(&devices)
                    try write(devices)
                    state.withLock { $0.devices = devices }
                    continuation.resume(returning: .success(()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        try outcome.get()
    }

    private func write(_ devices: [StoredDevices.Device]) throws(Failure) {
        guard let path, let directory else { return }
        do {
            try directory.make()
            try TLSFile.write(Bytes(try StoredDevices(devices).encoded()), to: path, mode: 0o600)
        } catch {
            throw Failure("the list of devices cannot be kept: \(error)")
        }
    }
}
