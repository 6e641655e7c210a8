// One side of a transfer: memory shown to UCP in one of several ways, and its expected contents afterwards.
//
// The memory exists twice with equal contents: UCP works on one copy, the reference walker on the other. After the
// transfer all bytes of both must be equal, including those between and around the described bytes.
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
    shared,    // ucp_layout_map over memory of ucp_layout_memory_create, of one piece or of several
    datatype,  // ucp_layout_datatype_create, count elements
};

const char* name_of(side_kind kind);

// The choices for a side. Both peers draw the same ones; the owner of the side creates it.
struct side_plan {
    side_kind kind       = side_kind::host;
    std::uint64_t seed   = 0;
    std::uint64_t before = 0;     // packed bytes before the transferred range
    std::uint64_t after  = 0;     // packed bytes after it
    bool pass_memh       = false; // pass the memory handle to UCP with the request
    bool remote          = false; // host memory needs a handle, for its remote key
};

class side
{
public:
    side(session& session, const side_plan& plan, std::uint64_t length);
    ~side();
    side(const side&)            = delete;
    side& operator=(const side&) = delete;

    // Arguments for UCP calls.
    void* buffer() const { return _buffer; }
    std::size_t count() const { return _count; }
    ucp_mem_h memh() const { return _memh; }
    void describe_to(ucp_request_param_t& param) const;

    // Puts the message into the memory. Call it before transfers start.
    void put_message(std::span<const std::byte> message);
    // The transfer must have brought this message.
    void expect_message(std::span<const std::byte> message);
    // Whether one of the first bytes of the transfer has come.
    bool has_begun() const;
    // Accepts any contents in the bytes of the transfer; all others are still checked.
    void accept_content();
    // Throws if any byte differs from the expected one.
    void verify();

    // Puts other memory with the same contents under the window. Only for side_kind::window and shared.
    void rebind();

    std::string text() const;

private:
    void make_memory();
    void make_host(const side_plan& plan);
    void make_window();
    std::vector<void*> make_shared_bases();
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
    std::vector<void*> _library_bases; // of a window with ALLOCATE, or over shared memory
    std::vector<ucx_layout::memory> _shared;
    std::optional<ucx_layout::window> _window;
    std::optional<ucx_layout::datatype> _datatype;
    std::vector<void*> _datatype_bases;
    bool _pass_memh    = false;
    ucp_mem_h _memh    = nullptr; // of host memory: owned
    void* _buffer      = nullptr;
    std::size_t _count = 0;
};

} // namespace ucxl::two_process
