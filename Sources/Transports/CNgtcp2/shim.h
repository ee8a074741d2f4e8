// ngtcp2 over GnuTLS under names that stay the same from 0.12 to 1.x.
//
// Swift sees addresses and events as plain values and never a name that differs between the versions. Nothing here keeps
// state of its own: a `tk_quic` belongs to the Swift object that made it, and is freed with `tk_quic_free`.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>
#include <gnutls/crypto.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#if NGTCP2_VERSION_NUM >= 0x010000
#define TK_QUIC_1 1
#else
#define TK_QUIC_1 0
#endif

// MARK: - Values

/// An IP address with a port. `family` is 4 or 6; IPv4 has its number in `low`, in host byte order.
typedef struct tk_quic_address {
    uint64_t high;
    uint64_t low;
    uint32_t scope;
    uint16_t port;
    uint8_t family;
} tk_quic_address;

/// A connection id of at most 20 bytes.
typedef struct tk_quic_id {
    uint8_t bytes[20];
    uint8_t count;
} tk_quic_id;

/// What a connection is told at its start. Times are nanoseconds.
typedef struct tk_quic_settings {
    uint64_t now;
    uint64_t initial_round_trip;
    uint64_t handshake_timeout;
    uint64_t idle_timeout;
    uint64_t connection_window;
    uint64_t bidirectional_window;
    uint64_t unidirectional_window;
    uint64_t bidirectional_streams;
    uint64_t unidirectional_streams;
    uint64_t datagram_limit;
    /// The secret from which reset tokens are made; all zero for random tokens.
    uint8_t reset_secret[32];
    /// The first byte of every connection id, where `has_id_prefix`; it names the loop.
    uint8_t id_prefix;
    uint8_t has_id_prefix;
} tk_quic_settings;

/// How the peer ended a connection.
typedef struct tk_quic_close {
    /// 0: transport error, 1: application error, 2: other (version negotiation, idle).
    int kind;
    uint64_t code;
    const uint8_t *reason;
    size_t reason_count;
} tk_quic_close;

/// What happens inside a call of the library. `sink` is the pointer given to `tk_quic_client` or `tk_quic_server`.
typedef struct tk_quic_events {
    /// TLS bytes, in order. Level 0 Initial, 1 Handshake, 2 application, 3 early. A result above 0 is a TLS alert.
    int (*crypto)(void *sink, int level, const uint8_t *bytes, size_t count);
    void (*handshake_completed)(void *sink);
    void (*handshake_confirmed)(void *sink);
    void (*stream_opened)(void *sink, int64_t id);
    void (*stream_data)(void *sink, int64_t id, int is_last, const uint8_t *bytes, size_t count);
    void (*stream_acknowledged)(void *sink, int64_t id, uint64_t offset, uint64_t count);
    void (*stream_closed)(void *sink, int64_t id, uint64_t code);
    void (*stream_reset)(void *sink, int64_t id, uint64_t code);
    void (*stream_window)(void *sink, int64_t id);
    void (*streams_allowed)(void *sink, int is_bidirectional);
    void (*datagram)(void *sink, const uint8_t *bytes, size_t count);
    void (*id_issued)(void *sink, const uint8_t *bytes, size_t count);
    void (*id_retired)(void *sink, const uint8_t *bytes, size_t count);
    void (*stateless_reset)(void *sink);
    /// The path that leaves from `local` was tried: `is_sound` says whether an answer came.
    void (*path_validated)(void *sink, tk_quic_address local, int is_sound);
} tk_quic_events;

/// A connection with all that the library borrows from its owner.
typedef struct tk_quic {
    ngtcp2_conn *connection;
    ngtcp2_crypto_conn_ref reference;
    tk_quic_events events;
    void *sink;
    uint8_t reset_secret[32];
    uint8_t id_prefix;
    uint8_t has_id_prefix;
    uint8_t has_reset_secret;
    /// Whether the dialling end has sent early data, or may have.
    uint8_t has_early_data;
    /// The path and ECN bits of the packet that was written last.
    ngtcp2_path_storage path;
    ngtcp2_pkt_info info;
    /// The path and ECN bits of the batch that packet belongs to.
    ngtcp2_path_storage batch_path;
    uint32_t batch_ecn;
} tk_quic;

static const int64_t TK_QUIC_WRITE_MORE = NGTCP2_ERR_WRITE_MORE;
static const int64_t TK_QUIC_STREAM_DATA_BLOCKED = NGTCP2_ERR_STREAM_DATA_BLOCKED;
static const int64_t TK_QUIC_STREAM_SHUT_WR = NGTCP2_ERR_STREAM_SHUT_WR;
static const int64_t TK_QUIC_STREAM_NOT_FOUND = NGTCP2_ERR_STREAM_NOT_FOUND;
static const int64_t TK_QUIC_INVALID_ARGUMENT = NGTCP2_ERR_INVALID_ARGUMENT;
static const int64_t TK_QUIC_INVALID_STATE = NGTCP2_ERR_INVALID_STATE;
static const int32_t TK_QUIC_STREAM_ID_BLOCKED = NGTCP2_ERR_STREAM_ID_BLOCKED;
static const int32_t TK_QUIC_DRAINING = NGTCP2_ERR_DRAINING;
static const int32_t TK_QUIC_CLOSING = NGTCP2_ERR_CLOSING;
static const int32_t TK_QUIC_CRYPTO = NGTCP2_ERR_CRYPTO;
static const int32_t TK_QUIC_DROP = NGTCP2_ERR_DROP_CONN;
static const int32_t TK_QUIC_RETRY = NGTCP2_ERR_RETRY;
static const int32_t TK_QUIC_IDLE = NGTCP2_ERR_IDLE_CLOSE;
static const int32_t TK_QUIC_HANDSHAKE_TIMEOUT = NGTCP2_ERR_HANDSHAKE_TIMEOUT;
static const int32_t TK_QUIC_VERSION_NEGOTIATION = NGTCP2_ERR_RECV_VERSION_NEGOTIATION;
static const int32_t TK_QUIC_NO_MEMORY = NGTCP2_ERR_NOMEM;
static const int32_t TK_QUIC_NO_VIABLE_PATH = NGTCP2_ERR_NO_VIABLE_PATH;
static const uint32_t TK_QUIC_FLAG_MORE = NGTCP2_WRITE_STREAM_FLAG_MORE;
static const uint32_t TK_QUIC_FLAG_FIN = NGTCP2_WRITE_STREAM_FLAG_FIN;

