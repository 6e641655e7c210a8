#include "pinned_memory.h"

#include "access_flags.h"

namespace ucxl::softhca
{

int pinned_memory::pin(device_file& file, std::uint64_t address, std::uint64_t length, std::uint32_t access,
                       pinned_memory& pinned, std::uint16_t uid)
{
    if (const int error = file.outside.check_user(address, length, writes_memory(access)); error != 0) {
        return error;
    }
    const auto made = file.device.create_umem(file.function, uid, address, length, access);
    if (!made) {
        return error_of(made.error());
    }
    pinned.reset();
    pinned._file = &file;
    pinned._id   = *made;
    return 0;
}

int pinned_memory::release()
{
    if (_id == 0) {
        return 0;
    }
    const int error = error_of(_file->device.destroy_umem(_id));
    if (error == 0) {
        _id = 0;
    }
    return error;
}

} // namespace ucxl::softhca
