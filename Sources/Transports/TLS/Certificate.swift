internal import CGnuTLS
internal import Glibc
internal import TransportKit

/// One X.509 certificate, read. Frees what GnuTLS keeps of it.
@safe struct Certificate: ~Copyable {
    let pointer: gnutls_x509_crt_t

    /// Reads a certificate in DER form.
    ///
    /// - Returns: nil where it is not one.
    init?(der: UnsafeRawBufferPointer) {
        guard let read = unsafe Self.load(der, GNUTLS_X509_FMT_DER) else { return nil }
        unsafe pointer = read
    }

    /// Reads the first certificate of a PEM text.
    ///
    /// - Returns: nil where there is none.
    init?(pem: Bytes) {
        let read = unsafe pem.withUnsafeBytes { unsafe Self.load($0, GNUTLS_X509_FMT_PEM) }
        guard let read = unsafe read else { return nil }
        unsafe pointer = read
    }

    private static func load(_ bytes: UnsafeRawBufferPointer, _ format: gnutls_x509_crt_fmt_t) -> gnutls_x509_crt_t? {
        var certificate: gnutls_x509_crt_t?
        guard unsafe gnutls_x509_crt_init(&certificate) == GNUTLS_E_SUCCESS else { return nil }
        var datum = unsafe gnutls_datum_t(borrowing: bytes)
        if unsafe gnutls_x509_crt_import(certificate, &datum, format) == GNUTLS_E_SUCCESS {
            return unsafe certificate
        }
        unsafe gnutls_x509_crt_deinit(certificate)
        return nil
    }

    /// Takes over a certificate.
    init(owning pointer: gnutls_x509_crt_t) {
        unsafe self.pointer = unsafe pointer
    }

    deinit { unsafe gnutls_x509_crt_deinit(pointer) }

    /// SHA-256 of its public key (SubjectPublicKeyInfo).
    var keyHash: PublicKeyHash? {
        unsafe PublicKeyHash(
            Bytes(unsafeUninitializedCapacity: 32) { room in
                var length = 32
                let target = unsafe room.baseAddress?.assumingMemoryBound(to: UInt8.self)
                return unsafe tk_gnutls_key_id(pointer, target, &length) == GNUTLS_E_SUCCESS ? length : 0
            })
    }

    /// SHA-256 of the whole certificate in DER.
    var certificateHash: PublicKeyHash? {
        var der = unsafe gnutls_datum_t()
        guard unsafe gnutls_x509_crt_export2(pointer, GNUTLS_X509_FMT_DER, &der) == GNUTLS_E_SUCCESS else { return nil }
        defer { unsafe tk_gnutls_free(der.data) }
        return unsafe PublicKeyHash(Bytes.sha256(of: UnsafeRawBufferPointer(start: der.data, count: Int(der.size))))
    }

    /// When its time begins.
    var notBefore: WallTime { unsafe WallTime(seconds: Int64(gnutls_x509_crt_get_activation_time(pointer))) }

    /// When its time ends.
    var notAfter: WallTime { unsafe WallTime(seconds: Int64(gnutls_x509_crt_get_expiration_time(pointer))) }

    /// Whether its key is one that this package refuses, and why.
    var weakness: String? {
        var bits: UInt32 = 0
        let raw = unsafe gnutls_x509_crt_get_pk_algorithm(pointer, &bits)
        guard raw >= 0 else { return "an unreadable key" }
        switch gnutls_pk_algorithm_t(UInt32(raw)) {
        case GNUTLS_PK_RSA, GNUTLS_PK_RSA_PSS:
            return bits < 2048 ? "an RSA key of \(bits) bits; at least 2048 are needed" : nil
        case GNUTLS_PK_ECDSA:
            return bits < 256 ? "an EC key of \(bits) bits; at least 256 are needed" : nil
        case GNUTLS_PK_EDDSA_ED25519, GNUTLS_PK_EDDSA_ED448:
            return nil
        default:
            return "a key of an unknown kind; RSA, ECDSA and EdDSA are allowed"
        }
    }