// MARK: - Addresses

static inline socklen_t tk_quic_to_sockaddr(tk_quic_address address, ngtcp2_sockaddr_union *result)
{
    memset(result, 0, sizeof *result);
    if (address.family == 6) {
        result->in6.sin6_family = AF_INET6;
        result->in6.sin6_port = htons(address.port);
        result->in6.sin6_scope_id = address.scope;
        for (int index = 0; index < 8; index++) {
            result->in6.sin6_addr.s6_addr[index] = (uint8_t) (address.high >> (56 - 8 * index));
            result->in6.sin6_addr.s6_addr[8 + index] = (uint8_t) (address.low >> (56 - 8 * index));
        }
        return sizeof result->in6;
    }
    result->in.sin_family = AF_INET;
    result->in.sin_port = htons(address.port);
    result->in.sin_addr.s_addr = htonl((uint32_t) address.low);
    return sizeof result->in;
}

static inline tk_quic_address tk_quic_from_sockaddr(const ngtcp2_sockaddr *address)
{
    tk_quic_address result = { 0, 0, 0, 0, 0 };
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *) (const void *) address;
        result.family = 6;
        result.port = ntohs(in6->sin6_port);
        result.scope = in6->sin6_scope_id;
        for (int index = 0; index < 8; index++) {
            result.high = result.high << 8 | in6->sin6_addr.s6_addr[index];
            result.low = result.low << 8 | in6->sin6_addr.s6_addr[8 + index];
        }
    } else if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *) (const void *) address;
        result.family = 4;
        result.port = ntohs(in->sin_port);
        result.low = ntohl(in->sin_addr.s_addr);
    }
    return result;
}

typedef struct tk_quic_route {
    ngtcp2_sockaddr_union local, remote;
    ngtcp2_path path;
} tk_quic_route;

static inline void tk_quic_make_route(tk_quic_route *route, tk_quic_address local, tk_quic_address remote)
{
    memset(&route->path, 0, sizeof route->path);
    route->path.local.addrlen = tk_quic_to_sockaddr(local, &route->local);
    route->path.local.addr = &route->local.sa;
    route->path.remote.addrlen = tk_quic_to_sockaddr(remote, &route->remote);
    route->path.remote.addr = &route->remote.sa;
}

static inline tk_quic_address tk_quic_batch_local(const tk_quic *quic)
{
    return tk_quic_from_sockaddr(quic->batch_path.path.local.addr);
}

static inline tk_quic_address tk_quic_batch_remote(const tk_quic *quic)
{
    return tk_quic_from_sockaddr(quic->batch_path.path.remote.addr);
}

/// Makes the packet that was written last the first of a batch.
static inline void tk_quic_begin_batch(tk_quic *quic)
{
    ngtcp2_path_copy(&quic->batch_path.path, &quic->path.path);
    quic->batch_ecn = quic->info.ecn;
}

/// Whether the packet that was written last can travel in one call with its batch.
static inline int tk_quic_fits_batch(const tk_quic *quic)
{
    return quic->info.ecn == quic->batch_ecn && ngtcp2_path_eq(&quic->path.path, &quic->batch_path.path);
}

// MARK: - Randomness, ids and tokens

static inline int tk_quic_random(uint8_t *bytes, size_t count)
{
    return gnutls_rnd(GNUTLS_RND_RANDOM, bytes, count);
}

/// A secret that is the same whenever the same key file is used, so that a listener that starts anew can still reset the
/// connections of the last one.
static inline int tk_quic_reset_secret(const uint8_t *key, size_t count, uint8_t secret[32])
{
    static const char label[] = "transportkit stateless reset 1";
    return gnutls_hmac_fast(GNUTLS_MAC_SHA256, label, sizeof label - 1, key, count, secret);
}

static inline int tk_quic_reset_token(const uint8_t secret[32], const uint8_t *id, size_t count, uint8_t token[16])
{
    ngtcp2_cid cid;
    ngtcp2_cid_init(&cid, id, count);
    return ngtcp2_crypto_generate_stateless_reset_token(token, secret, 32, &cid);
}

static inline void tk_quic_fill_id(const tk_quic *quic, uint8_t *bytes, size_t count)
{
    // A failing random source would make ids guessable, never memory unsafe.
    (void) tk_quic_random(bytes, count);
    if (quic->has_id_prefix && count > 0)
        bytes[0] = quic->id_prefix;
}

static inline int tk_quic_fill_token(const tk_quic *quic, const ngtcp2_cid *cid, uint8_t token[16])
{
    if (quic->has_reset_secret)
        return ngtcp2_crypto_generate_stateless_reset_token(token, quic->reset_secret, 32, cid);
    return tk_quic_random(token, 16);
}

// MARK: - Callbacks

static inline tk_quic *tk_quic_of(void *user_data)
{
    return (tk_quic *) user_data;
}

static inline ngtcp2_conn *tk_quic_get_connection(ngtcp2_crypto_conn_ref *reference)
{
    return tk_quic_of(reference->user_data)->connection;
}

