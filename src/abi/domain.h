// A memory domain of ours, in the form that the attached UCX expects. Ours are written once; this header's functions
// translate.
//
// Example:
//     const domain_operations operations = {.close = close, .query = query, .mem_reg = mem_reg, ...};
//     struct my_domain { domain base; ... };
//     init_domain(self->base, operations, component);
#pragma once

#include "uct.h"

namespace ucxl::abi
{

// What a domain tells about itself; what it does not set is UCX's default.
struct domain_attr {
    std::uint64_t flags            = 0; // UCT_MD_FLAG_*
    std::uint64_t reg_mem_types    = 0; // masks of UCS_BIT(ucs_memory_type_t)
    std::uint64_t cache_mem_types  = 0;
    std::uint64_t detect_mem_types = 0;
    std::uint64_t alloc_mem_types  = 0;
    std::uint64_t access_mem_types = 0;
    std::uint64_t max_alloc        = 0; // bytes
    std::size_t rkey_packed_size   = 0; // bytes
};

// Operations without a function are refused with UCS_ERR_UNSUPPORTED.
struct domain_operations {
    void (*close)(uct_md_h md);
    domain_attr (*query)();
    ucs_status_t (*mem_alloc)(uct_md_h md, std::size_t* length, void** address, ucs_memory_type_t type, unsigned flags,
                              uct_mem_h* memh)            = nullptr;
    ucs_status_t (*mem_free)(uct_md_h md, uct_mem_h memh) = nullptr;
    ucs_status_t (*mem_reg)(uct_md_h md, void* address, std::size_t length, const mem_reg_params* params,
                            uct_mem_h* memh);
    ucs_status_t (*mem_dereg)(uct_md_h md, const mem_dereg_params* params);
    ucs_status_t (*mkey_pack)(uct_md_h md, uct_mem_h memh, void* address, std::size_t length,
                              const mkey_pack_params* params, void* buffer);
    // Returns false if the domain does not know the memory.
    bool (*detect)(const void* address, ucs_memory_type_t& type) = nullptr;
};

// A domain's object begins with this.
struct domain {
    uct_md super;
    const domain_operations* operations; // static lifetime
};

void init_domain(domain& domain, const domain_operations& operations, uct_component* component);

} // namespace ucxl::abi
