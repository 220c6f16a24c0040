/*
 * ptwm.h - lossless compression of neural-network weights.
 *
 * A .ptwm file holds named tensors, compressed so that any of them, or a range of one, can be decoded without touching
 * the rest. This header is the whole public interface of libptwm; FORMAT.md beside it describes the file.
 *
 * Conventions
 *   - Every function that can fail returns an enum ptwm_status and takes an optional struct ptwm_error, which it fills
 *     when it fails and leaves alone when it succeeds. On failure output parameters are untouched unless their
 *     function says otherwise.
 *   - Public structs begin with struct_nbytes, which the caller sets to sizeof of the struct (the PTWM_*_INIT macros do
 *     so and zero the rest); the library neither reads nor writes beyond it, so that structs can grow.
 *   - Sizes and offsets are in bytes unless they say elements; their names end in _nbytes. Names of tensors are UTF-8
 *     with an explicit length: they may be empty and may contain NUL; they are not NUL-terminated.
 *   - The library keeps no global state but the choice of kernels (ptwm_cpu_select), prints nothing and never aborts. A
 *     reader may be used by many threads at once; a writer by one at a time. Nothing may run while its object is being
 *     closed.
 *   - Input may be hostile: for any bytes whatsoever, functions return a status and touch only their own memory and the
 *     caller's buffers. The one exception is stated at PTWM_BACKEND_MMAP.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PTWM_H
#define PTWM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef PTWM_API
#if defined(_WIN32) && defined(PTWM_BUILDS_DLL)
#define PTWM_API __declspec(dllexport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define PTWM_API __attribute__((visibility("default")))
#else
#define PTWM_API
#endif
#endif

/* The library's version, and the version of the format that it reads and writes. */
#define PTWM_VERSION_MAJOR 0
#define PTWM_VERSION_MINOR 1
#define PTWM_VERSION_PATCH 0
#define PTWM_FORMAT_VERSION 1

/* "No such index, offset or value" in 64-bit fields. */
#define PTWM_NONE UINT64_MAX

/* The version of the library that runs, such as "0.1.0". A static string. */
PTWM_API const char *ptwm_version(void);

/* ---------------------------------------------------------------------------------------------------- statuses */

/* One value per kind of failure. The numbers are pinned: they never change and are never reused. */
enum ptwm_status {
    PTWM_OK = 0,
    PTWM_ERR_ARGUMENT = 1,          /* an argument is out of its documented range */
    PTWM_ERR_MEMORY = 2,            /* an allocation failed */
    PTWM_ERR_IO = 3,                /* the operating system or a callback failed to read or write; see os_error */
    PTWM_ERR_NOT_PTWM = 4,          /* the magic number is missing: not a .ptwm file */
    PTWM_ERR_FOREIGN = 5,           /* the .ptwm format of an unrelated project */
    PTWM_ERR_VERSION = 6,           /* a version of the format that this library does not know */
    PTWM_ERR_TRUNCATED = 7,         /* the file is shorter than it says, or has no footer */
    PTWM_ERR_TRAILING = 8,          /* the file is longer than it says */
    PTWM_ERR_FEATURE = 9,           /* a required feature that this library does not know; its name is in detail */
    PTWM_ERR_MANIFEST = 10,         /* the manifest is malformed */
    PTWM_ERR_DUPLICATE_NAME = 11,   /* two tensors have the same name */
    PTWM_ERR_SEGMENT = 12,          /* a segment's tail is malformed */
    PTWM_ERR_CHAIN = 13,            /* a chain is malformed, or does not fit its data */
    PTWM_ERR_CODEC = 14,            /* a codec that this library does not know, or that does not fit its plane */
    PTWM_ERR_PLANE = 15,            /* a stored plane is malformed */
    PTWM_ERR_CHECKSUM = 16,         /* a CRC-32C does not match */
    PTWM_ERR_HASH = 17,             /* a payload hash does not match */
    PTWM_ERR_PADDING = 18,          /* padding is not zero */
    PTWM_ERR_ZSTD_UNAVAILABLE = 19, /* zstd is needed, and neither built in nor provided */
    PTWM_ERR_ZSTD = 20,             /* zstd failed */
    PTWM_ERR_NO_TENSOR = 21,        /* no tensor has that name or index */
    PTWM_ERR_RANGE = 22,            /* a range of elements leaves the tensor, or is not whole bytes */
    PTWM_ERR_LIMIT = 23,            /* more than the caller's max_nbytes */
    PTWM_ERR_STATE = 24,            /* the writer is finished, or has failed before */
    PTWM_ERR_SIZE_MISMATCH = 25     /* the data's length is not shape times dtype */
};