static inline void tk_quic_on_rand(uint8_t *bytes, size_t count, const ngtcp2_rand_ctx *context)
{
    (void) context;
    (void) gnutls_rnd(GNUTLS_RND_NONCE, bytes, count);
}

static inline int tk_quic_on_new_id(
    ngtcp2_conn *connection, ngtcp2_cid *cid, uint8_t *token, size_t count, void *user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    tk_quic_fill_id(quic, cid->data, count);
    cid->datalen = count;
    if (tk_quic_fill_token(quic, cid, token) != 0)
        return NGTCP2_ERR_CALLBACK_FAILURE;
    quic->events.id_issued(quic->sink, cid->data, cid->datalen);
    return 0;
}

static inline int tk_quic_on_remove_id(ngtcp2_conn *connection, const ngtcp2_cid *cid, void *user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    quic->events.id_retired(quic->sink, cid->data, cid->datalen);
    return 0;
}

#if TK_QUIC_1
typedef ngtcp2_encryption_level tk_quic_level;
#define TK_QUIC_LEVEL_INITIAL NGTCP2_ENCRYPTION_LEVEL_INITIAL
#define TK_QUIC_LEVEL_HANDSHAKE NGTCP2_ENCRYPTION_LEVEL_HANDSHAKE
#define TK_QUIC_LEVEL_APPLICATION NGTCP2_ENCRYPTION_LEVEL_1RTT
#else
typedef ngtcp2_crypto_level tk_quic_level;
#define TK_QUIC_LEVEL_INITIAL NGTCP2_CRYPTO_LEVEL_INITIAL
#define TK_QUIC_LEVEL_HANDSHAKE NGTCP2_CRYPTO_LEVEL_HANDSHAKE
#define TK_QUIC_LEVEL_APPLICATION NGTCP2_CRYPTO_LEVEL_APPLICATION
#endif

static inline int tk_quic_level_number(tk_quic_level level)
{
    return level == TK_QUIC_LEVEL_INITIAL       ? 0
           : level == TK_QUIC_LEVEL_HANDSHAKE   ? 1
           : level == TK_QUIC_LEVEL_APPLICATION ? 2
                                                : 3;
}

static inline int tk_quic_on_crypto(
    ngtcp2_conn *connection, tk_quic_level level, uint64_t offset, const uint8_t *bytes, size_t count, void *user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    int alert = quic->events.crypto(quic->sink, tk_quic_level_number(level), bytes, count);
    if (alert > 0) {
        ngtcp2_conn_set_tls_alert(connection, (uint8_t) alert);
        return NGTCP2_ERR_CRYPTO;
    }
    return ngtcp2_crypto_recv_crypto_data_cb(connection, level, offset, bytes, count, user_data);
}

/// Makes the library forget the streams of early data that the service has not taken. GnuTLS says so only at the end.
static inline int tk_quic_settle_early_data(tk_quic *quic)
{
    gnutls_session_t session = (gnutls_session_t) ngtcp2_conn_get_tls_native_handle(quic->connection);
    if (!quic->has_early_data || gnutls_session_get_flags(session) & GNUTLS_SFLAGS_EARLY_DATA)
        return 0;
#if TK_QUIC_1
    return ngtcp2_conn_tls_early_data_rejected(quic->connection);
#else
    return ngtcp2_conn_early_data_rejected(quic->connection);
#endif
}

static inline int tk_quic_on_handshake_completed(ngtcp2_conn *connection, void *user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    if (tk_quic_settle_early_data(quic) != 0)
        return NGTCP2_ERR_CALLBACK_FAILURE;
    quic->events.handshake_completed(quic->sink);
    return 0;
}

static inline int tk_quic_on_handshake_confirmed(ngtcp2_conn *connection, void *user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    quic->events.handshake_confirmed(quic->sink);
    return 0;
}

static inline int tk_quic_on_stream_open(ngtcp2_conn *connection, int64_t id, void *user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    quic->events.stream_opened(quic->sink, id);
    return 0;
}

static inline int tk_quic_on_stream_data(
    ngtcp2_conn *connection, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *bytes, size_t count,
    void *user_data, void *stream_user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    (void) offset;
    (void) stream_user_data;
    quic->events.stream_data(quic->sink, id, (flags & NGTCP2_STREAM_DATA_FLAG_FIN) != 0, bytes, count);
    return 0;
}

static inline int tk_quic_on_stream_acknowledged(
    ngtcp2_conn *connection, int64_t id, uint64_t offset, uint64_t count, void *user_data, void *stream_user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    (void) stream_user_data;
    quic->events.stream_acknowledged(quic->sink, id, offset, count);
    return 0;
}

static inline int tk_quic_on_stream_close(
    ngtcp2_conn *connection, uint32_t flags, int64_t id, uint64_t code, void *user_data, void *stream_user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    (void) flags;
    (void) stream_user_data;
    quic->events.stream_closed(quic->sink, id, code);
    return 0;
}

static inline int tk_quic_on_stream_reset(
    ngtcp2_conn *connection, int64_t id, uint64_t final_size, uint64_t code, void *user_data, void *stream_user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    (void) final_size;
    (void) stream_user_data;
    quic->events.stream_reset(quic->sink, id, code);
    return 0;
}

static inline int tk_quic_on_stream_window(
    ngtcp2_conn *connection, int64_t id, uint64_t limit, void *user_data, void *stream_user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    (void) limit;
    (void) stream_user_data;
    quic->events.stream_window(quic->sink, id);
    return 0;
}

static inline int tk_quic_on_bidirectional_allowed(ngtcp2_conn *connection, uint64_t limit, void *user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    (void) limit;
    quic->events.streams_allowed(quic->sink, 1);
    return 0;
}

