// Asks which memory domains of ours a UCP context has. No call of UCP tells. But ucp_mem_map asks each domain of the
// context to register, in the calling thread: while a query exists in a thread, our domains note that they were asked,
// and register nothing.
//
// Example: domain_query query; ucp_mem_map(context, ...); if (query.found.copying == nullptr) { no windows there }
#pragma once

#include <cstddef>
#include <vector>

namespace ucxl
{

// They identify domains, which may be closed.
struct asked_domains {
    const void* copying = nullptr; // that of the component `layout`
    std::vector<const void*> with_keys;
};

class domain_query
{
public:
    domain_query()
    {
        found.with_keys.reserve(more_than_a_host_has);
        _current = this;
    }
    ~domain_query() { _current = nullptr; }
    domain_query(const domain_query&)            = delete;
    domain_query& operator=(const domain_query&) = delete;

    // That of this thread, or null.
    static domain_query* current() { return _current; }

    asked_domains found;

private:
    static constexpr std::size_t more_than_a_host_has = 64; // a domain that runs out of memory makes UCP log an error

    static inline constinit thread_local domain_query* _current = nullptr;
};

} // namespace ucxl
