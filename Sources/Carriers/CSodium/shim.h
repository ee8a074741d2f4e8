#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sodium.h>

// What needs secrets on the stack stays in C, where they can be wiped: Swift may have moved a value before it ends.

/* MixHash of the Noise Protocol Framework, §5.2: hash = SHA-256(hash || data). */
static inline void tk_noise_mix_hash(unsigned char *hash, const unsigned char *data, size_t length)
{
	crypto_hash_sha256_state state;
	crypto_hash_sha256_init(&state);
	crypto_hash_sha256_update(&state, hash, crypto_hash_sha256_BYTES);
	crypto_hash_sha256_update(&state, data, length);
	crypto_hash_sha256_final(&state, hash);
}

static inline void tk_noise_hmac(
	unsigned char *out, const unsigned char *key, const unsigned char *data, size_t length, unsigned char last)
{
	crypto_auth_hmacsha256_state state;
	crypto_auth_hmacsha256_init(&state, key, 32);
	crypto_auth_hmacsha256_update(&state, data, length);
	if (last)
		crypto_auth_hmacsha256_update(&state, &last, 1);
	crypto_auth_hmacsha256_final(&state, out);
	sodium_memzero(&state, sizeof state);
}

/* HKDF of the Noise Protocol Framework, §4.3, with two outputs. An output may be the chaining key itself. */
static inline void tk_noise_hkdf(
	unsigned char *first, unsigned char *second, const unsigned char *chaining_key, const unsigned char *input,
	size_t length)
{
	unsigned char temporary[32];
	tk_noise_hmac(temporary, chaining_key, input, length, 0);
	tk_noise_hmac(first, temporary, temporary, 0, 1);
	tk_noise_hmac(second, temporary, first, 32, 2);
	sodium_memzero(temporary, sizeof temporary);
}

/* §12.3: four zero bytes, then the number in little-endian order. */
static inline void tk_noise_nonce(unsigned char nonce[12], uint64_t number)
{
	memset(nonce, 0, 4);
	for (int index = 0; index < 8; index++)
		nonce[4 + index] = (unsigned char) (number >> (8 * index));
}

/* Writes `length` sealed bytes and 16 of tag to `out`, which may be where `plain` is. */
static inline void tk_noise_seal(
	unsigned char *out, const unsigned char *plain, size_t length, const unsigned char *data, size_t data_length,
	uint64_t number, const unsigned char *key)
{
	unsigned char nonce[12];
	tk_noise_nonce(nonce, number);
	crypto_aead_chacha20poly1305_ietf_encrypt_detached(
		out, out + length, NULL, plain, length, data, data_length, NULL, nonce, key);
}

/* Writes `length` opened bytes to `out`, which may be where `sealed` is; the tag follows those. 0 if it fits. */
static inline int tk_noise_open(
	unsigned char *out, const unsigned char *sealed, size_t length, const unsigned char *data, size_t data_length,
	uint64_t number, const unsigned char *key)
{
	unsigned char nonce[12];
	tk_noise_nonce(nonce, number);
	return crypto_aead_chacha20poly1305_ietf_decrypt_detached(
		out, NULL, sealed, length, sealed + length, data, data_length, nonce, key);
}

/* HMAC-SHA256 under a key of 32 bytes. */
static inline void tk_hmac_sha256(
	unsigned char out[32], const unsigned char *key, const unsigned char *data, size_t length)
{
	tk_noise_hmac(out, key, data, length, 0);
}

/* HKDF-SHA256 (RFC 5869) without salt, its first block. */
static inline void tk_hkdf_sha256(
	unsigned char out[32], const unsigned char *input, size_t length, const unsigned char *info, size_t info_length)
{
	static const unsigned char no_salt[32] = {0};
	unsigned char key[32];
	tk_noise_hmac(key, no_salt, input, length, 0);
	tk_noise_hmac(out, key, info, info_length, 1);
	sodium_memzero(key, sizeof key);
}
