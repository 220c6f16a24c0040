/*
 * Files as the library's writer makes them.
 */
#include <stdlib.h>

#include "golden.h"

/* A file that a writer makes, and what goes into it. */
struct written {
    struct ptwm_writer *w;
    struct golden *g;
    enum ptwm_method method;
};

static struct written begin(uint32_t flags, uint64_t chunk_nbytes)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct written f = { NULL, golden_begin(), PTWM_METHOD_MICROSCALE };

    options.flags = flags;
    options.chunk_nbytes = chunk_nbytes;
    options.threads = 1;
    MUST(ptwm_writer_open_memory(&options, &f.w, NULL) == PTWM_OK);
    return f;
}

static struct written begin_default(void)
{
    return begin(PTWM_WRITE_PAYLOAD_HASH | PTWM_WRITE_PLANE_CRC, 0);
}

static void add_named(struct written *f, const char *name, size_t name_nbytes, uint32_t dtype, unsigned n_dims,
                      const uint64_t *shape, const uint8_t *raw, size_t nbytes)
{
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;

    spec.name = name;
    spec.name_nbytes = name_nbytes;
    spec.dtype = dtype;
    spec.n_dims = n_dims == GOLDEN_NO_SHAPE ? 0 : n_dims;
    spec.shape = spec.n_dims > 0 ? shape : NULL;
    spec.data = raw;
    spec.nbytes = nbytes;
    spec.method = f->method;
    MUST(ptwm_writer_add(f->w, &spec, NULL) == PTWM_OK);
    golden_expect(f->g, name, name_nbytes, dtype, n_dims, shape, raw, nbytes);
}

static void save(struct written *f, const char *name, const char *covers)
{
    const void *data;
    size_t nbytes;

    MUST(ptwm_writer_finish(f->w, NULL) == PTWM_OK);
    MUST(ptwm_writer_get_memory(f->w, &data, &nbytes) == PTWM_OK);
    forge_put(&f->g->file, data, nbytes);
    ptwm_writer_close(f->w);
    golden_save(f->g, name, covers);
}

/* What elements of a dtype are made of: width in bytes and bits of exponent of each float; 0 bits: bytes. */
static void format_of(uint32_t dtype, unsigned *width, unsigned *exponent_bits)
{
    static const struct {
        uint32_t dtype;
        unsigned width, exponent_bits;
    } floats[] = {
        { PTWM_DTYPE_F16, 2, 5 },          { PTWM_DTYPE_BF16, 2, 8 },          { PTWM_DTYPE_F32, 4, 8 },
        { PTWM_DTYPE_F64, 8, 11 },         { PTWM_DTYPE_F8_E4M3, 1, 4 },       { PTWM_DTYPE_F8_E5M2, 1, 5 },
        { PTWM_DTYPE_F8_E4M3FNUZ, 1, 4 },  { PTWM_DTYPE_F8_E5M2FNUZ, 1, 5 },   { PTWM_DTYPE_C32, 2, 5 },
        { PTWM_DTYPE_C64, 4, 8 },          { PTWM_DTYPE_C128, 8, 11 },         { PTWM_DTYPE_F8_E4M3_IEEE, 1, 4 },
        { PTWM_DTYPE_F8_E3M4, 1, 3 },      { PTWM_DTYPE_F8_E4M3B11FNUZ, 1, 4 }, { PTWM_DTYPE_BC32, 2, 8 },
    };

    *width = *exponent_bits = 0;
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++)
        if (floats[i].dtype == dtype) {
            *width = floats[i].width;
            *exponent_bits = floats[i].exponent_bits;
        }
}

