/// A window on shared, reference-counted storage, with room before and after it.
///
/// Copying and slicing a `Bytes` shares the storage and costs a reference count. Mutation copies first if the storage
/// is shared, so a value never changes under its holder. Room in front of the window (`headroom`) lets a layer put its
/// header before a payload without moving it.
///
/// Offsets count from the start of the window. The textual form says only how long it is, because payloads may be
/// secret.
///
/// What every message passes through is inlinable, because unspecialized closures cost more than the bytes they handle.
///
/// Sendable is sound: the storage is only written through a `Bytes` that `isKnownUniquelyReferenced` has shown to be its
/// sole holder, and a sole holder cannot race with anybody.
public struct Bytes: @unchecked Sendable {
    @usableFromInline var storage: Storage?
    @usableFromInline var start: Int
    @usableFromInline var end: Int

    /// Makes an empty window without storage.
    public init() {
        storage = nil
        start = 0
        end = 0
    }

    /// Makes an empty window with room for `capacity` bytes after it and `headroom` bytes before it.
    public init(capacity: Int, headroom: Int = 0) {
        precondition(capacity >= 0 && headroom >= 0, "room cannot be negative")
        storage = .make(capacity: headroom + capacity)
        start = headroom
        end = headroom
    }

    /// Makes a window of at most `capacity` bytes that `fill` writes straight into the storage.
    ///
    /// - Parameters:
    ///   - capacity: how many bytes `fill` may write.
    ///   - headroom: how many bytes to leave free before the window.
    ///   - fill: gets the uninitialized room and returns how many bytes, from its start, it wrote.
    @inlinable
    public init(
        unsafeUninitializedCapacity capacity: Int, headroom: Int = 0,
        fill: (UnsafeMutableRawBufferPointer) throws -> Int
    ) rethrows {
        let storage = Storage.make(capacity: headroom + capacity)
        let room = UnsafeMutableRawBufferPointer(start: storage.base + headroom, count: capacity)
        let written = try fill(room)
        precondition(written >= 0 && written <= capacity, "fill wrote outside its room")
        self.storage = storage
        start = headroom
        end = headroom + written
    }

    /// Copies `bytes`, leaving `headroom` bytes free before them.
    @inlinable
    public init(copying bytes: UnsafeRawBufferPointer, headroom: Int = 0) {
        self.init(unsafeUninitializedCapacity: bytes.count, headroom: headroom) { room in
            room.copyMemory(from: bytes)
            return bytes.count
        }
    }

    /// Copies a sequence of bytes.
    public init(_ bytes: some Sequence<UInt8>) {
        let copied: Bytes? = bytes.withContiguousStorageIfAvailable {
            Bytes(copying: UnsafeRawBufferPointer($0))
        }
        if let copied {
            self = copied
        } else {
            self = Bytes(Array(bytes))
        }
    }

    /// Copies the UTF-8 form of a string.
    public init(_ string: String) {
        self.init(string.utf8)
    }

    /// Makes `count` bytes, each equal to `byte`.
    public init(repeating byte: UInt8, count: Int) {
        self.init(unsafeUninitializedCapacity: count) { room in
            for index in room.indices { room[index] = byte }
            return count
        }
    }

    /// How many bytes the window shows.
    @inlinable public var count: Int { end - start }

    /// Whether the window shows no byte.
    @inlinable public var isEmpty: Bool { start == end }

    /// How many bytes can be put before the window without moving it, if the storage is not shared.
    @inlinable public var headroom: Int { storage == nil ? 0 : start }

    /// How many bytes can be put after the window without moving it, if the storage is not shared.
    @inlinable public var tailroom: Int { storage.map { $0.room - end } ?? 0 }

    /// The byte `offset` places from the start of the window.
    public subscript(offset: Int) -> UInt8 {
        get {
            precondition(offset >= 0 && offset < count, "offset outside the window")
            return withUnsafeBytes { $0[offset] }
        }
        set {
            precondition(offset >= 0 && offset < count, "offset outside the window")
            withUnsafeMutableBytes { $0[offset] = newValue }
        }
    }

