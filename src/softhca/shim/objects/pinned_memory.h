// Memory of the program that the device may use: a UMEM.
#pragma once

#include <cstdint>
#include <utility>

#include "device_file.h"

namespace ucxl::softhca
{

class pinned_memory
{
public:
    pinned_memory() = default;
    pinned_memory(pinned_memory&& other) noexcept : _file(other._file), _id(std::exchange(other._id, 0)) {}
    pinned_memory& operator=(pinned_memory&& other) noexcept
    {
        std::swap(_file, other._file);
        std::swap(_id, other._id);
        return *this;
    }
    ~pinned_memory() { reset(); }

    // 0 or an errno: EFAULT when the program does not have that memory. `uid` is the owner: the kernel, or the context
    // when the program knows the number of the UMEM.
    static int pin(device_file& file, std::uint64_t address, std::uint64_t length, std::uint32_t access,
                   pinned_memory& pinned, std::uint16_t uid = 0);

    std::uint32_t id() const { return _id; }
    int release(); // 0 or an errno: EBUSY while an object of the device uses it
    void reset() { (void)release(); }

private:
    device_file* _file = nullptr;
    std::uint32_t _id  = 0;
};

} // namespace ucxl::softhca
