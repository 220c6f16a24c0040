/*
 * Files in memory, for tests that write and then read or damage them.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include "check.h"
#include "ptwm.h"

/* A finished file in memory of the caller's own. */
struct image {
    uint8_t *data;
    size_t nbytes;
};

/* Finishes a writer that ptwm_writer_open_memory opened, and closes it. Free data. */
static inline struct image finish(struct ptwm_writer *w)
{
    struct image image = { NULL, 0 };
    const void *data;

    CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_get_memory(w, &data, &image.nbytes), PTWM_OK);
    image.data = malloc(image.nbytes);
    memcpy(image.data, data, image.nbytes);
    ptwm_writer_close(w);
    return image;
}

#endif