    /// Whether it was issued for a host: a name against its DNS names, an address against its IP addresses (B61).
    func isFor(_ host: Host) -> Bool {
        switch host {
        case .name(let name):
            return unsafe name.withCString { unsafe gnutls_x509_crt_check_hostname2(pointer, $0, 0) } != 0
        case .ipv4, .ipv6:
            let address = host.addressBytes
            return unsafe address.withUnsafeBufferPointer {
                unsafe gnutls_x509_crt_check_ip(pointer, $0.baseAddress, UInt32($0.count), 0)
            } != 0
        }
    }

    /// Whom it was issued for: its DNS names and IP addresses, or its common name where it has none.
    var names: [String] {
        var names: [String] = []
        var index: UInt32 = 0
        // A certificate may have thousands of names; nobody reads a message with more than a few.
        while index < 64 {
            var buffer = [UInt8](repeating: 0, count: 512)
            var length = buffer.count
            let kind = unsafe gnutls_x509_crt_get_subject_alt_name(pointer, index, &buffer, &length, nil)
            if kind == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE { break }
            index += 1
            guard kind >= 0 else { continue }
            switch gnutls_x509_subject_alt_name_t(UInt32(kind)) {
            case GNUTLS_SAN_DNSNAME:
                names.append(String(decoding: buffer.prefix(length), as: UTF8.self).printable(limit: 120))
            case GNUTLS_SAN_IPADDRESS:
                if let host = Host(addressBytes: buffer.prefix(length)) { names.append(host.bare) }
            default:
                continue
            }
        }
        if names.isEmpty, let commonName { names.append(commonName) }
        return names
    }

    private var commonName: String? {
        var buffer = [CChar](repeating: 0, count: 512)
        var length = buffer.count
        guard unsafe tk_gnutls_get_common_name(pointer, &buffer, &length) == GNUTLS_E_SUCCESS else { return nil }
        return String(decoding: buffer.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self).printable(limit: 120)
    }

    /// Its subject, for example `CN=door.example`.
    var subject: String { unsafe Self.text { unsafe gnutls_x509_crt_get_dn3(pointer, $0, 0) } }

    /// Who signed it.
    var issuer: String { unsafe Self.text { unsafe gnutls_x509_crt_get_issuer_dn3(pointer, $0, 0) } }

    private static func text(_ read: (UnsafeMutablePointer<gnutls_datum_t>) -> Int32) -> String {
        var datum = unsafe gnutls_datum_t()
        guard unsafe read(&datum) == GNUTLS_E_SUCCESS else { return "no name" }
        defer { unsafe tk_gnutls_free(datum.data) }
        let bytes = unsafe UnsafeRawBufferPointer(start: datum.data, count: Int(datum.size))
        return unsafe String(decoding: bytes, as: UTF8.self).printable(limit: 120)
    }
}

extension gnutls_datum_t {
    /// A datum that borrows memory for the length of one call. GnuTLS does not write through an input datum.
    init(borrowing bytes: UnsafeRawBufferPointer) {
        let base = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        unsafe self.init(data: UnsafeMutablePointer(mutating: base), size: UInt32(bytes.count))
    }
}

extension Bytes {
    /// SHA-256; empty where the library refuses.
    static func sha256(of bytes: UnsafeRawBufferPointer) -> Bytes {
        unsafe Bytes(unsafeUninitializedCapacity: 32) { room in
            let status = unsafe gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes.baseAddress, bytes.count, room.baseAddress)
            return status == GNUTLS_E_SUCCESS ? 32 : 0
        }
    }
}

extension Host {
    /// An address in network byte order; empty for a name. A scope is no part of it.
    var addressBytes: [UInt8] {
        func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
            unsafe withUnsafeBytes(of: value.bigEndian) { unsafe Array($0) }
        }
        switch self {
        case .name: return []
        case .ipv4(let address): return bigEndian(address.value)
        case .ipv6(let address, _): return bigEndian(address.high) + bigEndian(address.low)
        }
    }

    /// The address of 4 or 16 bytes in network byte order.
    init?(addressBytes bytes: some Collection<UInt8>) {
        func number(_ part: some Collection<UInt8>) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
        switch bytes.count {
        case 4: self = .ipv4(IPv4Address(value: UInt32(number(bytes))))
        case 16: self = .ipv6(IPv6Address(high: number(bytes.prefix(8)), low: number(bytes.dropFirst(8))), scope: nil)
        default: return nil
        }
    }
}