/* A short lower-case English phrase for a status ("checksum mismatch"). A static string; never NULL. */
PTWM_API const char *ptwm_status_string(enum ptwm_status status);

/* What went wrong, where. Fields that do not apply hold PTWM_NONE, 0 or "". */
struct ptwm_error {
    size_t struct_nbytes;
    enum ptwm_status status;
    int os_error;          /* errno for PTWM_ERR_IO (on Windows the nearest one), else 0 */
    uint64_t tensor;       /* index of the tensor concerned, in a reader or in the writer's order */
    uint64_t file_offset;  /* where in the file */
    char detail[128];      /* more precisely; NUL-terminated */
};
#define PTWM_ERROR_INIT { sizeof(struct ptwm_error), PTWM_OK, 0, PTWM_NONE, PTWM_NONE, { 0 } }

/* -------------------------------------------------------------------------------------------------- data types */

/* Codes of data types, as in the file. 0 stands for bytes without a type. */
enum ptwm_dtype {
    PTWM_DTYPE_NONE = 0,
    PTWM_DTYPE_BOOL = 1,
    PTWM_DTYPE_U8 = 2,
    PTWM_DTYPE_I8 = 3,
    PTWM_DTYPE_I16 = 4,
    PTWM_DTYPE_U16 = 5,
    PTWM_DTYPE_I32 = 6,
    PTWM_DTYPE_U32 = 7,
    PTWM_DTYPE_I64 = 8,
    PTWM_DTYPE_U64 = 9,
    PTWM_DTYPE_F16 = 10,
    PTWM_DTYPE_BF16 = 11,
    PTWM_DTYPE_F32 = 12,
    PTWM_DTYPE_F64 = 13,
    PTWM_DTYPE_F8_E4M3 = 14,
    PTWM_DTYPE_F8_E5M2 = 15,
    PTWM_DTYPE_F8_E4M3FNUZ = 16,
    PTWM_DTYPE_F8_E5M2FNUZ = 17,
    PTWM_DTYPE_F8_E8M0 = 18,
    PTWM_DTYPE_F4 = 19,
    PTWM_DTYPE_F6_E2M3 = 20,
    PTWM_DTYPE_F6_E3M2 = 21,
    PTWM_DTYPE_C32 = 22,
    PTWM_DTYPE_C64 = 23,
    PTWM_DTYPE_C128 = 24,
    PTWM_DTYPE_I4 = 25,
    PTWM_DTYPE_U4 = 26,
    PTWM_DTYPE_I2 = 27,
    PTWM_DTYPE_U2 = 28,
    PTWM_DTYPE_I1 = 29,
    PTWM_DTYPE_U1 = 30,
    PTWM_DTYPE_F8_E4M3_IEEE = 31,
    PTWM_DTYPE_F8_E3M4 = 32,
    PTWM_DTYPE_F8_E4M3B11FNUZ = 33,
    PTWM_DTYPE_BC32 = 34,
    PTWM_DTYPE_F8_E5M3FNU = 35
};

/* The name of a dtype, safetensors' where that has one ("BF16"), or NULL for PTWM_DTYPE_NONE and unknown codes. */
PTWM_API const char *ptwm_dtype_name(uint32_t dtype);
/* Bits per element, or 0 for PTWM_DTYPE_NONE and unknown codes. */
PTWM_API uint32_t ptwm_dtype_bits(uint32_t dtype);
/* The dtype with that name (NUL-terminated, case-sensitive), or PTWM_DTYPE_NONE. */
PTWM_API uint32_t ptwm_dtype_from_name(const char *name);

/* ------------------------------------------------------------------------------------- memory, I/O, zstd providers */

/*
 * An allocator. alloc returns nbytes (> 0) aligned for any type, or NULL; release takes what alloc gave, with its size.
 * Both may be called from several threads at once. Where a struct ptwm_allocator pointer is NULL, malloc and free
 * serve.
 */
