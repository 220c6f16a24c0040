/*
 * Fused decoding: from a chunk's stored planes to its elements in one pass, CRCs included, for the chains and the
 * coding that float weights have. Everything else goes the plain way (plane.h, chain.h), which gives the same bytes.
 */
#ifndef PTWM_LABEL_FUSED_H
#define PTWM_LABEL_FUSED_H

#include "chain.h"
#include "label.h"

enum { PTWM_FUSED_BLOCK = 512, PTWM_FUSED_CARRIED = 2 * 128 };

/* A plane as ptwm_chain_merge wants it. */
struct ptwm_fused_plane {
    const uint8_t *bytes;
    size_t nbytes;
    const uint32_t *crc; /* what the CRC of bytes must be, or NULL: not to be checked */
};

struct ptwm_fused_chunk {
    const struct ptwm_parsed_chain *chain;
    const struct ptwm_label_model *model;
    uint64_t first_element;
    struct ptwm_fused_plane low;     /* if the chain has one */
    bool is_low_constant;            /* low.bytes has PTWM_FUSED_BLOCK elements, which stands for all of the plane */
    struct ptwm_fused_plane rest;
    bool is_carried;                 /* rest lacks its first PTWM_FUSED_CARRIED bytes, which symbols carries */
    struct ptwm_fused_plane symbols; /* stored by label rANS */
    uint8_t *raw;
    size_t raw_nbytes;
    bool is_streamed; /* so much is decoded that raw won't be in a cache by the time it is read: stores may go past them */
};

/* Whether fused decoding serves chunks of raw_nbytes bytes of a chain and a model, if they are coded with 128 lanes. */
bool ptwm_fused_serves(const struct ptwm_parsed_chain *chain, const struct ptwm_label_model *model, size_t raw_nbytes);

/*
 * Decodes a chunk that ptwm_fused_serves. Fails with PTWM_ERR_PLANE (also if it has not 128 lanes), PTWM_ERR_PADDING or
 * PTWM_ERR_CHECKSUM without saying more: the plain way does that. Reads nothing outside the planes, whatever they hold,
 * and even if they change while it reads.
 */
enum ptwm_status ptwm_fused_decode(const struct ptwm_fused_chunk *chunk);

#endif
