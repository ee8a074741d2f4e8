internal import CGnuTLS
internal import Glibc
package import TransportKit

/// What a certificate is to be made of: ours are for tests and for the demo.
package struct CertificateRecipe: Sendable {
    /// A kind of private key. Those that our own checks refuse are for tests of these checks.
    package enum Key: Sendable, Hashable {
        /// NIST P-256.
        case ecP256
        /// NIST P-192, refused as too weak.
        case ecP192
        /// RSA; refused below 2,048 bits.
        case rsa(bits: UInt32)
    }

    /// Whom it is for, in its names and, the first of them, in its subject.
    package var hosts: [Host]
    /// When its time begins.
    package var notBefore: WallTime
    /// When its time ends.
    package var notAfter: WallTime
    /// The kind of its key.
    package var key: Key
    /// Whether it may issue others.
    package var isAuthority: Bool

    /// Makes a recipe; without times the certificate began a day ago, for the sake of peers whose clock is slow (B52),
    /// and lasts for a year.
    package init(
        hosts: [Host], notBefore: WallTime? = nil, notAfter: WallTime? = nil, key: Key = .ecP256,
        isAuthority: Bool = false
    ) {
        let now = TLSText.wallNow()
        self.hosts = hosts
        self.notBefore = notBefore ?? now + .seconds(-86_400)
        self.notAfter = notAfter ?? now + .seconds(365 * 86_400)
        self.key = key
        self.isAuthority = isAuthority
    }

    /// Makes the certificate.
    ///
    /// - Parameter issuer: whose key signs it; nil for its own.
    package func make(issuer: IssuedCertificate? = nil) throws(TransportError) -> IssuedCertificate {
        let key = try PrivateKey(self.key)
        var made: gnutls_x509_crt_t?
        try Self.check(unsafe gnutls_x509_crt_init(&made))
        guard let made = unsafe made else { throw TransportError(.resources, "there is no memory left") }
        let certificate = unsafe Certificate(owning: made)
        try unsafe fill(certificate.pointer, key)
        if let issuer {
            let signer = try PrivateKey(pem: issuer.key)
            let issuing = Certificate(pem: issuer.certificate)
            guard let issuing else { throw TransportError(.misuse, "the issuer's certificate cannot be read") }
            try unsafe sign(certificate.pointer, by: issuing.pointer, signer)
        } else {
            try unsafe sign(certificate.pointer, by: certificate.pointer, key)
        }
        let pem = unsafe try Self.take { unsafe gnutls_x509_crt_export2(certificate.pointer, GNUTLS_X509_FMT_PEM, $0) }
        return IssuedCertificate(certificate: pem, key: try key.pem())
    }

    private func fill(_ certificate: gnutls_x509_crt_t, _ key: borrowing PrivateKey) throws(TransportError) {
        try Self.check(unsafe gnutls_x509_crt_set_version(certificate, 3))
        try Self.check(unsafe gnutls_x509_crt_set_key(certificate, key.pointer))
        try Self.check(unsafe gnutls_x509_crt_set_activation_time(certificate, time_t(notBefore.seconds)))
        try Self.check(unsafe gnutls_x509_crt_set_expiration_time(certificate, time_t(notAfter.seconds)))
        // A positive number of 16 bytes (RFC 5280 §4.1.2.2).
        var serial = (0..<16).map { _ in UInt8.random(in: 0...255) }
        serial[0] = serial[0] & 0x3f | 0x40
        try Self.check(unsafe gnutls_x509_crt_set_serial(certificate, serial, serial.count))
        let name = hosts.first?.bare ?? "TransportKit"
        // RFC 5280 allows a common name of 64 characters; the names below are what counts.
        let commonName = Array(name.utf8.prefix(64)).map { CChar(bitPattern: $0) }
        try Self.check(unsafe tk_gnutls_set_common_name(certificate, commonName, UInt32(commonName.count)))
        for host in hosts {
            let bytes = host.isLiteral ? host.addressBytes : Array(host.bare.utf8)
            try Self.check(unsafe tk_gnutls_add_name(certificate, host.isLiteral ? 1 : 0, bytes, UInt32(bytes.count)))
        }
        try Self.check(unsafe gnutls_x509_crt_set_basic_constraints(certificate, isAuthority ? 1 : 0, -1))
        let usage = isAuthority ? GNUTLS_KEY_KEY_CERT_SIGN : GNUTLS_KEY_DIGITAL_SIGNATURE
        try Self.check(unsafe gnutls_x509_crt_set_key_usage(certificate, UInt32(usage)))
        if !isAuthority { try Self.check(unsafe tk_gnutls_set_purposes(certificate)) }
        let identifier = try unsafe Self.keyIdentifier(of: certificate)
        try Self.check(unsafe gnutls_x509_crt_set_subject_key_id(certificate, identifier, identifier.count))
    }

    private func sign(
        _ certificate: gnutls_x509_crt_t, by issuer: gnutls_x509_crt_t, _ key: borrowing PrivateKey
    ) throws(TransportError) {
        let identifier = try unsafe Self.keyIdentifier(of: issuer)
        try Self.check(unsafe gnutls_x509_crt_set_authority_key_id(certificate, identifier, identifier.count))
        try Self.check(unsafe gnutls_x509_crt_sign2(certificate, issuer, key.pointer, GNUTLS_DIG_SHA256, 0))
    }

    /// The first 20 bytes of the key's hash (RFC 7093 §2).
    private static func keyIdentifier(of certificate: gnutls_x509_crt_t) throws(TransportError) -> [UInt8] {
        var hash = [UInt8](repeating: 0, count: 32)
        var length = hash.count
        try check(unsafe tk_gnutls_key_id(certificate, &hash, &length))
        return Array(hash.prefix(20))
    }

    fileprivate static func check(_ status: Int32) throws(TransportError) {
        guard status >= 0 else {
            throw TransportError(.misuse, "a certificate cannot be made: \(TransportError.gnuTLSText(status))")
        }
    }

    /// Takes what the library has allocated.
    fileprivate static func take(
        _ export: (UnsafeMutablePointer<gnutls_datum_t>) -> Int32
    ) throws(TransportError) -> Bytes {
        var datum = unsafe gnutls_datum_t()
        try check(unsafe export(&datum))
        defer { unsafe tk_gnutls_free(datum.data) }
        return unsafe Bytes(copying: UnsafeRawBufferPointer(start: datum.data, count: Int(datum.size)))
    }
}

