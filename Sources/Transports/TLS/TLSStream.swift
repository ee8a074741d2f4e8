internal import CGnuTLS
package import TransportKit

/// TLS over any byte pipe, without I/O: what came from the pipe is fed in, what must go to the pipe is taken out.
///
/// The driver feeds, then advances the handshake until it is done, then reads until more input is needed; after any of
/// these calls, one that threw included, it sends what `takeOutput` holds. Confined to one loop. Between calls it keeps
/// no buffer, so an idle connection costs the GnuTLS session alone.
@safe package final class TLSStream {
    /// What a step of the handshake came to.
    package enum HandshakeProgress: Sendable, Hashable {
        /// Both ends agree; data may flow. A client certificate may still be refused later (RFC 8446 §4.4.2.4).
        case done
        /// More must come from the peer.
        case needsInput
    }

    /// What a read came to.
    package enum ReadResult: Sendable, Hashable {
        /// So many bytes were written; there may be more, so read again.
        case bytes(Int)
        /// More must come from the peer.
        case needsInput
        /// The peer closed TLS in good order; nothing follows.
        case end
    }

    private enum State {
        case handshaking
        case open
        case failed(TransportError)
    }

    /// The most plaintext one record carries (RFC 8446 §5.1).
    package static let recordBytes = 16_384
    /// Header, inner type, explicit nonce (TLS 1.2) and tag, rounded up.
    private static let recordOverhead = 40

    /// The session, for its properties.
    package let session: TLSSession

    private var state = State.handshaking
    /// What ended reading, held back while bytes that came before it were handed out.
    private var readEnding: Int32?
    private var saidGoodbye = false

    /// Wraps a session that was made without QUIC and has not said anything yet.
    package init(_ session: TLSSession) {
        self.session = session
    }

    // MARK: - The pipe's side

    /// Takes bytes that came from the pipe; the storage is shared where nothing older waits.
    package func feed(_ ciphertext: Bytes) {
        session.sink.feed(ciphertext)
    }

    /// Lets `body` advance or read from the caller's memory, and copies only what it left over.
    package func withInput<Result, Failure: Error>(
        borrowing ciphertext: UnsafeRawBufferPointer, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        unsafe session.sink.borrow(ciphertext)
        defer { session.sink.endBorrowing() }
        return try body()
    }

    /// Says that the pipe has ended: whatever TLS still waits for will not come.
    package func endInput() {
        session.sink.inputEnded = true
    }

    /// Whether `takeOutput` has anything.
    package var hasOutput: Bool { !session.sink.output.isEmpty }

    /// How many bytes `takeOutput` has.
    package var outputCount: Int { session.sink.output.count }

    /// Takes all bytes that must be sent, many records at once.
    package func takeOutput() -> Bytes {
        let output = session.sink.output
        session.sink.output = Bytes()
        return output
    }

    // MARK: - The application's side

    /// Goes on with the handshake as far as the input reaches.
    ///
    /// - Throws: why there is no session; the alert for the peer is then in the output.
    package func advanceHandshake() throws(TransportError) -> HandshakeProgress {
        switch state {
        case .open: return .done
        case .failed(let error): throw error
        case .handshaking: break
        }
        while true {
            let budget = session.sink.budget
            let status = unsafe gnutls_handshake(session.pointer)
            if status == GNUTLS_E_SUCCESS {
                state = .open
                session.sink.budget = TLSSink.handshakeBudget
                return .done
            }
            if status == GNUTLS_E_AGAIN || status == GNUTLS_E_INTERRUPTED {
                // It also stops after a record that was no whole message, with more records waiting.
                if session.sink.hasInput, session.sink.budget > 0, session.sink.budget < budget { continue }
                guard let ending = inputEnding else { return .needsInput }
                throw fail(ending)
            }
            // A warning has been taken from the input, so this loop ends with the input.
            if gnutls_error_is_fatal(status) == 0, session.sink.budget < budget { continue }
            throw fail(status)
        }
    }

    /// Fills `target` with plaintext, from as many records as are there.
    ///
    /// - Throws: why nothing more can be read; a peer that cut the pipe without closing TLS is `pathReset`. What came
    ///   before that has been handed out by then.
    package func read(into target: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadResult {
        switch state {
        case .handshaking: throw TransportError(.misuse, "TLS cannot be read before its handshake is done")
        case .failed(let error): throw error
        case .open: break
        }
        var count = 0
        while readEnding == nil, count < target.count {
            let budget = session.sink.budget
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: target[count...])
            let status = unsafe gnutls_record_recv(session.pointer, rest.baseAddress, rest.count)
            if status > 0 {
                count += status
                session.sink.budget = TLSSink.handshakeBudget
                continue
            }
            let code = Int32(truncatingIfNeeded: status)
            if code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED {
                if session.sink.hasInput, session.sink.budget > 0, session.sink.budget < budget { continue }
                readEnding = inputEnding
                break
            }
            // The warnings of TLS 1.2 say nothing that matters, and each has been taken from the input.
            if code == GNUTLS_E_WARNING_ALERT_RECEIVED, session.sink.budget < budget { continue }
            readEnding = code
        }
        if count > 0 { return .bytes(count) }
        guard let ending = readEnding else { return .needsInput }
        if ending == 0 { return .end }
        throw fail(ending)
    }

    /// Reads at most `limit` bytes into storage of their own.
    ///
    /// - Returns: the bytes; nil at the end, and an empty window where more input is needed.
    package func takePlaintext(upTo limit: Int = 65_536) throws(TransportError) -> Bytes? {
        let pending = unsafe session.sink.inputCount + gnutls_record_check_pending(session.pointer)
        if pending == 0, readEnding == nil, !session.sink.inputEnded, case .open = state { return Bytes() }
        var result: Result<ReadResult, TransportError> = .success(.needsInput)
        // One more record may lie half-read in GnuTLS.
        let room = min(limit, pending + Self.recordBytes)
        let bytes = unsafe Bytes(unsafeUninitializedCapacity: room) { room in
            do throws(TransportError) {
                let read = unsafe try read(into: room)
                result = .success(read)
                if case .bytes(let count) = read { return count }
            } catch {
                result = .failure(error)
            }
            return 0
        }
        switch try result.get() {
        case .bytes: return bytes
        case .needsInput: return Bytes()
        case .end: return nil
        }
    }

    /// Encrypts plaintext into the output, straight from the caller's memory, in records as long as they may be.
    package func write(_ plaintext: UnsafeRawBufferPointer) throws(TransportError) {
        try requireOpen()
        reserve(plaintext.count)
        var rest = unsafe plaintext[...]
        while unsafe !rest.isEmpty {
            let record = unsafe UnsafeRawBufferPointer(rebasing: rest.prefix(Self.recordBytes))
            unsafe try send(record)
            unsafe rest = rest.dropFirst(record.count)
        }
    }

    /// Encrypts several pieces as if they were one: small ones share a record, long ones are not copied before.
    package func write(_ pieces: [UnsafeRawBufferPointer]) throws(TransportError) {
        if unsafe pieces.count == 1 {
            unsafe try write(pieces[0])
            return
        }
        try requireOpen()
        unsafe reserve(pieces.reduce(0) { $0 + $1.count })
        let failure = unsafe withUnsafeTemporaryAllocation(byteCount: Self.recordBytes, alignment: 16) { record in
            unsafe self.gather(pieces, record)
        }
        if let failure { throw failure }
    }

    private func gather(
        _ pieces: [UnsafeRawBufferPointer], _ record: UnsafeMutableRawBufferPointer
    ) -> TransportError? {
        var filled = 0
        do throws(TransportError) {
            for index in unsafe pieces.indices {
                var rest = unsafe pieces[index][...]
                while unsafe !rest.isEmpty {
                    if filled == 0, unsafe rest.count >= record.count {
                        unsafe try send(UnsafeRawBufferPointer(rebasing: rest.prefix(record.count)))
                        unsafe rest = rest.dropFirst(record.count)
                        continue
                    }
                    let part = unsafe rest.prefix(record.count - filled)
                    let room = unsafe UnsafeMutableRawBufferPointer(rebasing: record[filled...])
                    unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
                    filled += unsafe part.count
                    unsafe rest = rest.dropFirst(part.count)
                    if filled == record.count {
                        unsafe try send(UnsafeRawBufferPointer(record))
                        filled = 0
                    }
                }
            }
            if filled > 0 { unsafe try send(UnsafeRawBufferPointer(rebasing: record[..<filled])) }
            return nil
        } catch {
            return error
        }
    }

    /// Changes the keys of this end, and where `bothWays` is set asks the peer to change its own (RFC 8446 §4.6.3). GnuTLS
    /// does so by itself long before a key is worn out; TLS 1.2 cannot.
    package func updateKeys(bothWays: Bool) throws(TransportError) {
        try requireOpen()
        let status = unsafe gnutls_session_key_update(session.pointer, bothWays ? UInt32(GNUTLS_KU_PEER) : 0)
        guard status == GNUTLS_E_SUCCESS else { throw fail(status) }
    }

    /// Says that this end will send nothing more; reading goes on. A second time does nothing.
    package func closeNotify() {
        guard case .open = state, !saidGoodbye else { return }
        saidGoodbye = true
        // The output takes everything, so this neither waits nor fails.
        unsafe gnutls_bye(session.pointer, GNUTLS_SHUT_WR)
    }

    // MARK: - Inside

    private func requireOpen() throws(TransportError) {
        switch state {
        case .failed(let error): throw error
        case .handshaking: throw TransportError(.misuse, "TLS cannot be written before its handshake is done")
        case .open: if saidGoodbye { throw TransportError(.misuse, "TLS cannot be written after it was closed") }
        }
    }

    /// Why no input that could come will help, where GnuTLS asks for more.
    private var inputEnding: Int32? {
        if session.sink.budget == 0 { return GNUTLS_E_HANDSHAKE_TOO_LARGE }
        return session.sink.inputEnded ? GNUTLS_E_PREMATURE_TERMINATION : nil
    }

    /// Makes room for everything at once, so that the output is not moved while it grows.
    private func reserve(_ plaintext: Int) {
        let records = plaintext / Self.recordBytes + 1
        unsafe session.sink.output.append(unsafeUninitializedCapacity: plaintext + records * Self.recordOverhead) { _ in
            0
        }
    }

    private func send(_ record: UnsafeRawBufferPointer) throws(TransportError) {
        let status = unsafe gnutls_record_send(session.pointer, record.baseAddress, record.count)
        if status == record.count { return }
        throw fail(status < 0 ? Int32(truncatingIfNeeded: status) : GNUTLS_E_INTERNAL_ERROR)
    }

    private func fail(_ status: Int32) -> TransportError {
        if case .failed(let error) = state { return error }
        let established = if case .open = state { true } else { false }
        var error = session.failure(status, established: established)
        // A TLS record of a handshake starts with 22, an alert with 21.
        if !established, let first = session.sink.firstByte, first != 22, first != 21 {
            let peer = session.role == .client ? "the service" : "the client"
            error = TransportError(.handshakeFailed, "\(peer) does not speak TLS on this port", number: error.number)
        }
        if let alert = session.verificationFailure?.alertForPeer {
            unsafe gnutls_alert_send(session.pointer, GNUTLS_AL_FATAL, alert)
        } else if status == GNUTLS_E_REHANDSHAKE {
            unsafe gnutls_alert_send(session.pointer, GNUTLS_AL_FATAL, GNUTLS_A_NO_RENEGOTIATION)
        } else if status != GNUTLS_E_FATAL_ALERT_RECEIVED, status != GNUTLS_E_PREMATURE_TERMINATION {
            unsafe gnutls_alert_send_appropriate(session.pointer, status)
        }
        state = .failed(error)
        return error
    }
}
