/*
 * Segments made by hand: any chain, with the codec that the caller names for each plane, where the library's writer would
 * choose. The planes are those of the library, and so are the codecs of bytes; label rANS is forge_labels.
 */
#ifndef COMPOSE_H
#define COMPOSE_H

#include "../attacks/forge.h"

enum { COMPOSE_MAX_COLUMNS = 512 };

struct composition {
    const char *chain;
    size_t chain_nbytes;
    uint64_t chunk_nbytes;      /* 0: all in one chunk */
    unsigned flags;             /* of the segment */
    const uint8_t *codecs;      /* of each plane */
    const uint8_t *odd_codecs;  /* of each plane of chunks 1, 3, ...; NULL: the same */
    uint32_t trim_unit;         /* for PTWM_CODEC_TRIM */
    /* What follows is for chains with a label step. */
    uint32_t unit;
    uint32_t n_columns;         /* 0: no shifts */
    int base, spread;           /* column c's shift is base + 5 c modulo spread */
    bool has_phases;            /* column c's phase is 1 for c modulo 3 = 1 */
    unsigned n_lanes;
    unsigned n_classes;         /* unit u's class is u modulo n_classes */
    unsigned n_labels;          /* at most, in each table; other symbols become exceptions */
    uint32_t n_sets;            /* chunk i takes set (i + 1) modulo n_sets, made of all chunks that take it */
};

/*
 * Appends the segment of raw to body, whose first byte is at offset 16 of the file, and stores in record what the manifest
 * says about it.
 */
void compose(forge *body, const struct composition *c, const uint8_t *raw, size_t raw_nbytes, uint64_t record[4]);

#endif
