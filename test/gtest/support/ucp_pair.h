// Two UCP workers in this process that are connected to each other (or one that is connected to itself), on stock UCX.
//
// Example: ucp_pair pair({.config = {{"TLS", "posix,lay_copy"}}});  pair.send_tag(from, to, length);
#pragma once

#include "ucp.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

namespace ucxl::test
{

struct ucp_options {
    std::vector<std::pair<std::string, std::string>> config{}; // {"TLS", "posix,lay_copy"}
    bool self                     = false;                     // one worker, connected to itself
    bool wakeup                   = false; // the wakeup feature, and waiting on the worker's descriptor
    ucs_thread_mode_t thread_mode = UCS_THREAD_MODE_SINGLE;
};

// What one side of a transfer moves.
struct ucp_buffer {
    void* buffer;
    std::size_t count;
    ucp_datatype_t datatype;
};

inline ucp_buffer contiguous(void* buffer, std::size_t length)
{
    return {buffer, length, ucp_dt_make_contig(1)};
}

class ucp_pair
{
public:
    // Throws std::runtime_error with UCX's words.
    explicit ucp_pair(const ucp_options& options);
    ~ucp_pair();
    ucp_pair(const ucp_pair&)            = delete;
    ucp_pair& operator=(const ucp_pair&) = delete;

    ucp_context_h context(unsigned which = 0) const { return _sides[index(which)].context; }
    ucp_worker_h worker(unsigned which) const { return _sides[index(which)].worker; }
    ucp_ep_h ep(unsigned which) const { return _sides[index(which)].ep; }

    // From side 0 to side 1; both sides are done when they return. The status is that of the first operation that
    // failed.
    ucs_status_t send_tag(const void* from, void* to, std::size_t length);
    // The same with datatypes. Threads that share a pair use tags of their own.
    ucs_status_t transfer(const ucp_buffer& from, const ucp_buffer& to, ucp_tag_t tag = 1);
    ucs_status_t send_stream(const void* from, void* to, std::size_t length);
    // The payload of an eager active message is host memory of UCP's, so `to` must be host memory too, or rendezvous be
    // asked for.
    ucs_status_t send_am(const void* from, void* to, std::size_t length, bool rendezvous);
    // Side 0 writes to, or reads from, memory of side 1 of type `type`.
    ucs_status_t put(const void* from, void* to, std::size_t length, ucs_memory_type_t type);
    ucs_status_t get(const void* from, void* to, std::size_t length, ucs_memory_type_t type);

    // Progresses both sides until the request is done, and frees it.
    ucs_status_t finish(ucs_status_ptr_t request);

private:
    struct side {
        ucp_context_h context = nullptr;
        ucp_worker_h worker   = nullptr;
        ucp_ep_h ep           = nullptr;
    };

    std::size_t index(unsigned which) const { return _self ? 0 : which; }
    void progress();
    ucs_status_t access(bool is_put, const void* from, void* to, std::size_t length, ucs_memory_type_t type);
    static ucs_status_t on_am(void* arg, const void* header, std::size_t header_length, void* data, std::size_t length,
                              const ucp_am_recv_param_t* param);

    bool _self;
    bool _wakeup;
    side _sides[2];
    struct {
        void* to            = nullptr;
        std::size_t length  = 0;
        bool arrived        = false;
        ucs_status_ptr_t rx = nullptr;
    } _am;
};

} // namespace ucxl::test
