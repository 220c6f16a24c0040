#ifdef _WIN32
#define __USE_MINGW_ANSI_STDIO 1 /* printf with C99's formats */
#endif

#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ptwm_version(void)
{
    return "0.1.0";
}

const char *ptwm_status_string(enum ptwm_status status)
{
    switch (status) {
    case PTWM_OK: return "no error";
    case PTWM_ERR_ARGUMENT: return "invalid argument";
    case PTWM_ERR_MEMORY: return "out of memory";
    case PTWM_ERR_IO: return "input/output error";
    case PTWM_ERR_NOT_PTWM: return "not a .ptwm file";
    case PTWM_ERR_FOREIGN: return "a .ptwm file of an unrelated project";
    case PTWM_ERR_VERSION: return "unknown version of the format";
    case PTWM_ERR_TRUNCATED: return "truncated file";
    case PTWM_ERR_TRAILING: return "bytes behind the end of the file's contents";
    case PTWM_ERR_FEATURE: return "unknown required feature";
    case PTWM_ERR_MANIFEST: return "malformed manifest";
    case PTWM_ERR_DUPLICATE_NAME: return "duplicate tensor name";
    case PTWM_ERR_SEGMENT: return "malformed segment";
    case PTWM_ERR_CHAIN: return "illegal chain";
    case PTWM_ERR_CODEC: return "unknown or misplaced codec";
    case PTWM_ERR_PLANE: return "malformed plane";
    case PTWM_ERR_CHECKSUM: return "checksum mismatch";
    case PTWM_ERR_HASH: return "payload hash mismatch";
    case PTWM_ERR_PADDING: return "padding is not zero";
    case PTWM_ERR_ZSTD_UNAVAILABLE: return "zstd is not available";
    case PTWM_ERR_ZSTD: return "zstd failed";
    case PTWM_ERR_NO_TENSOR: return "no such tensor";
    case PTWM_ERR_RANGE: return "out of range";
    case PTWM_ERR_LIMIT: return "larger than max_nbytes";
    case PTWM_ERR_STATE: return "the writer is finished or has failed";
    case PTWM_ERR_SIZE_MISMATCH: return "length does not match shape and dtype";
    }
    return "unknown status";
}

static enum ptwm_status fill(struct ptwm_error *error, enum ptwm_status status, int os_error, const char *detail)
{
    struct ptwm_error full = PTWM_ERROR_INIT;

    if (error == NULL || error->struct_nbytes < sizeof full.struct_nbytes)
        return status;
    full.struct_nbytes = error->struct_nbytes;
    full.status = status;
    full.os_error = os_error;
    memcpy(full.detail, detail, strlen(detail) + 1);
    memcpy(error, &full, error->struct_nbytes < sizeof full ? error->struct_nbytes : sizeof full);
    return status;
}

enum ptwm_status ptwm_fail(struct ptwm_error *error, enum ptwm_status status, const char *format, ...)
{
    char detail[sizeof ((struct ptwm_error *)0)->detail];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    return fill(error, status, 0, detail);
}

enum ptwm_status ptwm_fail_os(struct ptwm_error *error, int os_error, const char *what)
{
    return fill(error, PTWM_ERR_IO, os_error, what);
}

void ptwm_fail_at(struct ptwm_error *error, uint64_t tensor, uint64_t file_offset)
{
    if (error == NULL || error->struct_nbytes < sizeof *error)
        return;
    if (error->tensor == PTWM_NONE)
        error->tensor = tensor;
    if (error->file_offset == PTWM_NONE)
        error->file_offset = file_offset;
}
