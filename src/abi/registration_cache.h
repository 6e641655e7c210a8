// UCX's registration cache (ucs_rcache): registrations of memory that are kept, and dropped when the memory is
// unmapped. Any thread.
//
// Example:
//     auto cache = UCXL_TRY(registration_cache::create("bases", {.add = register_memory, .remove = ..., .context =
//     this})); auto* kept = UCXL_TRY(cache->get(address, length)); ... cache->put(kept);
#pragma once

#include "sys/error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace ucxl::abi
{

class registration_cache
{
public:
    // What a registration is to the user: one pointer.
    struct operations {
        // Registers [start, start + length); null if that does not work. Must not throw.
        void* (*add)(void* context, void* start, std::size_t length);
        void (*remove)(void* context, void* registration, std::size_t length);
        void* context;
    };

    // A registration in use. It may be larger than asked for.
    struct entry;

    // Errors: no_memory, unsupported.
    static result<std::unique_ptr<registration_cache>> create(const char* name, const operations& operations);
    // Every entry has been put back.
    ~registration_cache();
    registration_cache(const registration_cache&)            = delete;
    registration_cache& operator=(const registration_cache&) = delete;

    // Finds or makes a registration of at least this range, readable and writable. Errors: invalid_param (the memory
    // cannot be registered).
    result<entry*> get(void* address, std::size_t length);
    void put(entry* used);

    static void* registration_of(const entry* used);

private:
    registration_cache() = default;

    struct table;

    operations _operations{};
    std::unique_ptr<table> _table;
    void* _cache = nullptr;
    std::mutex _lock; // newer releases want one around each call
};

} // namespace ucxl::abi