    /// The part of the window at `range`, sharing its storage.
    public subscript(range: Range<Int>) -> Bytes {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "range outside the window")
        var part = self
        part.start = start + range.lowerBound
        part.end = start + range.upperBound
        return part
    }

    /// The first `length` bytes, or all where there are fewer; the storage is shared.
    public func prefix(_ length: Int) -> Bytes { self[0..<Swift.min(Swift.max(length, 0), count)] }

    /// What is left without the first `length` bytes; the storage is shared.
    public func dropFirst(_ length: Int = 1) -> Bytes { self[Swift.min(Swift.max(length, 0), count)..<count] }

    /// Takes the first `length` bytes off the window and returns them; the storage is shared.
    public mutating func takeFirst(_ length: Int) -> Bytes {
        precondition(length >= 0 && length <= count, "fewer bytes than asked for")
        let taken = self[0..<length]
        start += length
        return taken
    }

    /// Takes the first `length` bytes off the window.
    public mutating func removeFirst(_ length: Int) {
        precondition(length >= 0 && length <= count, "fewer bytes than asked for")
        start += length
    }

    /// Empties the window and keeps the storage if nobody else holds it.
    public mutating func removeAll() {
        if isKnownUniquelyReferenced(&storage) {
            end = start
        } else {
            self = Bytes()
        }
    }

    /// Gives `body` the bytes of the window; the pointer is good until `body` returns.
    @inlinable
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let storage else { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
        defer { withExtendedLifetime(storage) {} }
        return try body(UnsafeRawBufferPointer(start: storage.base + start, count: count))
    }

    /// Gives `body` the bytes of the window to change in place, after copying them if the storage is shared.
    @inlinable
    public mutating func withUnsafeMutableBytes<Result, Failure: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        makeRoom(before: 0, after: 0)
        guard let storage else { return try body(UnsafeMutableRawBufferPointer(start: nil, count: 0)) }
        defer { withExtendedLifetime(storage) {} }
        return try body(UnsafeMutableRawBufferPointer(start: storage.base + start, count: count))
    }

    /// Puts bytes after the window.
    public mutating func append(contentsOf bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        let length = bytes.count
        append(unsafeUninitializedCapacity: length) { room in
            room.copyMemory(from: bytes)
            return length
        }
    }

    /// Puts bytes after the window.
    public mutating func append(contentsOf bytes: Bytes) {
        // `bytes` keeps its own storage alive, so growing `self` cannot invalidate the pointer, even for `x.append(x)`.
        bytes.withUnsafeBytes { append(contentsOf: $0) }
    }

    /// Puts bytes after the window.
    public mutating func append(contentsOf bytes: [UInt8]) {
        bytes.withUnsafeBytes { append(contentsOf: $0) }
    }

    /// Puts one byte after the window.
    public mutating func append(_ byte: UInt8) {
        append(unsafeUninitializedCapacity: 1) { room in
            room[0] = byte
            return 1
        }
    }

    /// Puts at most `capacity` bytes, written by `fill` straight into the storage, after the window.
    ///
    /// - Parameters:
    ///   - capacity: how many bytes `fill` may write.
    ///   - fill: gets the uninitialized room and returns how many bytes, from its start, it wrote.
    @inlinable
    public mutating func append(
        unsafeUninitializedCapacity capacity: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Int
    ) rethrows {
        makeRoom(before: 0, after: capacity)
        guard let storage else { return }
        let room = UnsafeMutableRawBufferPointer(start: storage.base + end, count: capacity)
        let written = try fill(room)
        precondition(written >= 0 && written <= capacity, "fill wrote outside its room")
        end += written
    }

    /// Puts bytes before the window, in the headroom where there is enough of it.
    public mutating func prepend(contentsOf bytes: UnsafeRawBufferPointer) {
        let length = bytes.count
        guard length > 0 else { return }
        makeRoom(before: length, after: 0)
        guard let storage else { return }
        start -= length
        let base = bytes.baseAddress
        if let base = base {
            (storage.base + start).copyMemory(from: base, byteCount: length)
        }
    }

    /// Puts bytes before the window, in the headroom where there is enough of it.
    public mutating func prepend(contentsOf bytes: Bytes) {
        bytes.withUnsafeBytes { prepend(contentsOf: $0) }
    }

    /// Makes the storage this value's own, with at least the given room around the window.
    @usableFromInline
    mutating func makeRoom(before: Int, after: Int) {
        if isKnownUniquelyReferenced(&storage), headroom >= before, tailroom >= after { return }
        if storage == nil, before == 0, after == 0 { return }
        // What was taken off the front is not headroom that anybody asked for: a buffer that is filled at one end and
        // emptied at the other would grow for ever.
        let room = Swift.max(before, Swift.min(headroom, Self.keptHeadroom))
        if isKnownUniquelyReferenced(&storage), let storage, slides(to: room, after: after, in: storage) {
            (storage.base + room).copyMemory(from: storage.base + start, byteCount: count)
            end = room + count
            start = room
            return
        }
        // Doubling makes a run of appends cost linear time.
        let growth = after > 0 ? Swift.max(after, Swift.min(count, 1 << 20)) : tailroom
        let copy = withUnsafeBytes { Storage.make(capacity: room + count + growth, copying: $0, at: room) }
        end = room + count
        start = room
        storage = copy
    }

    /// How much headroom survives when the window has to move.
    private static let keptHeadroom = 64

    /// Whether moving the window to the front makes enough room, for no more than was taken off the front since.
    private func slides(to room: Int, after: Int, in storage: Storage) -> Bool {
        start - room >= count && room + count + after <= storage.room
    }

    /// A block of raw memory behind its own header: one allocation, freed with its last holder. It is made of units of 16
    /// bytes for its alignment.
    @usableFromInline
    final class Storage: ManagedBuffer<Int, SIMD16<UInt8>> {
        @usableFromInline
        static func make(capacity: Int) -> Storage {
            let units = (Swift.max(capacity, 1) + 15) / 16
            return unsafeDowncast(create(minimumCapacity: units) { _ in capacity }, to: Storage.self)
        }

        static func make(capacity: Int, copying bytes: UnsafeRawBufferPointer, at offset: Int) -> Storage {
            let storage = make(capacity: capacity)
            if let source = bytes.baseAddress {
                (storage.base + offset).copyMemory(from: source, byteCount: bytes.count)
            }
            return storage
        }

        /// Where the block begins; good as long as somebody holds the storage.
        @inlinable var base: UnsafeMutableRawPointer {
            withUnsafeMutablePointerToElements { UnsafeMutableRawPointer($0) }
        }

        /// How many bytes were asked for.
        @inlinable var room: Int { header }
    }
}