struct ptwm_allocator {
    void *(*alloc)(void *context, size_t nbytes);
    void (*release)(void *context, void *pointer, size_t nbytes);
    void *context;
};

/*
 * A file that the caller reads for the library. read fills buffer with exactly nbytes bytes from offset (offset +
 * nbytes <= total_nbytes) and returns 0, or returns an errno value. It is called from several threads at once when
 * decoding uses more than one.
 */
struct ptwm_source {
    int (*read)(void *context, uint64_t offset, void *buffer, size_t nbytes);
    void *context;
    uint64_t total_nbytes;
};

/*
 * Where a writer puts its bytes when the caller owns the output. write takes all nbytes bytes, which follow those of
 * the call before, and returns 0, or returns an errno value. Called from the thread that calls the writer.
 */
struct ptwm_sink {
    int (*write)(void *context, const void *data, size_t nbytes);
    void *context;
};

/*
 * Memory of the caller's that a writer fills, and that grows. It begins empty; resize makes it nbytes bytes long (>=
 * 1), keeps as much of the content as fits, and returns where the memory is now. If it returns NULL, the writer fails
 * and does not touch the memory any more. Called from the thread that calls the writer.
 */
struct ptwm_buffer {
    void *(*resize)(void *context, size_t nbytes);
    void *context;
};

/*
 * Zstandard, provided by the caller. Used instead of the built-in one (if there is one) when given.
 * compress writes one frame with a declared content size and no dictionary into dst (dst_capacity is at least
 * src_nbytes + src_nbytes / 128 + 512), stores its length in *dst_nbytes and returns 0, or returns non-zero.
 * decompress fills exactly dst_nbytes bytes, or returns non-zero; the library has checked that the frame declares that
 * size before the call. Both may be called from several threads at once.
 */
struct ptwm_zstd {
    int (*compress)(void *context, void *dst, size_t dst_capacity, size_t *dst_nbytes, const void *src, size_t src_nbytes,
                    int level);
    int (*decompress)(void *context, void *dst, size_t dst_nbytes, const void *src, size_t src_nbytes);
    void *context;
};

/* 1 if zstd is built into the library, else 0. */
PTWM_API int ptwm_has_builtin_zstd(void);

/*
 * Memory for decoded tensors: nbytes bytes of undefined content, aligned to at least 64. From 2 MiB up it is a mapping
 * of its own, with huge pages where the system offers them. *memory is owned by the caller, who passes it to
 * ptwm_memory_free with the same nbytes. nbytes may be 0. Fails with PTWM_ERR_MEMORY.
 */
PTWM_API enum ptwm_status ptwm_memory_alloc(size_t nbytes, void **memory);
/* Frees what ptwm_memory_alloc gave. memory may be NULL. */
PTWM_API void ptwm_memory_free(void *memory, size_t nbytes);
/*
 * Asks the system for huge pages for memory of the caller's that is about to be filled, as ptwm_memory_alloc does for
 * its own: filling fresh small ones can take longer than decoding. It changes nothing else, and is in vain where there
 * are none.
 */
PTWM_API void ptwm_memory_prefer_huge_pages(void *memory, size_t nbytes);

/* The number of processors that this process may use; at least 1. What a thread count of 0 stands for. */
PTWM_API unsigned ptwm_usable_cpus(void);

/*
 * Kernels. The library finds the fastest instruction set that the processor and the operating system allow: "c99",
 * "sse42", "avx2", "avx512" (x86-64) or "neon" (aarch64). The environment variable PTWM_CPU, read once, or
 * ptwm_cpu_select can choose a lower one, for tests and comparisons; "best" undoes that. What is decoded and encoded
 * does not depend on it. This choice is the one thing that all readers and writers of a process share.
 */
/*
 * PTWM_ERR_ARGUMENT, and nothing changes, for a name that this machine does not have. Calls that run keep what they
 * began with.
 */
PTWM_API enum ptwm_status ptwm_cpu_select(const char *name);
/* The name of the instruction set in use. A static string. */
PTWM_API const char *ptwm_cpu_name(void);

/* CRC-32C of nbytes bytes, continued from crc (0 to begin). */
PTWM_API uint32_t ptwm_crc32c(uint32_t crc, const void *data, size_t nbytes);
/* XXH3-64 with seed 0 of nbytes bytes: the payload hash. */
PTWM_API uint64_t ptwm_xxh3_64(const void *data, size_t nbytes);

