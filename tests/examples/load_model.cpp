// What load_model.c does, in C++11: the reader closes itself, failures are exceptions.
#include <ptwm.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Closer {
    void operator()(ptwm_reader *reader) const { ptwm_reader_close(reader); }
};
using Reader = std::unique_ptr<ptwm_reader, Closer>;

void check(ptwm_status status, const ptwm_error &error)
{
    if (status != PTWM_OK)
        throw std::runtime_error(std::string(ptwm_status_string(status)) + ": " + error.detail);
}

Reader open(const char *path)
{
    ptwm_error error = PTWM_ERROR_INIT;
    ptwm_reader *reader = nullptr;

    check(ptwm_reader_open_path(path, nullptr, &reader, &error), error);
    return Reader(reader);
}

std::vector<unsigned char> load(const Reader &reader, uint64_t index, uint64_t nbytes)
{
    ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    ptwm_error error = PTWM_ERROR_INIT;
    std::vector<unsigned char> bytes(nbytes);
    const ptwm_request request = { index, 0, PTWM_NONE, bytes.data(), nbytes };

    options.flags = PTWM_DECODE_CHECK_HASH;
    check(ptwm_reader_decode(reader.get(), &request, 1, &options, &error), error);
    return bytes;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    try {
        const Reader reader = open(argv[1]);
        ptwm_tensor_info tensor = {};
        tensor.struct_nbytes = sizeof tensor;
        for (uint64_t i = 0; ptwm_reader_get_tensor(reader.get(), i, &tensor) == PTWM_OK; i++) {
            const std::vector<unsigned char> bytes = load(reader, i, tensor.nbytes);
            std::printf("%s %s %llu %08lx\n", std::string(tensor.name, tensor.name_nbytes).c_str(),
                        ptwm_dtype_name(tensor.dtype), static_cast<unsigned long long>(tensor.nbytes),
                        static_cast<unsigned long>(ptwm_crc32c(0, bytes.data(), bytes.size())));
        }
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "%s: %s\n", argv[1], failure.what());
        return 1;
    }
    return 0;
}