extension Bytes: Hashable {
    /// Whether both windows show the same bytes.
    public static func == (left: Bytes, right: Bytes) -> Bool {
        guard left.count == right.count else { return false }
        return left.withUnsafeBytes { leftBytes in
            right.withUnsafeBytes { leftBytes.elementsEqual($0) }
        }
    }

    /// Feeds the bytes of the window to `hasher`.
    public func hash(into hasher: inout Hasher) {
        withUnsafeBytes { hasher.combine(bytes: $0) }
    }
}

extension Bytes: Sequence {
    /// Walks the window from its first byte to its last.
    public struct Iterator: IteratorProtocol {
        fileprivate let bytes: Bytes
        fileprivate var offset = 0

        /// The next byte, or nil after the last.
        public mutating func next() -> UInt8? {
            guard offset < bytes.count else { return nil }
            defer { offset += 1 }
            return bytes[offset]
        }
    }

    /// An iterator over the bytes of the window.
    public func makeIterator() -> Iterator { Iterator(bytes: self) }

    /// How many bytes the window shows.
    public var underestimatedCount: Int { count }

    /// Gives `body` the window as a typed buffer.
    public func withContiguousStorageIfAvailable<Result>(
        _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
    ) rethrows -> Result? {
        try withUnsafeBytes { try $0.withMemoryRebound(to: UInt8.self, body) }
    }
}

extension Bytes: ExpressibleByArrayLiteral {
    /// Copies the literal's bytes.
    public init(arrayLiteral elements: UInt8...) { self.init(elements) }
}

extension Bytes: CustomStringConvertible {
    /// The length alone: payloads may be secret and descriptions end up in logs.
    public var description: String { "\(count) bytes" }
}

extension String {
    /// The string whose UTF-8 form `bytes` is, or nil if they are not UTF-8.
    public init?(validating bytes: Bytes) {
        guard let string = bytes.withUnsafeBytes({ String(validating: $0, as: UTF8.self) }) else { return nil }
        self = string
    }
}
