// The software device as a program on it can see and change it: which objects there are, and what fails from now on.
//
// Example:
//     const device_control device;
//     const device_objects before = device.objects();
//     device.fail("command:create_mkey,first=3"); ...; const bool had_a_third = device.stop_failing();
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string_view>

namespace ucxl::softhca
{
struct arena;
}

namespace ucxl::test
{

struct device_objects {
    std::uint64_t protection_domains = 0;
    std::uint64_t completion_queues  = 0;
    std::uint64_t queue_pairs        = 0;
    std::uint64_t keys               = 0;
    std::uint64_t registered_memory  = 0; // umem objects, as DEVX has them
    std::uint64_t memic_bytes        = 0;

    bool operator==(const device_objects&) const = default;
};

void PrintTo(const device_objects& objects, std::ostream* to);

class device_control
{
public:
    // Throws std::runtime_error if this process was not started by softhca-run.
    device_control();

    device_objects objects() const;
    // Whether the key exists, in this variant, and shows memory.
    bool is_bound(std::uint32_t key) const;
    // Keys that show memory, and begin at that address.
    std::size_t num_bound_at(const void* address) const;
    // Commands that were answered with a status other than ok, in all processes.
    std::uint64_t failed_commands() const;

    // As softhca-run --fault, from now on.
    void fail(std::string_view fault) const;
    // Whether some occurrence failed. None does any more.
    bool stop_failing() const;

private:
    softhca::arena* _records;
};

} // namespace ucxl::test