/* rows x columns elements; with a number of bits in bytes where they are not floats. */
static void add(struct written *f, const char *name, uint32_t dtype, uint64_t rows, uint64_t columns, uint64_t seed)
{
    const uint64_t shape[2] = { rows, columns };
    const size_t nbytes = (size_t)(rows * columns * ptwm_dtype_bits(dtype) / 8);
    uint8_t *raw = malloc(nbytes);
    unsigned width, exponent_bits;

    format_of(dtype, &width, &exponent_bits);
    if (exponent_bits > 0)
        golden_floats(raw, nbytes / width, width, exponent_bits, (unsigned)columns, seed);
    else if (dtype == PTWM_DTYPE_BOOL)
        for (size_t i = 0; i < nbytes; i++)
            raw[i] = golden_random(&seed) % 3 == 0;
    else
        golden_bytes(raw, nbytes, ptwm_dtype_bits(dtype) < 8 ? 3 : 4, seed);
    add_named(f, name, strlen(name), dtype, 2, shape, raw, nbytes);
    free(raw);
}

/* ------------------------------------------------------------------------------------------------------- dtypes */

static void make_dtypes(void)
{
    struct written f = begin_default();
    uint8_t bytes[100];

    for (uint32_t dtype = 1; ptwm_dtype_name(dtype) != NULL; dtype++)
        add(&f, ptwm_dtype_name(dtype), dtype, 3, 8, dtype);
    golden_bytes(bytes, sizeof bytes, 4, 99);
    add_named(&f, "bytes", 5, PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, bytes, sizeof bytes);
    save(&f, "dtypes-small.ptwm", "every dtype, and a tensor without one, in tensors of a few bytes");

    f = begin_default();
    for (uint32_t dtype = 1; ptwm_dtype_name(dtype) != NULL; dtype++)
        add(&f, ptwm_dtype_name(dtype), dtype, 24, 40, dtype);
    save(&f, "dtypes.ptwm", "every dtype in tensors of about a thousand elements");
}

static void make_weights(void)
{
    struct written f = begin_default();

    add(&f, "bf16", PTWM_DTYPE_BF16, 48, 256, 1);
    add(&f, "f16", PTWM_DTYPE_F16, 48, 256, 2);
    add(&f, "e4m3", PTWM_DTYPE_F8_E4M3, 48, 256, 3);
    add(&f, "e5m2", PTWM_DTYPE_F8_E5M2, 48, 256, 4);
    add(&f, "f32", PTWM_DTYPE_F32, 24, 256, 5);
    save(&f, "weights.ptwm", "floats as the writer codes them where label rANS pays");
}

static void make_methods(void)
{
    static const char *const names[] = { "huffman", "zstd", "microscale", "rans", "identity" };
    char name[64], covers[96];

    for (unsigned i = 0; i < 5; i++) {
        struct written f = begin_default();
        uint64_t shape[1] = { 3000 };
        uint8_t raw[3000];
        f.method = (enum ptwm_method)(i + 1);
        add(&f, "bf16", PTWM_DTYPE_BF16, 12, 128, 1);
        add(&f, "f32", PTWM_DTYPE_F32, 6, 128, 2);
        add(&f, "i16", PTWM_DTYPE_I16, 6, 128, 4);
        for (size_t n = 0; n < sizeof raw; n++)
            raw[n] = (uint8_t)"the same words again and again, "[n * n / 2000 % 32];
        add_named(&f, "text", 4, PTWM_DTYPE_U8, 1, shape, raw, sizeof raw);
        snprintf(name, sizeof name, "method-%s.ptwm", names[i]);
        snprintf(covers, sizeof covers, "the writer's method %s", names[i]);
        save(&f, name, covers);
    }
}

static void make_flags(void)
{
    static const char *const names[] = { "none", "hash", "crc", "hash-and-crc" };
    char name[64], covers[96];

    for (uint32_t flags = 0; flags < 4; flags++) {
        struct written f = begin(flags, 0);
        add(&f, "first", PTWM_DTYPE_BF16, 4, 64, 1);
        add(&f, "second", PTWM_DTYPE_U8, 4, 64, 2);
        snprintf(name, sizeof name, "flags-%s.ptwm", names[flags]);
        snprintf(covers, sizeof covers, "payload hashes: %s; CRCs of planes: %s",
                 flags & PTWM_WRITE_PAYLOAD_HASH ? "yes" : "no", flags & PTWM_WRITE_PLANE_CRC ? "yes" : "no");
        save(&f, name, covers);
    }
}