static inline int tk_quic_on_unidirectional_allowed(ngtcp2_conn *connection, uint64_t limit, void *user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    (void) limit;
    quic->events.streams_allowed(quic->sink, 0);
    return 0;
}

static inline int tk_quic_on_datagram(
    ngtcp2_conn *connection, uint32_t flags, const uint8_t *bytes, size_t count, void *user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    (void) flags;
    quic->events.datagram(quic->sink, bytes, count);
    return 0;
}

static inline int tk_quic_on_stateless_reset(
    ngtcp2_conn *connection, const ngtcp2_pkt_stateless_reset *reset, void *user_data)
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    (void) reset;
    quic->events.stateless_reset(quic->sink);
    return 0;
}

#if TK_QUIC_1
static inline int tk_quic_on_path_validation(
    ngtcp2_conn *connection, uint32_t flags, const ngtcp2_path *path, const ngtcp2_path *old_path,
    ngtcp2_path_validation_result result, void *user_data)
#else
static inline int tk_quic_on_path_validation(
    ngtcp2_conn *connection, uint32_t flags, const ngtcp2_path *path, ngtcp2_path_validation_result result,
    void *user_data)
#endif
{
    tk_quic *quic = tk_quic_of(user_data);
    (void) connection;
    (void) flags;
#if TK_QUIC_1
    (void) old_path;
#endif
    // One that was given up says nothing.
    if (result != NGTCP2_PATH_VALIDATION_RESULT_ABORTED)
        quic->events.path_validated(quic->sink, tk_quic_from_sockaddr(path->local.addr),
                                    result == NGTCP2_PATH_VALIDATION_RESULT_SUCCESS);
    return 0;
}

// MARK: - Life

static inline void tk_quic_fill_callbacks(ngtcp2_callbacks *callbacks, int is_server)
{
    memset(callbacks, 0, sizeof *callbacks);
    if (is_server) {
        callbacks->recv_client_initial = ngtcp2_crypto_recv_client_initial_cb;
    } else {
        callbacks->client_initial = ngtcp2_crypto_client_initial_cb;
        callbacks->recv_retry = ngtcp2_crypto_recv_retry_cb;
    }
    callbacks->recv_crypto_data = tk_quic_on_crypto;
    callbacks->encrypt = ngtcp2_crypto_encrypt_cb;
    callbacks->decrypt = ngtcp2_crypto_decrypt_cb;
    callbacks->hp_mask = ngtcp2_crypto_hp_mask_cb;
    callbacks->update_key = ngtcp2_crypto_update_key_cb;
    callbacks->delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb;
    callbacks->delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb;
    callbacks->get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb;
    callbacks->version_negotiation = ngtcp2_crypto_version_negotiation_cb;
    callbacks->rand = tk_quic_on_rand;
    callbacks->get_new_connection_id = tk_quic_on_new_id;
    callbacks->remove_connection_id = tk_quic_on_remove_id;
    callbacks->handshake_completed = tk_quic_on_handshake_completed;
    callbacks->handshake_confirmed = tk_quic_on_handshake_confirmed;
    callbacks->stream_open = tk_quic_on_stream_open;
    callbacks->recv_stream_data = tk_quic_on_stream_data;
    callbacks->acked_stream_data_offset = tk_quic_on_stream_acknowledged;
    callbacks->stream_close = tk_quic_on_stream_close;
    callbacks->stream_reset = tk_quic_on_stream_reset;
    callbacks->extend_max_stream_data = tk_quic_on_stream_window;
    callbacks->extend_max_local_streams_bidi = tk_quic_on_bidirectional_allowed;
    callbacks->extend_max_local_streams_uni = tk_quic_on_unidirectional_allowed;
    callbacks->recv_datagram = tk_quic_on_datagram;
    callbacks->recv_stateless_reset = tk_quic_on_stateless_reset;
    callbacks->path_validation = tk_quic_on_path_validation;
}

static inline void tk_quic_fill_settings(
    const tk_quic_settings *from, ngtcp2_settings *settings, ngtcp2_transport_params *parameters)
{
    ngtcp2_settings_default(settings);
    settings->initial_ts = from->now;
    settings->handshake_timeout = from->handshake_timeout;
    settings->cc_algo = NGTCP2_CC_ALGO_CUBIC;
    settings->initial_rtt = from->initial_round_trip;
    ngtcp2_transport_params_default(parameters);
    parameters->initial_max_data = from->connection_window;
    parameters->initial_max_stream_data_bidi_local = from->bidirectional_window;
    parameters->initial_max_stream_data_bidi_remote = from->bidirectional_window;
    parameters->initial_max_stream_data_uni = from->unidirectional_window;
    parameters->initial_max_streams_bidi = from->bidirectional_streams;
    parameters->initial_max_streams_uni = from->unidirectional_streams;
    parameters->max_idle_timeout = from->idle_timeout;
    parameters->max_datagram_frame_size = from->datagram_limit;
    parameters->active_connection_id_limit = 4;
}

static inline tk_quic *tk_quic_make(const tk_quic_settings *settings, const tk_quic_events *events, void *sink)
{
    tk_quic *quic = (tk_quic *) calloc(1, sizeof *quic);
    if (!quic)
        return NULL;
    quic->events = *events;
    quic->sink = sink;
    quic->reference.get_conn = tk_quic_get_connection;
    quic->reference.user_data = quic;
    memcpy(quic->reset_secret, settings->reset_secret, sizeof quic->reset_secret);
    for (size_t index = 0; index < sizeof quic->reset_secret; index++)
        quic->has_reset_secret |= quic->reset_secret[index] != 0;
    quic->id_prefix = settings->id_prefix;
    quic->has_id_prefix = settings->has_id_prefix;
    ngtcp2_path_storage_zero(&quic->path);
    ngtcp2_path_storage_zero(&quic->batch_path);
    return quic;
}