/// A certificate and its key, both as PEM.
package struct IssuedCertificate: Sendable {
    /// The certificate.
    package let certificate: Bytes
    /// The private key (PKCS #8), a secret.
    package let key: Bytes

    /// Writes `certificate.pem` and `key.pem` into a directory, the key for its owner's eyes only.
    package func write(directory: String) throws(TransportError) -> CertificateFiles {
        let files = CertificateFiles(certificate: "\(directory)/certificate.pem", key: "\(directory)/key.pem")
        try TLSFile.makeDirectory(directory)
        try TLSFile.write(key, to: files.key, mode: 0o600)
        try TLSFile.write(certificate, to: files.certificate, mode: 0o644)
        return files
    }
}

/// One private key. The library wipes it when it is freed.
@safe struct PrivateKey: ~Copyable {
    let pointer: gnutls_x509_privkey_t

    /// Makes a new one.
    init(_ kind: CertificateRecipe.Key) throws(TransportError) {
        var key = unsafe try Self.generate(kind)
        // GnuTLS writes the secret number without its leading zeros, and with one more where its first bit is set. RFC
        // 5915 §3 wants all 32 bytes and no more, and strict readers refuse the file. Every second key is right as it is.
        while case .ecP256 = kind, unsafe tk_gnutls_ec_secret_length(key) != 32 {
            unsafe gnutls_x509_privkey_deinit(key)
            unsafe key = try Self.generate(kind)
        }
        unsafe pointer = key
    }

    private static func generate(_ kind: CertificateRecipe.Key) throws(TransportError) -> gnutls_x509_privkey_t {
        unsafe try make { key in
            switch kind {
            case .ecP256: unsafe tk_gnutls_generate_ec(key, GNUTLS_ECC_CURVE_SECP256R1)
            case .ecP192: unsafe tk_gnutls_generate_ec(key, GNUTLS_ECC_CURVE_SECP192R1)
            case .rsa(let bits): unsafe gnutls_x509_privkey_generate(key, GNUTLS_PK_RSA, bits, 0)
            }
        }
    }

    /// Reads one.
    init(pem: Bytes) throws(TransportError) {
        unsafe pointer = try Self.make { key in
            unsafe pem.withUnsafeBytes { bytes in
                var datum = unsafe gnutls_datum_t(borrowing: bytes)
                return unsafe gnutls_x509_privkey_import2(key, &datum, GNUTLS_X509_FMT_PEM, nil, 0)
            }
        }
    }

    private static func make(
        _ fill: (gnutls_x509_privkey_t) -> Int32
    ) throws(TransportError) -> gnutls_x509_privkey_t {
        var made: gnutls_x509_privkey_t?
        try CertificateRecipe.check(unsafe gnutls_x509_privkey_init(&made))
        guard let made = unsafe made else { throw TransportError(.resources, "there is no memory left") }
        do throws(TransportError) {
            try CertificateRecipe.check(unsafe fill(made))
        } catch {
            unsafe gnutls_x509_privkey_deinit(made)
            throw error
        }
        return unsafe made
    }

    deinit { unsafe gnutls_x509_privkey_deinit(pointer) }

    /// SHA-256 of the public key that belongs to it.
    var keyHash: PublicKeyHash? {
        unsafe PublicKeyHash(
            Bytes(unsafeUninitializedCapacity: 32) { room in
                var length = 32
                let target = unsafe room.baseAddress?.assumingMemoryBound(to: UInt8.self)
                return unsafe tk_gnutls_private_key_id(pointer, target, &length) == GNUTLS_E_SUCCESS ? length : 0
            })
    }

    func pem() throws(TransportError) -> Bytes {
        unsafe try CertificateRecipe.take {
            unsafe gnutls_x509_privkey_export2_pkcs8(
                pointer, GNUTLS_X509_FMT_PEM, nil, UInt32(GNUTLS_PKCS_PLAIN.rawValue), $0)
        }
    }
}