static void make_chunks(void)
{
    struct written f = begin(PTWM_WRITE_PAYLOAD_HASH | PTWM_WRITE_PLANE_CRC, 4096);

    add(&f, "bf16", PTWM_DTYPE_BF16, 90, 128, 1);
    add(&f, "f32", PTWM_DTYPE_F32, 30, 100, 2);
    add(&f, "e4m3", PTWM_DTYPE_F8_E4M3, 100, 96, 3);
    add(&f, "i8", PTWM_DTYPE_I8, 1, 10000, 4);
    add(&f, "f4", PTWM_DTYPE_F4, 100, 170, 5);
    save(&f, "chunks.ptwm", "tensors of several chunks of 4 KiB, the last ones shorter");
}

static void make_groups(void)
{
    struct written f = begin_default();
    char name[64];

    for (unsigned i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "blocks.%u.norm.weight", i);
        add(&f, name, PTWM_DTYPE_BF16, 1, 64, i);
        snprintf(name, sizeof name, "blocks.%u.scale", i);
        add(&f, name, PTWM_DTYPE_F32, 1, 1 + i % 3, 100 + i);
    }
    save(&f, "groups.ptwm", "many small tensors that share segments");
}

static void make_tied(void)
{
    struct written f = begin_default();
    const struct golden_tensor *t;

    add(&f, "embed", PTWM_DTYPE_BF16, 8, 64, 1);
    add(&f, "middle", PTWM_DTYPE_F16, 8, 64, 2);
    add(&f, "head", PTWM_DTYPE_BF16, 8, 64, 1);
    MUST(ptwm_writer_add_alias(f.w, "tied", 4, "middle", 6, NULL) == PTWM_OK);
    t = &f.g->tensors[1];
    golden_expect(f.g, "tied", 4, t->dtype, t->n_dims, t->shape, t->raw, t->nbytes);
    add(&f, "last", PTWM_DTYPE_F32, 8, 16, 3);
    save(&f, "tied.ptwm", "equal tensors and a second name, each stored once");
}

/* ------------------------------------------------------------------------------------------- names, shapes, extras */

static void make_names(void)
{
    static const struct {
        const char *name;
        size_t nbytes;
    } names[] = {
#define NAME(literal) { literal, sizeof literal - 1 }
        NAME(""),
        NAME("\0"),
        NAME("a"),
        NAME("a\0b"),
        NAME("a\0c"),
        NAME("__metadata__"),
        NAME("model.layers.0.self_attn.q_proj.weight"),
        NAME("model.layers.0.self_attn.q_proj.weight_scale"),
        NAME("\xc3\xa9t\xc3\xa9"),
        NAME("\xc3\xa8t\xc3\xa9"), /* shares half a character with the one before */
        NAME("\xe6\x9d\x83\xe9\x87\x8d"),
        NAME("\xf0\x9f\xa7\xa0 brain"),
        NAME("\xf0\x9f\xa7\xa1 heart"),
        NAME("\"quoted\" \\ back\tslash\n\r\x01\x7f"),
        NAME("../../etc/passwd"),
        NAME(" %s %n "),
#undef NAME
    };
    struct written f = begin_default();
    char name[600];
    uint8_t raw[4];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        memset(raw, (int)i, sizeof raw);
        add_named(&f, names[i].name, names[i].nbytes, PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, raw, 1 + i % 4);
    }
    memset(name, 'n', sizeof name);
    for (size_t nbytes = 254; nbytes < 258; nbytes++)
        add_named(&f, name, nbytes, PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, raw, 3);
    add_named(&f, name, 600, PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, raw, 3);
    name[599] = 'o';
    add_named(&f, name, 600, PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, raw, 3);
    save(&f, "names.ptwm", "names: empty, with NUL, control and other characters, around 255 bytes that may be shared");
}