static inline void tk_quic_free(tk_quic *quic)
{
    if (quic->connection)
        ngtcp2_conn_del(quic->connection);
    free(quic);
}

/// Makes the dialling end; NULL without memory.
static inline tk_quic *tk_quic_client(
    const tk_quic_settings *from, const tk_quic_events *events, void *sink, size_t id_count, tk_quic_address local,
    tk_quic_address remote)
{
    tk_quic *quic = tk_quic_make(from, events, sink);
    if (!quic)
        return NULL;
    ngtcp2_callbacks callbacks;
    ngtcp2_settings settings;
    ngtcp2_transport_params parameters;
    tk_quic_fill_callbacks(&callbacks, 0);
    tk_quic_fill_settings(from, &settings, &parameters);
    ngtcp2_cid first, own;
    first.datalen = 18;
    own.datalen = id_count;
    tk_quic_route route;
    tk_quic_make_route(&route, local, remote);
    if (tk_quic_random(first.data, first.datalen) != 0)
        goto failed;
    tk_quic_fill_id(quic, own.data, own.datalen);
    if (ngtcp2_conn_client_new(&quic->connection, &first, &own, &route.path, NGTCP2_PROTO_VER_V1, &callbacks, &settings,
                               &parameters, NULL, quic) != 0)
        goto failed;
    events->id_issued(sink, own.data, own.datalen);
    return quic;
failed:
    tk_quic_free(quic);
    return NULL;
}

/// How long a client may take to come back with the token of a Retry.
#define TK_QUIC_RETRY_TIMEOUT (10 * NGTCP2_SECONDS)

/// Whether a first packet carries the token that this listener gave to that address; then `original` is the id that the
/// client had chosen before.
static inline int tk_quic_check_token(
    const ngtcp2_pkt_hd *head, const uint8_t secret[32], tk_quic_address remote, uint64_t now, ngtcp2_cid *original)
{
#if TK_QUIC_1
    const uint8_t *token = head->token;
    size_t count = head->tokenlen;
#else
    const uint8_t *token = head->token.base;
    size_t count = head->token.len;
#endif
    ngtcp2_sockaddr_union address;
    ngtcp2_socklen address_count = tk_quic_to_sockaddr(remote, &address);
    return count > 0 && token[0] == NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY &&
           ngtcp2_crypto_verify_retry_token(original, token, count, secret, 32, head->version, &address.sa,
                                            address_count, &head->dcid, TK_QUIC_RETRY_TIMEOUT, now) == 0;
}

/// Makes the listening end for the first packet of a client; NULL without memory or with a bad packet.
static inline tk_quic *tk_quic_server(
    const tk_quic_settings *from, const tk_quic_events *events, void *sink, size_t id_count, tk_quic_address local,
    tk_quic_address remote, const uint8_t *packet, size_t packet_count)
{
    ngtcp2_pkt_hd head;
    if (ngtcp2_accept(&head, packet, packet_count) != 0)
        return NULL;
    tk_quic *quic = tk_quic_make(from, events, sink);
    if (!quic)
        return NULL;
    ngtcp2_callbacks callbacks;
    ngtcp2_settings settings;
    ngtcp2_transport_params parameters;
    tk_quic_fill_callbacks(&callbacks, 1);
    tk_quic_fill_settings(from, &settings, &parameters);
    parameters.original_dcid = head.dcid;
    // Each path that a client comes by takes an id of its own.
    parameters.active_connection_id_limit = 6;
#if TK_QUIC_1
    parameters.original_dcid_present = 1;
#endif
    ngtcp2_cid original;
    if (quic->has_reset_secret && tk_quic_check_token(&head, quic->reset_secret, remote, from->now, &original)) {
        parameters.original_dcid = original;
        parameters.retry_scid = head.dcid;
        parameters.retry_scid_present = 1;
        settings.token = head.token;
#if TK_QUIC_1
        settings.tokenlen = head.tokenlen;
        settings.token_type = NGTCP2_TOKEN_TYPE_RETRY;
#endif
    }
    ngtcp2_cid own;
    own.datalen = id_count;
    tk_quic_route route;
    tk_quic_make_route(&route, local, remote);
    tk_quic_fill_id(quic, own.data, own.datalen);
    parameters.stateless_reset_token_present = 1;
    if (tk_quic_fill_token(quic, &own, parameters.stateless_reset_token) != 0)
        goto failed;
    if (ngtcp2_conn_server_new(&quic->connection, &head.scid, &own, &route.path, head.version, &callbacks, &settings,
                               &parameters, NULL, quic) != 0)
        goto failed;
    events->id_issued(sink, head.dcid.data, head.dcid.datalen);
    events->id_issued(sink, own.data, own.datalen);
    return quic;
failed:
    tk_quic_free(quic);
    return NULL;
}

/// Joins the connection and its TLS session. The session must outlive the connection.
static inline int tk_quic_set_tls(tk_quic *quic, gnutls_session_t session, int is_server)
{
    int status = is_server ? ngtcp2_crypto_gnutls_configure_server_session(session)
                           : ngtcp2_crypto_gnutls_configure_client_session(session);
    if (status != 0)
        return status;
    gnutls_session_set_ptr(session, &quic->reference);
    ngtcp2_conn_set_tls_native_handle(quic->connection, session);
    return 0;
}

/// Makes the connection forget its TLS session, which may then be freed.
static inline void tk_quic_release_tls(tk_quic *quic)
{
    ngtcp2_conn_set_tls_native_handle(quic->connection, NULL);
}

/// Enough for what `tk_quic_remember` writes.
#define TK_QUIC_MEMORY 256

