#include "chain.h"

#include <stdio.h>
#include <string.h>

static unsigned unit_bits(const struct dump_step *label)
{
    return label->width == 0 ? 4 : label->width == 1 ? 8 : 16;
}

static bool is_width(unsigned width)
{
    return width == 1 || width == 2 || width == 4 || width == 8;
}

static bool step_is_legal(const struct dump_step *s)
{
    switch (s->kind) {
    case DUMP_STEP_DELTA: return is_width(s->width);
    case DUMP_STEP_BYTES: return s->width >= 2 && s->width <= 16;
    case DUMP_STEP_LABEL:
        return (s->width == 0 || is_width(s->width)) && s->bits >= 1 && s->bits <= 15 &&
               (unsigned)s->shift + s->bits <= unit_bits(s);
    default: return false;
    }
}

static void step_text(const struct dump_step *s, char *to, size_t capacity)
{
    if (s->kind == DUMP_STEP_LABEL)
        snprintf(to, capacity, "label(%u, %u, %u)", s->width, s->shift, s->bits);
    else
        snprintf(to, capacity, "%s(%u)", s->kind == DUMP_STEP_DELTA ? "delta" : "bytes", s->width);
}

static bool read_step(struct scan *scan, size_t end, struct dump_step *s)
{
    const size_t from = scan->next;
    const uint8_t *bytes;
    char text[40];
    size_t nbytes;

    memset(s, 0, sizeof *s);
    s->kind = scan->bytes[from];
    nbytes = s->kind == DUMP_STEP_LABEL ? 4 : 2;
    if (s->kind < DUMP_STEP_DELTA || s->kind > DUMP_STEP_LABEL) {
        scan_problem(scan, from, "the chain has an unknown step %u", s->kind);
        return false;
    }
    if (nbytes > end - from) {
        scan_problem(scan, from, "a step of the chain is cut short");
        return false;
    }
    bytes = scan_take(scan, nbytes, "step");
    s->width = bytes[1];
    s->shift = nbytes > 2 ? bytes[2] : 0;
    s->bits = nbytes > 2 ? bytes[3] : 0;
    step_text(s, text, sizeof text);
    scan_field(scan, from, "step", "%s", text);
    if (!step_is_legal(s))
        scan_problem(scan, from, "the step %s is not legal", text);
    return step_is_legal(s);
}

static void add_planes(struct dump_chain *chain, uint32_t n, enum ptwm_plane_kind kind)
{
    while (n-- > 0)
        chain->planes[chain->n_planes++] = kind;
}

static void derive_planes(struct dump_chain *chain)
{
    const struct dump_step *last = chain->n_steps > 0 ? &chain->steps[chain->n_steps - 1] : NULL;

    if (last == NULL || last->kind == DUMP_STEP_DELTA) {
        add_planes(chain, 1, PTWM_PLANE_BYTES);
    } else if (last->kind == DUMP_STEP_BYTES) {
        add_planes(chain, last->width, PTWM_PLANE_BYTES);
    } else {
        chain->has_label = true;
        chain->label = *last;
        add_planes(chain, last->width > 2 ? last->width / 2u - 1 : 0, PTWM_PLANE_LOW);
        add_planes(chain, unit_bits(last) > last->bits ? 1 : 0, PTWM_PLANE_REST);
        add_planes(chain, 1, PTWM_PLANE_SYMBOL);
    }
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bool chain_read(struct scan *scan, uint64_t nbytes, struct dump_chain *chain)
{
    const size_t from = scan->next;
    const enum ptwm_status status = scan->status;
    size_t end;

    memset(chain, 0, sizeof *chain);
    chain->granule_nbytes = 1;
    if (nbytes > scan_left(scan)) {
        scan_take(scan, nbytes, "chain");
        return false;
    }
    end = from + (size_t)nbytes;
    scan->status = PTWM_ERR_CHAIN;
    while (scan->next < end) {
        struct dump_step *s = &chain->steps[chain->n_steps];
        if (chain->n_steps == DUMP_MAX_STEPS ||
            (chain->n_steps > 0 && chain->steps[chain->n_steps - 1].kind != DUMP_STEP_DELTA)) {
            scan_problem(scan, scan->next, "the chain has a step too many");
            break;
        }
        if (!read_step(scan, end, s))
            break;
        chain->n_steps++;
        if (s->width > 1)
            chain->granule_nbytes *= s->width / gcd(chain->granule_nbytes, s->width);
    }
    scan->status = status;
    if (scan->next < end)
        return false;
    derive_planes(chain);
    return true;
}

void chain_text(const struct dump_chain *chain, char *to, size_t capacity)
{
    size_t used = 0;

    snprintf(to, capacity, "none");
    for (uint32_t i = 0; i < chain->n_steps; i++) {
        char step[40];
        step_text(&chain->steps[i], step, sizeof step);
        snprintf(to + used, capacity - used, "%s%s", i > 0 ? " " : "", step);
        used += strlen(to + used);
    }
}

uint64_t chain_n_elements(const struct dump_chain *chain, uint64_t raw_nbytes)
{
    if (!chain->has_label)
        return 0;
    return chain->label.width == 0 ? 2 * raw_nbytes : raw_nbytes / chain->label.width;
}

bool chain_is_wide(const struct dump_chain *chain)
{
    return chain->has_label && chain->label.bits > 8;
}

uint64_t chain_plane_nbytes(const struct dump_chain *chain, uint32_t plane, uint64_t raw_nbytes)
{
    const uint64_t n = chain_n_elements(chain, raw_nbytes);
    unsigned rest;

    switch (chain->planes[plane]) {
    case PTWM_PLANE_LOW: return 2 * n;
    case PTWM_PLANE_REST:
        rest = unit_bits(&chain->label) - chain->label.bits;
        return 64 * rest * (n / 512) + (n % 512 * rest + 7) / 8;
    case PTWM_PLANE_SYMBOL: return chain_is_wide(chain) ? 2 * n : n;
    default: return raw_nbytes / chain->n_planes; /* of bytes of elements, or the bytes as they are */
    }
}

const char *chain_plane_name(enum ptwm_plane_kind kind)
{
    switch (kind) {
    case PTWM_PLANE_LOW: return "low";
    case PTWM_PLANE_REST: return "rest";
    case PTWM_PLANE_SYMBOL: return "symbol";
    default: return "bytes";
    }
}
