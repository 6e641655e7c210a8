// An interface and an endpoint of lay_shm or lay_cma in a process of its own, and windows to work on with them:
// exported, imported as a peer would do it, and compared with a plain copy of their memory.
#pragma once

#include "support/must.h"
#include "support/spec.h"
#include "support/spec_memory.h"
#include "ucs/window/window.h"
#include "uct/layout/cma/lay_cma.h"
#include "uct/layout/peer/export.h"
#include "uct/layout/peer/import.h"
#include "uct/layout/shm/lay_shm.h"
#include "uct_iface_fixture.h"

#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

namespace ucxl::test
{

// A window over memory of its own, and a plain copy of all of that memory for the oracle.
class shared_window
{
public:
    explicit shared_window(const spec& of, std::uint64_t seed = 1)
        : _segments(segments_of(of)),
          _window(must(window_registry::instance().allocate(must(pack_plan::compile(must(build(of))))))),
          _shadow(random_bytes(seed, memory().length()))
    {
        std::memcpy(start(), _shadow.data(), _shadow.size());
    }
    ~shared_window() { window_registry::instance().destroy(_window); }
    shared_window(const shared_window&)            = delete;
    shared_window& operator=(const shared_window&) = delete;

    std::byte* address() const { return _window->address(); }
    std::uint64_t remote(std::uint64_t offset = 0) const
    {
        return reinterpret_cast<std::uintptr_t>(address()) + offset;
    }
    std::uint64_t length() const { return _window->length(); }
    const layout_memory& memory() const { return *_window->binding().memory; }
    std::byte* start() const { return _window->binding().bases[0] - memory().file_offset(_window->binding().bases[0]); }
    bool is_as_expected() const { return std::memcmp(start(), _shadow.data(), _shadow.size()) == 0; }

    // Of the plain copy.
    std::vector<std::byte> gather(std::uint64_t offset, std::uint64_t length)
    {
        std::vector<std::byte> bytes;
        for_each_byte(offset, length, [&](std::byte& each) { bytes.push_back(each); });
        return bytes;
    }
    void scatter(std::uint64_t offset, std::span<const std::byte> from)
    {
        std::size_t i = 0;
        for_each_byte(offset, from.size(), [&](std::byte& each) { each = from[i++]; });
    }

private:
    template <typename Fn>
    void for_each_byte(std::uint64_t offset, std::uint64_t length, Fn&& fn)
    {
        std::uint64_t at = 0;
        for (const segment& each : _segments) {
            const auto base = memory().file_offset(_window->binding().bases[each.source]);
            for (std::uint64_t i = 0; i < each.length; ++i, ++at) {
                if (at >= offset && at - offset < length) {
                    fn(_shadow[static_cast<std::size_t>(base + each.offset) + i]);
                }
            }
        }
    }

    std::vector<segment> _segments;
    window* _window;
    std::vector<std::byte> _shadow;
};

class imported
{
public:
    explicit imported(const shm_key& key)
    {
        if (auto made = import_window(key)) {
            _window = *made;
        }
    }
    ~imported()
    {
        if (_window != nullptr) {
            release_window(_window);
        }
    }
    imported(const imported&)            = delete;
    imported& operator=(const imported&) = delete;

    explicit operator bool() const { return _window != nullptr; }
    uct_rkey_t rkey() const { return reinterpret_cast<uct_rkey_t>(_window); }
    const imported_window* get() const { return _window; }

private:
    imported_window* _window = nullptr;
};

inline uct_iov_t iov_of(void* buffer, std::size_t length)
{
    return {buffer, length, nullptr, 0, 1};
}

// The descriptors of this process.
inline std::set<int> open_descriptors()
{
    std::set<int> all;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        all.insert(std::stoi(each.path().filename()));
    }
    return all;
}

// As a program that closes descriptors that it did not open.
inline void close_all_but(const std::set<int>& kept)
{
    for (const int each : open_descriptors()) {
        if (!kept.contains(each)) {
            close(each);
        }
    }
}

inline spec_ptr words_with_gaps()
{
    return spec::strided(spec::block(16), {{40, 24}});
}

// Whoever has memory here is this process.
class host_transport_test : public transport_test
{
protected:
    host_transport_test(uct_component& component, const char* name) : _component(component), _name(name) {}
    void SetUp() override { open_transport(&_component, _name, _name); }
    void TearDown() override
    {
        transport_test::TearDown();
        EXPECT_EQ(count_imports().windows, 0u) << "the last interface unmaps everything";
    }

private:
    uct_component& _component;
    const char* _name;
};

class lay_shm : public host_transport_test
{
protected:
    lay_shm() : host_transport_test(lay_shm_component.super, "lay_shm") {}
};

class lay_cma : public host_transport_test
{
protected:
    lay_cma() : host_transport_test(lay_cma_component.super, "lay_cma") {}
};

// What UCP sees of a get: it always starts, and its completion has the status when it returns.
inline ucs_status_t get_status(uct_ep_h ep, const uct_iov_t& iov, std::uint64_t remote, uct_rkey_t rkey)
{
    uct_completion_t completion{.func = [](uct_completion_t*) {}, .count = 1, .status = UCS_OK};
    EXPECT_EQ(UCS_OK, uct_ep_get_zcopy(ep, &iov, 1, remote, rkey, &completion));
    EXPECT_EQ(1, completion.count) << "UCP ends the operation itself";
    return completion.status;
}

} // namespace ucxl::test