/// Writes down what early data to this service must know, once its parameters are here: 0 where that cannot be done. Only
/// this program, with this version of the library, can read it.
static inline size_t tk_quic_remember(tk_quic *quic, uint8_t memory[TK_QUIC_MEMORY])
{
#if TK_QUIC_1
    ngtcp2_ssize count = ngtcp2_conn_encode_0rtt_transport_params(quic->connection, memory, TK_QUIC_MEMORY);
    return count < 0 ? 0 : (size_t) count;
#else
    const ngtcp2_transport_params *from = ngtcp2_conn_get_remote_transport_params(quic->connection);
    if (!from)
        return 0;
    const uint64_t values[] = {
        from->initial_max_streams_bidi, from->initial_max_streams_uni, from->initial_max_stream_data_bidi_local,
        from->initial_max_stream_data_bidi_remote, from->initial_max_stream_data_uni, from->initial_max_data,
        from->active_connection_id_limit, from->max_datagram_frame_size, from->max_udp_payload_size,
    };
    memcpy(memory, values, sizeof values);
    return sizeof values;
#endif
}

/// Lets the dialling end send early data by what `tk_quic_remember` wrote. Before its first packet.
static inline int tk_quic_recall(tk_quic *quic, const uint8_t *memory, size_t count)
{
#if TK_QUIC_1
    int status = ngtcp2_conn_decode_and_set_0rtt_transport_params(quic->connection, memory, count);
    quic->has_early_data = status == 0;
    return status;
#else
    uint64_t values[9];
    ngtcp2_transport_params parameters;
    if (count != sizeof values)
        return NGTCP2_ERR_INVALID_ARGUMENT;
    memcpy(values, memory, sizeof values);
    ngtcp2_transport_params_default(&parameters);
    parameters.initial_max_streams_bidi = values[0];
    parameters.initial_max_streams_uni = values[1];
    parameters.initial_max_stream_data_bidi_local = values[2];
    parameters.initial_max_stream_data_bidi_remote = values[3];
    parameters.initial_max_stream_data_uni = values[4];
    parameters.initial_max_data = values[5];
    parameters.active_connection_id_limit = values[6];
    parameters.max_datagram_frame_size = values[7];
    parameters.max_udp_payload_size = values[8];
    ngtcp2_conn_set_early_remote_transport_params(quic->connection, &parameters);
    quic->has_early_data = 1;
    return 0;
#endif
}

static inline void tk_quic_set_keepalive(tk_quic *quic, uint64_t nanoseconds)
{
    ngtcp2_conn_set_keep_alive_timeout(quic->connection, nanoseconds);
}

/// Makes the library send a PING with the next packet; `tk_quic_set_keepalive` or `tk_quic_stop_keepalive` afterwards.
static inline void tk_quic_ask_ping(tk_quic *quic)
{
    ngtcp2_conn_set_keep_alive_timeout(quic->connection, 1);
}

static inline void tk_quic_stop_keepalive(tk_quic *quic)
{
#if TK_QUIC_1
    ngtcp2_conn_set_keep_alive_timeout(quic->connection, UINT64_MAX);
#else
    ngtcp2_conn_set_keep_alive_timeout(quic->connection, 0);
#endif
}

/// Moves the dialling end to another path, at once; the path is validated as it is used.
static inline int tk_quic_move(tk_quic *quic, tk_quic_address local, tk_quic_address remote, uint64_t now)
{
    tk_quic_route route;
    tk_quic_make_route(&route, local, remote);
    return ngtcp2_conn_initiate_immediate_migration(quic->connection, &route.path, now);
}

/// This end's address on the path in use.
static inline tk_quic_address tk_quic_local(tk_quic *quic)
{
    return tk_quic_from_sockaddr(ngtcp2_conn_get_path(quic->connection)->local.addr);
}

// MARK: - Packets

static inline int tk_quic_read(
    tk_quic *quic, tk_quic_address local, tk_quic_address remote, uint8_t ecn, const uint8_t *bytes, size_t count,
    uint64_t now)
{
    tk_quic_route route;
    tk_quic_make_route(&route, local, remote);
    ngtcp2_pkt_info info = { ecn };
    return ngtcp2_conn_read_pkt(quic->connection, &route.path, &info, bytes, count, now);
}

/// Writes stream bytes, or without a stream (`id` -1) whatever else is due, into a packet.
static inline int64_t tk_quic_write(
    tk_quic *quic, uint8_t *packet, size_t capacity, int64_t *accepted, uint32_t flags, int64_t id,
    const ngtcp2_vec *vectors, size_t count, uint64_t now)
{
    ngtcp2_ssize taken = -1;
    ngtcp2_ssize size = ngtcp2_conn_writev_stream(quic->connection, &quic->path.path, &quic->info, packet, capacity,
                                                  &taken, flags, id, vectors, count, now);
    *accepted = taken;
    return size;
}

static inline int64_t tk_quic_write_datagram(
    tk_quic *quic, uint8_t *packet, size_t capacity, int *accepted, const uint8_t *bytes, size_t count, uint64_t now)
{
    /* The library asserts that no vector is empty: an empty datagram has none. */
    ngtcp2_vec vector = { (uint8_t *) bytes, count };
    return ngtcp2_conn_writev_datagram(quic->connection, &quic->path.path, &quic->info, packet, capacity, accepted,
                                       NGTCP2_WRITE_DATAGRAM_FLAG_MORE, 0, &vector, count > 0 ? 1 : 0, now);
}