/* ------------------------------------------------------------------------------------------------------ chains */

/*
 * A chain (FORMAT.md, section 5) as its bytes in the file. Checks that it is legal for any data at all; detail in error
 * says what is wrong (PTWM_ERR_CHAIN).
 */
PTWM_API enum ptwm_status ptwm_chain_check(const void *chain, size_t chain_nbytes, struct ptwm_error *error);

/*
 * The STANDARD table: the chains that the writer considers for a dtype, in order of preference. Stores candidate number
 * index of dtype in *chain and *chain_nbytes (static memory), or fails with PTWM_ERR_RANGE past the last one. Unknown
 * dtypes have those of PTWM_DTYPE_NONE.
 */
PTWM_API enum ptwm_status ptwm_chain_standard(uint32_t dtype, size_t index, const void **chain, size_t *chain_nbytes);

/* ------------------------------------------------------------------------------------------------------ reading */

struct ptwm_reader;

/* How ptwm_reader_open_path reads. */
enum ptwm_backend {
    /*
     * Map the file. The fastest where the file is on a local disk. If somebody shortens the file while it is mapped,
     * the operating system may kill the process (SIGBUS) when a lost page is read: files that may change belong to
     * PREAD. (Windows does not let a mapped file be shortened, but may lose one on a network: EXCEPTION_IN_PAGE_ERROR.)
     */
    PTWM_BACKEND_MMAP = 0,
    /* Read with pread. For network file systems and files that may change: every failure is a status. */
    PTWM_BACKEND_PREAD = 1
};

struct ptwm_reader_options {
    size_t struct_nbytes;
    enum ptwm_backend backend;              /* ptwm_reader_open_path only */
    const struct ptwm_allocator *allocator; /* NULL: malloc. Must outlive the reader */
    const struct ptwm_zstd *zstd;           /* NULL: the built-in zstd, if any. Must outlive the reader */
};
#define PTWM_READER_OPTIONS_INIT { sizeof(struct ptwm_reader_options), PTWM_BACKEND_MMAP, NULL, NULL }

/*
 * Opens the file at path and reads its header, footer and manifest, nothing else. options may be NULL. *reader is to be
 * closed with ptwm_reader_close. The file may be renamed, replaced or deleted while it is open: the reader keeps the
 * one that it opened. On Windows path is UTF-8, and the system may refuse to replace or delete a file that is mapped, or on
 * other file systems than NTFS one that is read: what was to do that then fails, not the reader.
 */
PTWM_API enum ptwm_status ptwm_reader_open_path(const char *path, const struct ptwm_reader_options *options,
                                                struct ptwm_reader **reader, struct ptwm_error *error);
/* The same for a file in memory, which must stay as it is until the reader is closed. */
PTWM_API enum ptwm_status ptwm_reader_open_memory(const void *data, size_t data_nbytes,
                                                  const struct ptwm_reader_options *options, struct ptwm_reader **reader,
                                                  struct ptwm_error *error);
/* The same for a file that the caller reads. *source is copied; its context must outlive the reader. */
PTWM_API enum ptwm_status ptwm_reader_open_source(const struct ptwm_source *source,
                                                  const struct ptwm_reader_options *options, struct ptwm_reader **reader,
                                                  struct ptwm_error *error);
/* Releases a reader, and with it every name and shape that it gave out. reader may be NULL. */
PTWM_API void ptwm_reader_close(struct ptwm_reader *reader);

struct ptwm_reader_info {
    size_t struct_nbytes;
    uint32_t format_version;
    uint64_t n_tensors;
    uint64_t n_segments;
    uint64_t file_nbytes;
    uint64_t manifest_offset;
    uint64_t manifest_nbytes;
    uint64_t total_raw_nbytes;    /* sum over all tensors; PTWM_NONE if it does not fit */
    const void *metadata;         /* CBOR, or NULL; owned by the reader */
    size_t metadata_nbytes;
    const void *source;           /* CBOR, or NULL; owned by the reader */
    size_t source_nbytes;
};
/* Describes the file. Never fails for a reader and an info that are not NULL. */
PTWM_API enum ptwm_status ptwm_reader_get_info(const struct ptwm_reader *reader, struct ptwm_reader_info *info);

