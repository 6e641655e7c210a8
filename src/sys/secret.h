// A number that peers do not know, another one in each process: for hash tables whose keys peers choose. Who knows the
// hash can give all of them the same place, and searching them then takes long.
#pragma once

#include <cstdint>
#include <cstring>

#include <sys/auxv.h>

namespace ucxl
{

inline std::uint64_t process_secret()
{
    static const std::uint64_t chosen = [] {
        std::uint64_t value     = 0;
        const void* const bytes = reinterpret_cast<const void*>(getauxval(AT_RANDOM)); // 16 of them (getauxval(3))
        if (bytes != nullptr) {
            std::memcpy(&value, bytes, sizeof(value));
        }
        return value;
    }();
    return chosen;
}

} // namespace ucxl
