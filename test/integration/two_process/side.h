// One side of a transfer: memory somewhere, shown to UCP in one of several ways, and what it must look like afterwards.
//
// The memory exists twice, filled alike: one that UCP works on, one that the reference walker works on. After the
// transfer both have to be equal in every byte, those between and around the described ones included.
#pragma once

#include "layouts.h"
#include "session.h"

#include "support/spec_memory.h"

#include <optional>

namespace ucxl::two_process
{

enum class side_kind {
    host,      // plain contiguous memory
    window,    // ucp_layout_map over our memory
    allocated, // ucp_layout_map with UCP_LAYOUT_MAP_FLAG_ALLOCATE
    datatype,  // ucp_layout_datatype_create, count elements
};

const char* name_of(side_kind kind);

// What a side is; decided alike by both peers, made by the one that owns it.
struct side_plan {
    side_kind kind       = side_kind::host;
    std::uint64_t seed   = 0;
    std::uint64_t before = 0;     // packed bytes in front of those transferred
    std::uint64_t after  = 0;     // and behind
    bool pass_memh       = false; // give UCP the memory handle with the request
    bool remote          = false; // host memory needs a handle, for its remote key
};

class side
{
public:
    side(session& of, const side_plan& plan, std::uint64_t length);
    ~side();
    side(const side&)            = delete;
    side& operator=(const side&) = delete;

    // Arguments for UCP calls.
    void* buffer() const { return _buffer; }
    std::size_t count() const { return _count; }
    ucp_mem_h memh() const { return _memh; }
    void describe_to(ucp_request_param_t& param) const;

    // The message is in our memory before it is sent: to be called before transfers start.
    void put_message(std::span<const std::byte> message);
    // The transfer is expected to have brought the message here.
    void expect_message(std::span<const std::byte> message);
    // Whatever is now in the bytes of the transfer is right; all others are still checked.
    void accept_content();
    // Throws when any byte is not as it has to be.
    void verify();

    // Other memory under the same window, with the same contents. Only for side_kind::window.
    void rebind();

    std::string text() const;

private:
    void make_memory();
    void make_host(const side_plan& plan);
    void make_window(bool allocate);
    void make_datatype(test::random& random, std::uint64_t length);
    void move_to_library();
    void move_from_library();

    session& _session;
    side_kind _kind;
    test::spec_ptr _spec;
    std::uint64_t _seed;
    std::uint64_t _before;
    std::uint64_t _length;
    std::size_t _misalign = 0;
    std::unique_ptr<test::spec_memory> _actual;
    std::unique_ptr<test::spec_memory> _expected;
    std::vector<void*> _library_bases; // of an ALLOCATE window
    std::optional<ucx_layout::window> _window;
    std::optional<ucx_layout::datatype> _datatype;
    std::vector<void*> _datatype_bases;
    bool _pass_memh    = false;
    ucp_mem_h _memh    = nullptr; // of host memory: owned
    void* _buffer      = nullptr;
    std::size_t _count = 0;
};

} // namespace ucxl::two_process