/*
 * Bytes that this reader has read from its source so far, the opening included. With PTWM_BACKEND_MMAP and with
 * ptwm_reader_open_memory, the bytes that it has looked at.
 */
PTWM_API uint64_t ptwm_reader_bytes_read(const struct ptwm_reader *reader);

/* Looks a tensor up. PTWM_ERR_NO_TENSOR if there is none. Constant time. */
PTWM_API enum ptwm_status ptwm_reader_find(const struct ptwm_reader *reader, const char *name, size_t name_nbytes,
                                           uint64_t *index);

struct ptwm_tensor_info {
    size_t struct_nbytes;
    const char *name;          /* owned by the reader */
    size_t name_nbytes;
    uint32_t dtype;            /* an enum ptwm_dtype, or a code that this library does not know */
    uint32_t n_dims;
    const uint64_t *shape;     /* n_dims logical dimensions, owned by the reader; NULL without a dtype */
    uint64_t nbytes;           /* raw length */
    uint64_t stored_nbytes;    /* its share of its segment's stored bytes, rounded up */
    uint64_t segment;          /* index, or PTWM_NONE for an empty tensor */
    uint64_t segment_offset;   /* where its raw bytes begin in the segment's */
    uint64_t hash;             /* XXH3-64 of its raw bytes, if has_hash */
    int has_hash;
};
/* Describes tensor number index, in the order of writing. PTWM_ERR_NO_TENSOR past the last one. */
PTWM_API enum ptwm_status ptwm_reader_get_tensor(const struct ptwm_reader *reader, uint64_t index,
                                                 struct ptwm_tensor_info *info);

struct ptwm_segment_info {
    size_t struct_nbytes;
    uint64_t file_offset;
    uint64_t stored_nbytes;    /* tail included */
    uint64_t tail_nbytes;
    uint64_t raw_nbytes;
    int is_checked;            /* planes have CRCs */
    int is_aligned;
};
/* Describes segment number index from the manifest alone. PTWM_ERR_RANGE past the last one. */
PTWM_API enum ptwm_status ptwm_reader_get_segment(const struct ptwm_reader *reader, uint64_t index,
                                                  struct ptwm_segment_info *info);

/* ---- decoding */

#define PTWM_DECODE_NATIVE_ORDER 1u  /* elements in the machine's byte order; without it little-endian on all machines */
#define PTWM_DECODE_SKIP_CRC 2u      /* do not check the planes' CRCs (the tail's are always checked) */
#define PTWM_DECODE_CHECK_HASH 4u    /* also check payload hashes, of requests for whole tensors that have one */

struct ptwm_decode_options {
    size_t struct_nbytes;
    uint32_t flags;
    unsigned threads;       /* 0: ptwm_usable_cpus() */
    uint64_t max_nbytes;    /* PTWM_ERR_LIMIT if the requests ask for more in all; 0: no limit */
};
#define PTWM_DECODE_OPTIONS_INIT { sizeof(struct ptwm_decode_options), 0, 0, 0 }

/* One thing to decode: a range of a tensor's elements into the caller's memory. */
struct ptwm_request {
    uint64_t tensor;          /* index */
    uint64_t first_element;   /* in logical elements in C order; bytes for tensors without a known dtype */
    uint64_t n_elements;      /* PTWM_NONE: all from first_element on */
    void *buffer;             /* any alignment; may be NULL if there is nothing to decode */
    uint64_t buffer_nbytes;   /* must be what the range holds, exactly */
};

/*
 * Decodes requests[0 .. n_requests). Reads the tails of the segments concerned and the chunks that the ranges touch,
 * each once however many requests share it. Buffers must not overlap. Ranges of sub-byte types must begin and end on
 * whole bytes (PTWM_ERR_RANGE). options may be NULL. Chunks that hold many small tensors (at most 256 KiB) are kept
 * once they were decoded, up to 16 of each reader, for calls that want the rest of them. On failure the content of all
 * buffers is undefined. Beyond the buffers it allocates at most a few chunks a thread, plus the tails.
 */
PTWM_API enum ptwm_status ptwm_reader_decode(const struct ptwm_reader *reader, const struct ptwm_request *requests,
                                             size_t n_requests, const struct ptwm_decode_options *options,
                                             struct ptwm_error *error);

