/*
 * Frame headers by wslay, payloads around it.
 *
 * wslay copies every payload through a buffer of 4 KiB and masks it byte by byte: 25 us for 16 KiB, where one pass over
 * eight bytes at a time takes 1 us. So wslay reads, checks and writes the headers, is told the payload's length alone,
 * and never sees a mask; `tk_mask` copies and masks at once.
 */
#ifndef TK_CWSLAY_SHIM_H
#define TK_CWSLAY_SHIM_H

#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

/* What a frame header says, apart from its mask. */
struct tk_frame {
    uint8_t fin;
    uint8_t rsv;
    uint8_t opcode;
    uint64_t length;
};

/* One connection's reader and writer of frame headers. */
struct tk_frames {
    wslay_frame_context_ptr context;
    const uint8_t *head;
    size_t head_left;
    uint64_t payload_left;
    uint8_t *out;
    size_t out_used;
};

/* Where wslay asks for bytes: it gets the header, and then only the count of the payload. */
static inline ssize_t tk_frames_give(uint8_t *buffer, size_t room, int flags, void *user) {
    struct tk_frames *frames = (struct tk_frames *)user;
    (void)flags;
    size_t given = frames->head_left < room ? frames->head_left : room;
    if (given > 0) memcpy(buffer, frames->head, given);
    frames->head += given;
    frames->head_left -= given;
    size_t counted = room - given;
    if (frames->payload_left < counted) counted = (size_t)frames->payload_left;
    frames->payload_left -= counted;
    return given + counted > 0 ? (ssize_t)(given + counted) : -1;
}

/* Where wslay hands over bytes: the header is kept, the payload only counted. */
static inline ssize_t tk_frames_take(const uint8_t *data, size_t length, int flags, void *user) {
    struct tk_frames *frames = (struct tk_frames *)user;
    (void)flags;
    if (frames->out) {
        memcpy(frames->out, data, length);
        frames->out_used = length;
        frames->out = NULL;
    }
    return (ssize_t)length;
}

/* Makes a reader and writer; NULL without memory. */
static inline struct tk_frames *tk_frames_new(void) {
    struct tk_frames *frames = (struct tk_frames *)calloc(1, sizeof *frames);
    if (!frames) return NULL;
    struct wslay_frame_callbacks callbacks = {tk_frames_take, tk_frames_give, NULL};
    if (wslay_frame_context_init(&frames->context, &callbacks, frames) != 0) {
        free(frames);
        return NULL;
    }
    return frames;
}

static inline void tk_frames_free(struct tk_frames *frames) {
    if (!frames) return;
    wslay_frame_context_free(frames->context);
    free(frames);
}

/*
 * Reads one whole header without mask, which announces `length` bytes of payload. Returns 0, or wslay's error; after an
 * error the reader is of no more use.
 */
static inline int tk_frames_read(
    struct tk_frames *frames, const uint8_t *head, size_t count, uint64_t length, struct tk_frame *frame
) {
    struct wslay_frame_iocb block;
    uint64_t seen = 0;
    memset(&block, 0, sizeof block);
    frames->head = head;
    frames->head_left = count;
    frames->payload_left = length;
    do {
        ssize_t result = wslay_frame_recv(frames->context, &block);
        if (result < 0) return (int)result;
        seen += (uint64_t)result;
    } while (seen < length);
    frame->fin = block.fin;
    frame->rsv = block.rsv;
    frame->opcode = block.opcode;
    frame->length = block.payload_length;
    return block.payload_length == length ? 0 : WSLAY_ERR_PROTO;
}

/* Writes one header without mask to `out`, which has room for 10 bytes. Returns its length, or wslay's error. */
static inline ssize_t tk_frames_write(struct tk_frames *frames, const struct tk_frame *frame, uint8_t *out) {
    struct wslay_frame_iocb block;
    memset(&block, 0, sizeof block);
    block.fin = frame->fin;
    block.opcode = frame->opcode;
    block.payload_length = frame->length;
    block.data = out;
    block.data_length = (size_t)frame->length;
    frames->out = out;
    frames->out_used = 0;
    ssize_t result = wslay_frame_send(frames->context, &block);
    return result < 0 ? result : (ssize_t)frames->out_used;
}

/*
 * Copies `count` bytes and masks or unmasks them (RFC 6455 section 5.3). `key` holds the key's bytes in the order of
 * memory; `offset` is how far into the payload `from` is.
 */
static inline void tk_mask(uint8_t *to, const uint8_t *from, size_t count, uint32_t key, uint64_t offset) {
    uint8_t keys[8];
    memcpy(keys, &key, 4);
    uint8_t turned[8];
    for (size_t i = 0; i < 8; i++) turned[i] = keys[(offset + i) % 4];
    uint64_t wide;
    memcpy(&wide, turned, 8);
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        uint64_t word;
        memcpy(&word, from + i, 8);
        word ^= wide;
        memcpy(to + i, &word, 8);
    }
    for (; i < count; i++) to[i] = from[i] ^ turned[i % 8];
}

#endif