/// Tells the library that what was written has been handed to the kernel, for its pacing. Without `is_paced` the next
/// packet may follow at once.
static inline void tk_quic_sent(tk_quic *quic, uint64_t now, int is_paced)
{
#if TK_QUIC_1
    // Until a round trip is measured 1.x paces by one of a millisecond, which holds nothing up. Later it refuses times that
    // are over, so what is not paced counts with the packet behind it.
    if (is_paced || !ngtcp2_conn_get_handshake_completed(quic->connection))
        ngtcp2_conn_update_pkt_tx_time(quic->connection, now);
#else
    // 0.12 paces by the round trip it expects until one is measured. As sent that long ago, a flight is over by now.
    ngtcp2_conn_stat info;
    if (!is_paced) {
        ngtcp2_conn_get_conn_stat(quic->connection, &info);
        now -= now < info.smoothed_rtt ? now : info.smoothed_rtt;
    }
    ngtcp2_conn_update_pkt_tx_time(quic->connection, now);
#endif
}

static inline uint8_t tk_quic_tls_alert(tk_quic *quic)
{
    return ngtcp2_conn_get_tls_alert(quic->connection);
}

static inline size_t tk_quic_quantum(tk_quic *quic)
{
    return ngtcp2_conn_get_send_quantum(quic->connection);
}

/// The largest packet that may be tried, and the largest that is known to pass.
static inline size_t tk_quic_largest_packet(tk_quic *quic)
{
#if TK_QUIC_1
    return ngtcp2_conn_get_max_tx_udp_payload_size(quic->connection);
#else
    return ngtcp2_conn_get_max_tx_udp_payload_size(quic->connection);
#endif
}

static inline size_t tk_quic_proven_packet(tk_quic *quic)
{
    return ngtcp2_conn_get_path_max_tx_udp_payload_size(quic->connection);
}

static inline uint64_t tk_quic_in_flight(tk_quic *quic)
{
#if TK_QUIC_1
    ngtcp2_conn_info info;
    ngtcp2_conn_get_conn_info(quic->connection, &info);
    return info.bytes_in_flight;
#else
    ngtcp2_conn_stat info;
    ngtcp2_conn_get_conn_stat(quic->connection, &info);
    return info.bytes_in_flight;
#endif
}

/// The shortest round trip that was measured, in nanoseconds; 0 where none was. A packet that is sent again has another
/// number, so that no measure is of two packets.
static inline uint64_t tk_quic_round_trip(tk_quic *quic)
{
#if TK_QUIC_1
    ngtcp2_conn_info info;
    ngtcp2_conn_get_conn_info(quic->connection, &info);
#else
    ngtcp2_conn_stat info;
    ngtcp2_conn_get_conn_stat(quic->connection, &info);
#endif
    return info.min_rtt == UINT64_MAX ? 0 : info.min_rtt;
}

/// The largest message a DATAGRAM frame may hold; 0 where the peer takes none.
static inline size_t tk_quic_datagram_room(tk_quic *quic)
{
    const ngtcp2_transport_params *remote = ngtcp2_conn_get_remote_transport_params(quic->connection);
    if (!remote || remote->max_datagram_frame_size < 4)
        return 0;
    // Type and length before the message; a short header with its id, a packet number and the seal around the frame.
    uint64_t frame = remote->max_datagram_frame_size - 3;
    size_t packet = tk_quic_proven_packet(quic);
    size_t overhead = 1 + ngtcp2_conn_get_dcid(quic->connection)->datalen + 4 + 16 + 3;
    size_t room = packet > overhead ? packet - overhead : 0;
    return frame < room ? (size_t) frame : room;
}

/// The window that a remote end gave; both are 0 before its parameters are known.
static inline uint64_t tk_quic_connection_window(tk_quic *quic)
{
    return ngtcp2_conn_get_max_data_left(quic->connection);
}

// MARK: - The end

/// Writes CONNECTION_CLOSE. `kind`: 0 a transport error, 1 an application error, 2 a status of the library, 3 a TLS alert.
static inline int64_t tk_quic_write_close(
    tk_quic *quic, int kind, int64_t code, const uint8_t *reason, size_t reason_count, uint8_t *packet, size_t capacity,
    uint64_t now)
{
#if TK_QUIC_1
    ngtcp2_ccerr error;
    ngtcp2_ccerr_default(&error);
    switch (kind) {
    case 0: ngtcp2_ccerr_set_transport_error(&error, (uint64_t) code, reason, reason_count); break;
    case 1: ngtcp2_ccerr_set_application_error(&error, (uint64_t) code, reason, reason_count); break;
    case 2: ngtcp2_ccerr_set_liberr(&error, (int) code, reason, reason_count); break;
    default: ngtcp2_ccerr_set_tls_alert(&error, (uint8_t) code, reason, reason_count); break;
    }
#else
    ngtcp2_connection_close_error error;
    ngtcp2_connection_close_error_default(&error);
    switch (kind) {
    case 0:
        ngtcp2_connection_close_error_set_transport_error(&error, (uint64_t) code, reason, reason_count);
        break;
    case 1:
        ngtcp2_connection_close_error_set_application_error(&error, (uint64_t) code, reason, reason_count);
        break;
    case 2:
        ngtcp2_connection_close_error_set_transport_error_liberr(&error, (int) code, reason, reason_count);
        break;
    default:
        ngtcp2_connection_close_error_set_transport_error_tls_alert(&error, (uint8_t) code, reason, reason_count);
        break;
    }
#endif
    return ngtcp2_conn_write_connection_close(quic->connection, &quic->path.path, &quic->info, packet, capacity, &error,
                                              now);
}

