#include <stddef.h>

#include <gnutls/gnutls.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>

// Swift imports neither GnuTLS's macros with casts nor those that collide with an enumeration of the same name.

static inline int tk_gnutls_init(gnutls_session_t *session, int is_server, int with_tickets, int with_early_data)
{
	unsigned flags = (is_server ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NONBLOCK;
	if (!with_tickets)
		flags |= GNUTLS_NO_TICKETS;
	// Early data is QUIC's alone, which has no EndOfEarlyData (RFC 9001 §8.3).
	if (with_early_data)
		flags |= GNUTLS_ENABLE_EARLY_DATA | GNUTLS_NO_END_OF_EARLY_DATA;
	return gnutls_init(session, flags);
}

static inline int tk_gnutls_took_early_data(gnutls_session_t session)
{
	return (gnutls_session_get_flags(session) & GNUTLS_SFLAGS_EARLY_DATA) != 0;
}

static inline int tk_gnutls_note_early_data(void *context, unsigned id, const unsigned char *data, unsigned length)
{
	(void) data;
	(void) length;
	if (id == 42)
		*(int *) context = 1;
	return 0;
}

// Whether a ClientHello, without the header of its message, offers early data (RFC 8446 §4.2.10).
static inline int tk_gnutls_offers_early_data(const gnutls_datum_t *hello)
{
	int offers = 0;
	(void) gnutls_ext_raw_parse(&offers, tk_gnutls_note_early_data, hello, GNUTLS_EXT_RAW_FLAG_TLS_CLIENT_HELLO);
	return offers;
}

static inline int tk_gnutls_generate_ec(gnutls_x509_privkey_t key, gnutls_ecc_curve_t curve)
{
	return gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(curve), 0);
}

// Checks the peer's chain against the trust of its credentials, for use by a server or a client.
static inline int tk_gnutls_verify_chain(gnutls_session_t session, int peer_is_server, unsigned *status)
{
	const char *purpose = peer_is_server ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT;
	gnutls_typed_vdata_st data = { GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *) purpose, 0 };
	return gnutls_certificate_verify_peers(session, &data, 1, status);
}

static inline int tk_gnutls_set_purposes(gnutls_x509_crt_t certificate)
{
	int status = gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_SERVER, 0);
	return status < 0 ? status : gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_CLIENT, 0);
}

static inline int tk_gnutls_set_common_name(gnutls_x509_crt_t certificate, const char *name, unsigned length)
{
	return gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, name, length);
}

static inline int tk_gnutls_get_common_name(gnutls_x509_crt_t certificate, char *name, size_t *length)
{
	return gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, length);
}

static inline int tk_gnutls_add_name(gnutls_x509_crt_t certificate, int is_address, const void *name, unsigned length)
{
	return gnutls_x509_crt_set_subject_alt_name(
		certificate, is_address ? GNUTLS_SAN_IPADDRESS : GNUTLS_SAN_DNSNAME, name, length, GNUTLS_FSAN_APPEND);
}

static inline int tk_gnutls_key_id(gnutls_x509_crt_t certificate, unsigned char *hash, size_t *length)
{
	return gnutls_x509_crt_get_key_id(certificate, GNUTLS_KEYID_USE_SHA256, hash, length);
}

/* How many bytes the library writes for the secret number of an EC key; 0 if the key is no EC key. */
static inline unsigned tk_gnutls_ec_secret_length(gnutls_x509_privkey_t key)
{
	gnutls_ecc_curve_t curve;
	gnutls_datum_t x, y, secret;
	unsigned length;
	if (gnutls_x509_privkey_export_ecc_raw(key, &curve, &x, &y, &secret) < 0)
		return 0;
	length = secret.size;
	gnutls_memset(secret.data, 0, secret.size);
	gnutls_free(secret.data);
	gnutls_free(x.data);
	gnutls_free(y.data);
	return length;
}

static inline int tk_gnutls_private_key_id(gnutls_x509_privkey_t key, unsigned char *hash, size_t *length)
{
	return gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, hash, length);
}

// The library's own is a variable.
static inline void tk_gnutls_free(void *memory)
{
	gnutls_free(memory);
}