/*
 * Checks everything: padding, every segment's tail, every plane's CRC, that everything decodes, and every payload hash.
 * threads: 0 for ptwm_usable_cpus(). Memory is bounded by a few chunks a thread. Time is that of decoding all segments and
 * of hashing all tensors, total_raw_nbytes in all: where many overlap, and in hostile files, far more than the file has.
 */
PTWM_API enum ptwm_status ptwm_reader_verify(const struct ptwm_reader *reader, unsigned threads,
                                             struct ptwm_error *error);

/* ---- how a segment is stored */

/* Codecs, as in the file. */
enum ptwm_codec {
    PTWM_CODEC_IDENTITY = 0,
    PTWM_CODEC_CONSTANT = 1,
    PTWM_CODEC_HUFFMAN = 2,
    PTWM_CODEC_RANS = 3,
    PTWM_CODEC_ZSTD = 4,
    PTWM_CODEC_LABEL_RANS = 5,
    PTWM_CODEC_TRIM = 6,
    PTWM_CODEC_CARRIED = 7 /* as it is, but for the first bytes, which label rANS carries in its final states */
};
/* The codec's name ("label-rans"), or NULL for an unknown one. A static string. */
PTWM_API const char *ptwm_codec_name(uint32_t codec);

/* What a plane holds. */
enum ptwm_plane_kind {
    PTWM_PLANE_BYTES = 0,   /* bytes of elements */
    PTWM_PLANE_LOW = 1,     /* 16-bit low parts of elements */
    PTWM_PLANE_REST = 2,    /* what a label step leaves over */
    PTWM_PLANE_SYMBOL = 3   /* a label step's symbols */
};

struct ptwm_layout;

/* Reads segment number index's tail. *layout is to be freed with ptwm_layout_free, before its reader is closed. */
PTWM_API enum ptwm_status ptwm_reader_get_layout(const struct ptwm_reader *reader, uint64_t index,
                                                 struct ptwm_layout **layout, struct ptwm_error *error);
PTWM_API void ptwm_layout_free(struct ptwm_layout *layout);

struct ptwm_layout_info {
    size_t struct_nbytes;
    const void *chain;        /* owned by the layout */
    size_t chain_nbytes;
    uint32_t n_planes;
    uint64_t n_chunks;
    uint64_t chunk_nbytes;    /* raw bytes of each chunk but the last */
    uint64_t unit;            /* elements of one class; 0 if the chain has no label step */
    uint64_t n_columns;       /* column shifts; 0 if none */
    uint64_t n_sets;          /* sets of label tables */
    int has_phases;           /* column shifts are in half octaves, with two tables for each class */
};
PTWM_API enum ptwm_status ptwm_layout_get_info(const struct ptwm_layout *layout, struct ptwm_layout_info *info);

struct ptwm_stored_plane {
    size_t struct_nbytes;
    enum ptwm_plane_kind kind;
    uint32_t codec;           /* an enum ptwm_codec */
    uint32_t crc;             /* CRC-32C of the stored bytes, if the segment is checked */
    uint64_t file_offset;
    uint64_t stored_nbytes;
    uint64_t raw_nbytes;      /* length of the decoded plane */
};
/* Describes one stored plane. PTWM_ERR_RANGE if there is no such chunk or plane. */
PTWM_API enum ptwm_status ptwm_layout_get_plane(const struct ptwm_layout *layout, uint64_t chunk, uint32_t plane,
                                                struct ptwm_stored_plane *info);
/*
 * Decodes a chunk's planes as they are before the chain puts them together: symbols with the columns' shifts subtracted,
 * rests packed. They go to buffer one behind the other; buffer_nbytes must be the sum of their raw_nbytes, exactly. Their
 * CRCs are checked. For statistics and for programs that debug the format; PTWM_ERR_RANGE if there is no such chunk. On
 * failure the content of buffer is undefined.
 */
PTWM_API enum ptwm_status ptwm_layout_decode_planes(const struct ptwm_layout *layout, uint64_t chunk, void *buffer,
                                                    uint64_t buffer_nbytes, struct ptwm_error *error);

/* ------------------------------------------------------------------------------------------------------ writing */