/// How the peer closed, once a read has returned `TK_QUIC_DRAINING`. The reason is good until the next call.
static inline tk_quic_close tk_quic_peer_close(tk_quic *quic)
{
    tk_quic_close result = { 2, 0, NULL, 0 };
#if TK_QUIC_1
    const ngtcp2_ccerr *error = ngtcp2_conn_get_ccerr(quic->connection);
    result.kind = error->type == NGTCP2_CCERR_TYPE_TRANSPORT ? 0 : error->type == NGTCP2_CCERR_TYPE_APPLICATION ? 1 : 2;
    result.code = error->error_code;
    result.reason = error->reason;
    result.reason_count = error->reasonlen;
#else
    ngtcp2_connection_close_error error;
    ngtcp2_conn_get_connection_close_error(quic->connection, &error);
    result.kind = error.type == NGTCP2_CONNECTION_CLOSE_ERROR_CODE_TYPE_TRANSPORT     ? 0
                  : error.type == NGTCP2_CONNECTION_CLOSE_ERROR_CODE_TYPE_APPLICATION ? 1
                                                                                      : 2;
    result.code = error.error_code;
    result.reason = error.reason;
    result.reason_count = error.reasonlen;
#endif
    return result;
}

/// Sends TLS bytes of one's own after the handshake.
static inline int tk_quic_submit_crypto(tk_quic *quic, const uint8_t *bytes, size_t count)
{
    return ngtcp2_conn_submit_crypto_data(quic->connection, TK_QUIC_LEVEL_APPLICATION, bytes, count);
}

// MARK: - Packets that belong to no connection

/// What a listener makes of a packet: 0 it has these ids, 1 its version is unknown, -1 it is no QUIC packet.
static inline int tk_quic_inspect(
    const uint8_t *bytes, size_t count, size_t short_id_count, tk_quic_id *destination, tk_quic_id *source,
    uint32_t *version)
{
    ngtcp2_version_cid head;
    int status = ngtcp2_pkt_decode_version_cid(&head, bytes, count, short_id_count);
    if (status != 0 && status != NGTCP2_ERR_VERSION_NEGOTIATION)
        return -1;
    if (head.dcidlen > sizeof destination->bytes || head.scidlen > sizeof source->bytes)
        return -1;
    memcpy(destination->bytes, head.dcid, head.dcidlen);
    destination->count = (uint8_t) head.dcidlen;
    if (head.scidlen > 0)
        memcpy(source->bytes, head.scid, head.scidlen);
    source->count = (uint8_t) head.scidlen;
    *version = head.version;
    return status == 0 ? 0 : 1;
}

static inline int64_t tk_quic_write_version_negotiation(
    uint8_t *packet, size_t capacity, const tk_quic_id *destination, const tk_quic_id *source)
{
    uint8_t unused = 0;
    // A version of the reserved kind keeps clients honest (RFC 9000 §6.3).
    const uint32_t versions[2] = { 0x1a2a3a4au, NGTCP2_PROTO_VER_V1 };
    (void) tk_quic_random(&unused, 1);
    return ngtcp2_pkt_write_version_negotiation(packet, capacity, unused, source->bytes, source->count,
                                                destination->bytes, destination->count, versions, 2);
}

/// Writes a packet that makes the peer forget the connection; it looks like any other of `count` bytes.
static inline int64_t tk_quic_write_stateless_reset(
    uint8_t *packet, size_t count, const uint8_t secret[32], const tk_quic_id *destination)
{
    uint8_t token[16], noise[64];
    size_t noise_count = count > 16 + sizeof noise ? sizeof noise : count - 16;
    if (count < 21 || tk_quic_reset_token(secret, destination->bytes, destination->count, token) != 0 ||
        tk_quic_random(noise, noise_count) != 0)
        return -1;
    return ngtcp2_pkt_write_stateless_reset(packet, count, token, noise, noise_count);
}

/// Refuses a client's first packet.
static inline int64_t tk_quic_write_refusal(uint8_t *packet, size_t capacity, const uint8_t *first, size_t count)
{
    ngtcp2_pkt_hd head;
    if (ngtcp2_accept(&head, first, count) != 0)
        return -1;
    return ngtcp2_crypto_write_connection_close(packet, capacity, head.version, &head.scid, &head.dcid,
                                                NGTCP2_CONNECTION_REFUSED, NULL, 0);
}

/// Whether a client's first packet shows that it can be reached where it says it is.
static inline int tk_quic_is_proven(
    const uint8_t *first, size_t count, const uint8_t secret[32], tk_quic_address remote, uint64_t now)
{
    ngtcp2_pkt_hd head;
    ngtcp2_cid original;
    return ngtcp2_accept(&head, first, count) == 0 && tk_quic_check_token(&head, secret, remote, now, &original);
}

/// Asks a client to show that it can be reached where it says it is (RFC 9000 §8.1.2). Keeps nothing.
static inline int64_t tk_quic_write_retry(
    uint8_t *packet, size_t capacity, const uint8_t *first, size_t count, size_t id_count, const uint8_t secret[32],
    tk_quic_address remote, uint64_t now)
{
    ngtcp2_pkt_hd head;
    ngtcp2_cid own;
    uint8_t token[NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN];
    ngtcp2_sockaddr_union address;
    ngtcp2_socklen address_count = tk_quic_to_sockaddr(remote, &address);
    own.datalen = id_count;
    if (ngtcp2_accept(&head, first, count) != 0 || tk_quic_random(own.data, own.datalen) != 0)
        return -1;
    ngtcp2_ssize token_count = ngtcp2_crypto_generate_retry_token(
        token, secret, 32, head.version, &address.sa, address_count, &own, &head.dcid, now);
    if (token_count < 0)
        return -1;
    return ngtcp2_crypto_write_retry(packet, capacity, head.version, &head.scid, &own, &head.dcid, token,
                                     (size_t) token_count);
}

static inline int tk_quic_is_first_packet(const uint8_t *bytes, size_t count)
{
    ngtcp2_pkt_hd head;
    return ngtcp2_accept(&head, bytes, count) == 0;
}
