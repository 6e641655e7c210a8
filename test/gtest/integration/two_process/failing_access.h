// Windows of one peer whose memory shows every write, and operations of the other peer that must fail.
//
// Example: initiator operations(session); operations.fail_all(key, address, 8, "behind the window");
#pragma once

#include "plain_peer.h"
#include "remote_key.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <ucp_layout.hpp>
#include <ucp_layout_failure.h>

#include <sys/mman.h>

namespace ucxl::two_process
{

enum class memory_kind { short_blocks, long_blocks, allocated };

inline constexpr std::array all_kinds = {memory_kind::short_blocks, memory_kind::long_blocks, memory_kind::allocated};

constexpr const char* name_of(memory_kind kind)
{
    constexpr std::array names = {"short blocks", "long blocks", "allocated"};
    return names[static_cast<std::size_t>(kind)];
}

struct shape {
    std::size_t block;
    std::size_t number;
    std::size_t stride() const { return 2 * block; }
    std::size_t length() const { return block * number; }
    std::size_t span() const { return stride() * number; }
};

constexpr shape shape_of(memory_kind kind)
{
    return kind == memory_kind::long_blocks ? shape{65536, 4} : shape{64, 512};
}

// Pages that can be removed, so that a later access ends the process. One more on each side belongs to nobody.
class pages
{
public:
    static constexpr std::size_t neighbour = 4096;