struct ptwm_writer;

/* How planes are coded. FORCED ones use the one codec for all planes that a chain gives to be coded. */
enum ptwm_method {
    PTWM_METHOD_HUFFMAN = 1,
    PTWM_METHOD_ZSTD = 2,
    PTWM_METHOD_MICROSCALE = 3,   /* chosen per plane by the data type and the data */
    PTWM_METHOD_RANS = 4,         /* label rANS on symbol planes, byte rANS elsewhere */
    PTWM_METHOD_IDENTITY = 5      /* the bytes as they are */
};

#define PTWM_WRITE_PAYLOAD_HASH 1u   /* store a hash of each tensor's raw bytes */
#define PTWM_WRITE_PLANE_CRC 2u      /* store a CRC of each plane */

struct ptwm_writer_options {
    size_t struct_nbytes;
    uint32_t flags;                         /* PTWM_WRITE_* */
    unsigned threads;                       /* 0: ptwm_usable_cpus(). The file does not depend on it */
    uint64_t chunk_nbytes;                  /* raw bytes per chunk, 4 KiB to 64 MiB; 0: 1 MiB */
    /*
     * Effort: 0 is the default. 1 .. 19 are zstd's levels where zstd is tried; from 10 on every chain and zstd are tried in
     * full on every tensor, many times as slowly, for a few thousandths of the size at best. Decoding is the same.
     */
    int level;
    const struct ptwm_allocator *allocator; /* NULL: malloc. Must outlive the writer */
    const struct ptwm_zstd *zstd;           /* NULL: the built-in zstd, if any. Must outlive the writer */
};
#define PTWM_WRITER_OPTIONS_INIT \
    { sizeof(struct ptwm_writer_options), PTWM_WRITE_PAYLOAD_HASH | PTWM_WRITE_PLANE_CRC, 0, 0, 0, NULL, NULL }

/*
 * Begins a file at path, atomically: the bytes go to a temporary file beside it, which ptwm_writer_finish syncs and
 * renames to path. Until then, and if anything fails, an older file at path stays as it was. options may be NULL.
 * *writer is to be released with ptwm_writer_close. On Windows path is UTF-8, and ptwm_writer_finish fails with EACCES if
 * the system refuses to replace a file that somebody has open; see ptwm_reader_open_path.
 */
PTWM_API enum ptwm_status ptwm_writer_open_path(const char *path, const struct ptwm_writer_options *options,
                                                struct ptwm_writer **writer, struct ptwm_error *error);
/*
 * Begins a file that goes to the caller's sink. *sink is copied. Equal tensors are stored once only if stated (alias).
 */
PTWM_API enum ptwm_status ptwm_writer_open_sink(const struct ptwm_sink *sink, const struct ptwm_writer_options *options,
                                                struct ptwm_writer **writer, struct ptwm_error *error);
/*
 * Begins a file in memory; see ptwm_writer_get_memory. Without an allocator a large one lies in pages of its own, of which
 * up to 64 MiB stay with the library for the next such file when the writer is closed.
 */
PTWM_API enum ptwm_status ptwm_writer_open_memory(const struct ptwm_writer_options *options, struct ptwm_writer **writer,
                                                  struct ptwm_error *error);
/*
 * Begins a file in the caller's memory, which is longer than the file until ptwm_writer_finish makes it as long as the
 * file. *buffer is copied. The memory stays the caller's, also when the writer is closed or fails; until then only
 * resize may touch it.
 */
PTWM_API enum ptwm_status ptwm_writer_open_buffer(const struct ptwm_buffer *buffer,
                                                  const struct ptwm_writer_options *options,
                                                  struct ptwm_writer **writer, struct ptwm_error *error);
/*
 * Releases a writer. If it is not finished, the file is abandoned and its temporary file removed. writer may be NULL.
 * Without an allocator, up to 16 MiB of what each of two encoding threads had stay with the library for the next
 * writer.
 */
PTWM_API void ptwm_writer_close(struct ptwm_writer *writer);

/* A chain as its bytes. */
struct ptwm_chain {
    const void *bytes;
    size_t nbytes;
};