static void make_shapes(void)
{
    static const struct {
        const char *name;
        uint32_t dtype;
        unsigned n_dims;
        uint64_t shape[20];
    } shapes[] = {
        { "scalar", PTWM_DTYPE_F32, 0, { 0 } },
        { "scalar again", PTWM_DTYPE_F32, 0, { 0 } },
        { "one", PTWM_DTYPE_F32, 1, { 1 } },
        { "none", PTWM_DTYPE_F32, 1, { 0 } },
        { "none in the middle", PTWM_DTYPE_F32, 3, { 5, 0, 3 } },
        { "huge but none", PTWM_DTYPE_BF16, 3, { UINT64_C(1) << 62, UINT64_C(1) << 62, 0 } },
        { "inherited", PTWM_DTYPE_U8, 2, { 6, 4 } },
        { "inherited too", PTWM_DTYPE_U8, 2, { 6, 4 } },
        { "inherited by another dtype", PTWM_DTYPE_BF16, 2, { 6, 4 } },
        { "many", PTWM_DTYPE_I8, 20, { 1, 2, 1, 2, 1, 3, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1 } },
        { "three bits of a byte", PTWM_DTYPE_U1, 2, { 2, 4 } },
        { "nibbles", PTWM_DTYPE_I4, 2, { 3, 6 } },
        { "six bits", PTWM_DTYPE_F6_E2M3, 1, { 4 } },
        { "half nothing", PTWM_DTYPE_F4, 2, { 3, 0 } },
    };
    struct written f = begin_default();
    uint8_t raw[256];

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        size_t n = 1;
        for (unsigned d = 0; d < shapes[i].n_dims; d++)
            n = n == 0 || shapes[i].shape[d] == 0 ? 0 : (size_t)(shapes[i].shape[d] > 100 ? 1 : n * shapes[i].shape[d]);
        n = n * ptwm_dtype_bits(shapes[i].dtype) / 8;
        golden_bytes(raw, n, 4, i);
        add_named(&f, shapes[i].name, strlen(shapes[i].name), shapes[i].dtype, shapes[i].n_dims, shapes[i].shape, raw, n);
    }
    add_named(&f, "no dtype", 8, PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, raw, 5);
    add_named(&f, "no dtype, no bytes", 18, PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, raw, 0);
    add(&f, "shape again", PTWM_DTYPE_F16, 3, 5, 9);
    save(&f, "shapes.ptwm", "shapes: scalars, none, dimensions of 0, 20 dimensions, inherited ones, sub-byte dtypes");
}

static void make_extras(void)
{
    static const char metadata[] = "\xa2\x66" "format" "\x62" "pt" "\x67" "licence" "\x63" "MIT";
    static const char header[] = "{ \"w\":{\"dtype\":\"U8\",\"shape\":[2,4],\"data_offsets\":[0,8]}}   ";
    struct written f = begin_default();
    forge source = forge_new();

    add(&f, "w", PTWM_DTYPE_U8, 2, 4, 1);
    MUST(ptwm_writer_set_metadata(f.w, metadata, sizeof metadata - 1, NULL) == PTWM_OK);
    save(&f, "metadata.ptwm", "user metadata; no source entry, as the header is the canonical one");

    f = begin_default();
    add(&f, "w", PTWM_DTYPE_U8, 2, 4, 1);
    forge_put(&source, "\xa2\x66" "format" "\x6b" "safetensors" "\x66" "header", 27);
    forge_head(&source, PTWM_CBOR_BYTES, sizeof header - 1);
    forge_put(&source, header, sizeof header - 1);
    MUST(ptwm_writer_set_source(f.w, source.data, source.nbytes, NULL) == PTWM_OK);
    save(&f, "source.ptwm", "a source entry with the bytes of a .safetensors header");
    forge_free(&source);

    f = begin_default();
    save(&f, "empty.ptwm", "no tensors, no segments");
}

void make_written(void)
{
    make_extras();
    make_dtypes();
    make_weights();
    make_methods();
    make_flags();
    make_chunks();
    make_groups();
    make_tied();
    make_names();
    make_shapes();
}