    explicit pages(std::size_t length)
        : _length(((length + 4095) & ~std::size_t{4095}) + 2 * neighbour),
          _start(mmap(nullptr, _length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    {
        check(_start != MAP_FAILED, "mmap failed");
    }
    ~pages() { munmap(_start, _length); }
    pages(const pages&)            = delete;
    pages& operator=(const pages&) = delete;

    std::byte* data() const { return all().data() + neighbour; }
    // With the neighbours.
    std::span<std::byte> all() const { return {static_cast<std::byte*>(_start), _length}; }

private:
    std::size_t _length;
    void* _start;
};

class owned_window
{
public:
    owned_window(session& session, memory_kind kind) : _shape(shape_of(kind))
    {
        const auto layout =
            ucx_layout::layout::create_strided(_shape.block, {{_shape.number, ptrdiff_t(_shape.stride())}});
        check(layout.has_value(), "ucp_layout_create failed");
        if (kind == memory_kind::allocated) {
            auto created = ucx_layout::window::allocate(session.context(), *layout);
            check(created.has_value(), "ucp_layout_map failed");
            _window.emplace(std::move(*created));
            void* base = nullptr;
            check_ok(_window->bases({&base, 1}), "bases");
            _base = static_cast<std::byte*>(base);
        } else {
            _pages       = std::make_unique<pages>(_shape.span());
            _base        = _pages->data();
            auto created = ucx_layout::window::map(session.context(), *layout, _base);
            check(created.has_value(), "ucp_layout_map failed");
            _window.emplace(std::move(*created));
        }
        fill();
    }

    void append_key_to(bytes& keys, session& session) const
    {
        append_key(keys, session.context(), _window->memh(), _window->address());
    }

    void fill() { fill_with(pattern); }
    // The bytes of the window. All others have another value.
    void fill_with(std::byte value)
    {
        std::ranges::fill(memory(), gap);
        for (std::size_t block = 0; block < _shape.number; ++block) {
            std::fill_n(_base + block * _shape.stride(), _shape.block, value);
        }
    }

    void verify(const char* moment) const
    {
        for (std::size_t i = 0; i < span(); ++i) {
            check(!is_in_window(i) || _base[i] == pattern, "{}: byte {} of the window was written", moment, i);
        }
        verify_gaps(moment);
    }

    // And the pages around the memory.
    void verify_gaps(const char* moment) const
    {
        for (const std::byte& byte : memory()) {
            const auto i = &byte - _base;
            check((i >= 0 && is_in_window(static_cast<std::size_t>(i))) || byte == gap,
                  "{}: byte {}, in a gap, was written", moment, i);
        }
    }

    void unmap() { _window.reset(); }
    // The pages now belong to another use; nobody may write to them.
    void verify_reused(const char* moment)
    {
        if (_pages != nullptr) {
            verify(moment);
        }
    }
    void free_memory()
    {
        _pages.reset();
        _base = nullptr;
    }

    static constexpr std::byte pattern{0x5a};
    static constexpr std::byte gap{0xc3};

private:
    std::size_t span() const { return _shape.span() - _shape.block; }
    bool is_in_window(std::size_t i) const { return i < span() && i % _shape.stride() < _shape.block; }
    std::span<std::byte> memory() const
    {
        return _pages != nullptr ? _pages->all() : std::span<std::byte>(_base, span());
    }

    shape _shape;
    std::unique_ptr<pages> _pages;
    std::optional<ucx_layout::window> _window;
    std::byte* _base = nullptr;
};

inline std::atomic<unsigned> silent_remote_failures{0};

inline void count_failure(const ucp_layout_failure_t* failure, void*)
{
    if (failure->silent != 0 &&
        (failure->kind == UCP_LAYOUT_FAILURE_REMOTE_WRITE || failure->kind == UCP_LAYOUT_FAILURE_REMOTE_ATOMIC)) {
        ++silent_remote_failures;
    }
}

class initiator
{
public:
    explicit initiator(session& session) : _session(session) {}

    // Runs all operations on a range that is not all in the window; all must fail.
    void fail_all(const remote_key& key, std::uint64_t address, std::size_t length, const std::string& attempt)
    {
        fail_get(key, address, length, attempt);
        fail_put(key, address, length, attempt);
        fail_fetch(key, address, attempt);
        fail_post(key, address, attempt);
    }

    void fail_get(const remote_key& key, std::uint64_t address, std::size_t length, const std::string& attempt)
    {
        bytes buffer(length, std::byte{0x11});
        const ucp_request_param_t param{};
        const auto status =
            _session.wait(ucp_get_nbx(_session.endpoint(), buffer.data(), length, address, key.get(), &param));
        check(status != UCS_OK, "{}: a get of {} bytes was UCS_OK", attempt, length);
        _session.flush();
    }

    void fail_put(const remote_key& key, std::uint64_t address, std::size_t length, const std::string& attempt)
    {
        const bytes buffer(length, std::byte{0x22});
        const ucp_request_param_t param{};
        const auto before = silent_remote_failures.load();
        const auto status =
            _session.wait(ucp_put_nbx(_session.endpoint(), buffer.data(), length, address, key.get(), &param));
        _session.flush();
        check(status != UCS_OK || silent_remote_failures > before, "{}: nobody told of a put of {} bytes", attempt,
              length);
    }

    void fail_fetch(const remote_key& key, std::uint64_t address, const std::string& attempt)
    {
        if (address % sizeof(std::uint64_t) != 0) {
            return; // refused by ucp_atomic_op_nbx
        }
        std::uint64_t operand = 1;
        std::uint64_t reply   = 7;
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.datatype     = ucp_dt_make_contig(sizeof(operand));
        param.reply_buffer = &reply;
        const auto status  = _session.wait(
            ucp_atomic_op_nbx(_session.endpoint(), UCP_ATOMIC_OP_ADD, &operand, 1, address, key.get(), &param));
        check(status != UCS_OK, "{}: a fetch and add was UCS_OK", attempt);
        _session.flush();
    }

    void fail_post(const remote_key& key, std::uint64_t address, const std::string& attempt)
    {
        if (address % sizeof(std::uint64_t) != 0) {
            return;
        }
        std::uint64_t operand = 1;
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype     = ucp_dt_make_contig(sizeof(operand));
        const auto before  = silent_remote_failures.load();
        const auto status  = _session.wait(
            ucp_atomic_op_nbx(_session.endpoint(), UCP_ATOMIC_OP_ADD, &operand, 1, address, key.get(), &param));
        _session.flush();
        check(status != UCS_OK || silent_remote_failures > before, "{}: nobody told of an add", attempt);
    }

    // Afterwards the bytes are those that the window had before any operation.
    void succeed(const remote_key& key, std::size_t length)
    {
        for (const std::byte value : {std::byte{0x33}, owned_window::pattern}) {
            const bytes sent(length, value);
            bytes got(length);
            const ucp_request_param_t param{};
            check_ok(
                _session.wait(ucp_put_nbx(_session.endpoint(), sent.data(), length, key.address(), key.get(), &param)),
                "put into a live window");
            _session.flush();
            check_ok(
                _session.wait(ucp_get_nbx(_session.endpoint(), got.data(), length, key.address(), key.get(), &param)),
                "get from a live window");
            check(got == sent, "a live window does not hold what was put");
        }
    }

private:
    session& _session;
};

} // namespace ucxl::two_process