struct ptwm_tensor_spec {
    size_t struct_nbytes;
    const char *name;                  /* valid UTF-8 */
    size_t name_nbytes;
    uint32_t dtype;                    /* PTWM_DTYPE_NONE: bytes without metadata; then n_dims must be 0 */
    uint32_t n_dims;
    const uint64_t *shape;             /* logical dimensions; NULL if n_dims is 0 */
    const void *data;                  /* raw bytes, little-endian, C order; NULL if nbytes is 0 */
    uint64_t nbytes;
    enum ptwm_method method;
    const struct ptwm_chain *chains;   /* candidates, of which the smallest result wins; NULL: the STANDARD table's */
    size_t n_chains;
};
#define PTWM_TENSOR_SPEC_INIT \
    { sizeof(struct ptwm_tensor_spec), NULL, 0, PTWM_DTYPE_NONE, 0, NULL, NULL, 0, PTWM_METHOD_MICROSCALE, NULL, 0 }

/*
 * Adds a tensor. Its data is read during the call only. A tensor whose bytes equal those of an earlier one is stored as
 * a reference to it. Fails with PTWM_ERR_DUPLICATE_NAME, PTWM_ERR_SIZE_MISMATCH, PTWM_ERR_ARGUMENT, PTWM_ERR_CHAIN (a
 * chain that is malformed or whose width does not divide nbytes; every candidate must be legal), after which the writer
 * can go on as if the call had not been; and with PTWM_ERR_IO, PTWM_ERR_MEMORY, PTWM_ERR_ZSTD*, after which it is of no
 * more use.
 */
PTWM_API enum ptwm_status ptwm_writer_add(struct ptwm_writer *writer, const struct ptwm_tensor_spec *spec,
                                          struct ptwm_error *error);
/*
 * Adds n_specs tensors (whose struct_nbytes are all the same) in their order, with the same result as n_specs calls of
 * ptwm_writer_add, but with several of them in the making at once on the writer's threads; that is what keeps threads
 * busy with tensors of a few MiB. Memory beyond the writer's own stays below 256 MiB, whatever the sizes are. If one of
 * them fails, those before it have been added, it and those after it have not; error->tensor says which it was, and
 * whether the writer can go on is as with ptwm_writer_add.
 */
PTWM_API enum ptwm_status ptwm_writer_add_many(struct ptwm_writer *writer, const struct ptwm_tensor_spec *specs,
                                               size_t n_specs, struct ptwm_error *error);
/* Adds a second name for the bytes, dtype and shape of a tensor that is already there (PTWM_ERR_NO_TENSOR if not). */
PTWM_API enum ptwm_status ptwm_writer_add_alias(struct ptwm_writer *writer, const char *name, size_t name_nbytes,
                                                const char *target, size_t target_nbytes, struct ptwm_error *error);
/*
 * Adds tensor number index of reader under name (NULL: its own). Encoded segments are copied as they are; a tensor that
 * is a small part of a shared segment is decoded and encoded again with its segment's chain. Tensors that share bytes
 * in reader do so in the new file too.
 */
PTWM_API enum ptwm_status ptwm_writer_copy(struct ptwm_writer *writer, const struct ptwm_reader *reader, uint64_t index,
                                           const char *name, size_t name_nbytes, struct ptwm_error *error);

/* Sets the user metadata, a CBOR map that the library does not look into; or the source entry. NULL, 0 removes it. */
PTWM_API enum ptwm_status ptwm_writer_set_metadata(struct ptwm_writer *writer, const void *cbor, size_t cbor_nbytes,
                                                   struct ptwm_error *error);
PTWM_API enum ptwm_status ptwm_writer_set_source(struct ptwm_writer *writer, const void *cbor, size_t cbor_nbytes,
                                                 struct ptwm_error *error);

/* Writes what is left, the manifest and the footer; with a path, publishes the file. Only closing may follow. */
PTWM_API enum ptwm_status ptwm_writer_finish(struct ptwm_writer *writer, struct ptwm_error *error);
/*
 * The finished file of a ptwm_writer_open_memory writer, owned by the writer, or of a ptwm_writer_open_buffer writer,
 * in the caller's memory. PTWM_ERR_STATE before it is finished.
 */
PTWM_API enum ptwm_status ptwm_writer_get_memory(const struct ptwm_writer *writer, const void **data,
                                                 size_t *data_nbytes);

#ifdef __cplusplus
}
#endif

#endif /* PTWM_H */
