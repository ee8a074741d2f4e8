import Testing
import TransportTLS

struct KeyedHashTests {
    // R58; RFC 4231 §4.2 has keys of 20 bytes, so the vector is made with another implementation (Python's hmac).
    @Test func `A name is HMAC-SHA-256 under the key`() throws {
        let hash = try #require(KeyedHash(key: Array(0..<32)))
        #expect(hash.name("eth0/192.0.2.1") == "c9ca51e41c5f4ea056f0c88f3690e9a3")
        #expect(hash.name("eth0/192.0.2.2") != hash.name("eth0/192.0.2.1"))
        let other = try #require(KeyedHash(key: KeyedHash.randomKey()))
        #expect(other.name("eth0/192.0.2.1") != hash.name("eth0/192.0.2.1"))
        #expect(KeyedHash.randomKey() != KeyedHash.randomKey())
        #expect(KeyedHash(key: [1, 2, 3]) == nil)
    }
}
