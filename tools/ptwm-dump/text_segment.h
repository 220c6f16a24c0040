/*
 * A segment in detail, for people.
 */
#ifndef DUMP_TEXT_SEGMENT_H
#define DUMP_TEXT_SEGMENT_H

#include "out.h"
#include "tail.h"

void text_segment_print(const struct out *out, const struct dump_view *view, const struct dump_tail *tail);

#endif
