#include "self_test.h"

#include <algorithm>
#include <array>
#include <format>
#include <optional>
#include <vector>

#include "address_overlay.h"
#include "key_pool.h"

namespace ucxl::mlx5
{

namespace
{

constexpr std::size_t pattern_bytes = 32;
constexpr std::size_t target_bytes  = 1024;
constexpr unsigned max_tries        = 3;

struct scratch {
    std::array<std::uint8_t, pattern_bytes> pattern;
    alignas(8) std::uint64_t fetched;
    alignas(64) std::array<std::uint8_t, target_bytes> target;
    alignas(pointer_alignment) std::array<std::byte, 64> entries; // that the device reads
};

// A range of bytes of the target. A key should show such ranges in their order.
struct stretch {
    std::size_t offset;
    std::size_t length;
};

class loopback
{
public:
    loopback(ibv_pd* pd, bind_queue& queue, const capabilities& said)
        : _pd(pd), _queue(queue), _flags(flags_of(said)), _memory(std::make_unique<scratch>())
    {
        for (std::size_t i = 0; i < pattern_bytes; ++i) {
            _memory->pattern[i] = static_cast<std::uint8_t>(i * 5 + 1);
        }
    }

    result<void> begin()
    {
        constexpr int access =
            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
        _registered.reset(ibv_reg_mr(_pd, _memory.get(), sizeof(scratch), access));
        return _registered != nullptr ? result<void>() : fail_errno("registering memory for the self-test");
    }

    // Binds do not name the atomic right any more.
    void leave_atomic_right() { _flags.leaves_atomic_right = true; }

    const std::string& last_refusal() const { return _queue.last_refusal(); }

    result<mkey_owner> key() const { return create_key(_pd, 8); }

    resolved_entry piece(std::size_t offset, std::uint64_t length, std::uint64_t stride = 0) const
    {
        return {_registered->lkey, address_of(_memory->target.data() + offset), length, stride};
    }

    // Whether the device accepts the bind request.
    result<bool> bind(const mkey_owner& key, key_kind kind, std::span<const resolved_entry> entries,
                      const key_rights& rights, std::optional<std::uint64_t> start = std::nullopt)
    {
        std::vector<std::byte> encoded(entries_bytes(kind, entries.size()));
        UCXL_TRY(encode_entries(kind, turns, entries, encoded));
        request_bytes request;
        encode_bind({key->lkey, rights, pattern_bytes, start}, _queue.qpn(), _flags, encoded, request);
        return _queue.attempt(std::span(&request, 1));
    }

    // The same with a list in memory, of at most four entries.
    result<bool> bind_by_pointer(const mkey_owner& key, std::span<const resolved_entry> entries,
                                 const key_rights& rights)
    {
        const auto place = std::span(_memory->entries).first(entries_bytes(key_kind::klm, entries.size()));
        UCXL_TRY(encode_entries(key_kind::klm, turns, entries, place));
        request_bytes request;
        if (!encode_bind_by_pointer({key->lkey, rights, pattern_bytes, {}}, _queue.qpn(), _flags, place.size(),
                                    _registered->lkey, address_of(place.data()), request)) {
            return false;
        }
        return _queue.attempt(std::span(&request, 1));
    }

    // Whether a write through the key changes these bytes of the target, in this order, and no others.
    result<bool> shows(std::uint32_t rkey, std::uint64_t address, std::span<const stretch> ranges)
    {
        std::array<std::uint8_t, target_bytes> expected{};
        std::size_t done = 0;
        for (const stretch& one : ranges) {
            std::copy_n(&_memory->pattern[done], one.length, &expected[one.offset]);
            done += one.length;
        }
        _memory->target.fill(0);
        const ibv_sge from{address_of(_memory->pattern.data()), pattern_bytes, _registered->lkey};
        const auto written = _queue.attempt_write(from, address, rkey);
        return written ? result<bool>(*written && _memory->target == expected) : written;
    }

    // Whether an addition through the key changes the byte of the target.
    result<bool> adds(std::uint32_t rkey, std::uint64_t address, std::size_t offset)
    {
        constexpr std::uint64_t addend = 0x0102030405060708;
        std::array<std::uint8_t, target_bytes> expected{};
        std::memcpy(&expected[offset], &addend, sizeof(addend));
        _memory->target.fill(0);
        _memory->fetched = addend;
        const ibv_sge old_value{address_of(&_memory->fetched), sizeof(_memory->fetched), _registered->lkey};
        const auto added = _queue.attempt_add(old_value, address, rkey, addend);
        return added ? result<bool>(*added && _memory->target == expected && _memory->fetched == 0) : added;
    }

    // For every repeat block below.
    static constexpr std::uint32_t turns = 4;

private:
    static std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

    ibv_pd* _pd;
    bind_queue& _queue;
    request_flags _flags;
    std::unique_ptr<scratch> _memory;
    mr_owner _registered; // must end before the memory
};

// The keys live as long as the test.
class device_test
{
public:
    device_test(ibv_pd* pd, bind_queue& queue, const capabilities& said, key_address_option wanted)
        : _pd(pd), _said(said), _wanted(wanted), _loop(pd, queue, said), _rights{true, true, true, said.atomics}
    {
    }

    result<self_test_result> run()
    {
        for (const auto step :
             {&device_test::prepare, &device_test::test_list, &device_test::test_pointer,
              &device_test::test_repeat_block, &device_test::test_nesting, &device_test::test_nested_rights,
              &device_test::test_start, &device_test::test_overlay}) {
            UCXL_TRY((this->*step)());
        }
        return _found;
    }

private:
    result<void> prepare()
    {
        UCXL_TRY(_loop.begin());
        for (mkey_owner* const one : {&_list, &_repeat, &_outer}) {
            auto created = UCXL_TRY(_loop.key());
            *one         = std::move(created);
        }
        return {};
    }

    // Sets `to` to whether all steps return true; stops at the first that returns false or fails. A request also fails
    // for reasons that pass, so what did not work is tried again.
    template <typename... Step>
    static result<void> all_of(bool& to, const Step&... steps)
    {
        result<bool> all = false;
        for (unsigned tries = 0; tries < max_tries && all && !*all; ++tries) {
            all = true;
            static_cast<void>((((all = steps()), all && *all) && ...));
        }
        to = UCXL_TRY(std::move(all));
        return {};
    }

    // What the list shows, and any other key that is made like it.
    static constexpr std::array<stretch, 2> two_stretches{{{40, 8}, {200, 24}}};
    std::array<resolved_entry, 2> two_pieces() const { return {_loop.piece(40, 8), _loop.piece(200, 24)}; }

    result<void> test_list()
    {
        bool works = false;
        UCXL_TRY(show_list(works));
        if (!works && _said.umr_sets_atomic_right) { // perhaps it may not, in spite of what the device says
            _rights.remote_atomic    = false;
            _found.sets_atomic_right = false;
            _loop.leave_atomic_right();
            UCXL_TRY(show_list(works));
        }
        if (!works) {
            return fail(errc::unsupported,
                        std::format("a memory key made of a list does not show the memory it lists{}{}",
                                    _loop.last_refusal().empty() ? "" : "; ", _loop.last_refusal()));
        }
        _found.atomics = _rights.remote_atomic;
        return _found.atomics ? all_of(_found.atomics, [&] { return _loop.adds(_list->rkey, 8, 200); })
                              : result<void>();
    }

    result<void> show_list(bool& works)
    {
        const auto entries = two_pieces();
        return all_of(
            works, [&] { return _loop.bind(_list, key_kind::klm, entries, _rights); },
            [&] { return _loop.shows(_list->rkey, 0, two_stretches); });
    }

    result<void> test_pointer()
    {
        const std::array entries{_loop.piece(296, 16), _loop.piece(80, 16)};
        const std::array<stretch, 2> ranges{{{296, 16}, {80, 16}}};
        return all_of(
            _found.pointer_entries, [&] { return _loop.bind_by_pointer(_outer, entries, _rights); },
            [&] { return _loop.shows(_outer->rkey, 0, ranges); });
    }

    result<void> test_repeat_block()
    {
        if (!_said.limits.repeat_blocks) {
            return {};
        }
        const std::array entries{_loop.piece(16, 8, 48)};
        const std::array<stretch, 4> ranges{{{16, 8}, {64, 8}, {112, 8}, {160, 8}}};
        auto done = all_of(
            _found.repeat_blocks, [&] { return _loop.bind(_repeat, key_kind::repeat, entries, _rights); },
            [&] { return _loop.shows(_repeat->rkey, 0, ranges); });
        if (!done || !_found.repeat_blocks || !_found.atomics) {
            return done;
        }
        return all_of(_found.atomics, [&] { return _loop.adds(_repeat->rkey, 16, 112); });
    }

    result<void> test_nesting()
    {
        if (_said.limits.max_nesting < 2) {
            return {};
        }
        const std::array entries{resolved_entry{_list->lkey, 0, 16, 0}, _loop.piece(512, 16)};
        const std::array<stretch, 3> ranges{{{40, 8}, {200, 8}, {512, 16}}};
        auto done = all_of(
            _found.nesting, [&] { return _loop.bind(_outer, key_kind::klm, entries, _rights); },
            [&] { return _loop.shows(_outer->rkey, 0, ranges); });
        if (!done || !_found.nesting || !_found.atomics) {
            return done;
        }
        return all_of(_found.atomics, [&] { return _loop.adds(_outer->rkey, 8, 200); });
    }

    // The first key has remote rights, the one below it local ones.
    result<void> test_nested_rights()
    {
        if (!_said.nested_by_local_rights || !_found.nesting) {
            return {};
        }
        const auto below = two_pieces();
        const std::array entries{resolved_entry{_list->lkey, 0, pattern_bytes, 0}};
        auto done = all_of(
            _found.nested_by_local_rights,
            [&] { return _loop.bind(_list, key_kind::klm, below, {.local_write = true}); },
            [&] { return _loop.bind(_outer, key_kind::klm, entries, _rights); },
            [&] { return _loop.shows(_outer->rkey, 0, two_stretches); },
            [&] { return !_found.atomics ? result<bool>(true) : _loop.adds(_outer->rkey, 8, 200); });
        bool is_again = false; // as the other tests expect it
        return done ? all_of(is_again, [&] { return _loop.bind(_list, key_kind::klm, below, _rights); }) : done;
    }

    result<void> test_start()
    {
        if (_wanted == key_address_option::ksm) {
            return {};
        }
        const auto entries = two_pieces();
        bool works         = false;
        auto done          = all_of(
            works, [&] { return _loop.bind(_outer, key_kind::klm, entries, _rights, test_address); },
            [&] { return _loop.shows(_outer->rkey, test_address, two_stretches); });
        _found.address = works ? address_method::umr : address_method::none;
        return done;
    }

    result<void> test_overlay()
    {
        if (_found.address != address_method::none || _wanted == key_address_option::umr || !_found.nesting ||
            !_said.equal_entries) {
            return {};
        }
        key_rights rights    = _rights;
        rights.remote_atomic = _found.atomics;
        auto over            = address_overlay::create(_pd, _list->lkey, test_address, rights);
        if (!over && over.error().code != errc::no_memory && rights.remote_atomic) {
            rights.remote_atomic = false; // an overlay without atomics is better than none
            over                 = address_overlay::create(_pd, _list->lkey, test_address, rights);
        }
        if (!over) {
            return over.error().code == errc::no_memory ? result<void>(std::unexpected(over.error())) : result<void>();
        }
        bool works     = false;
        auto done      = all_of(works, [&] { return _loop.shows(over->key(), test_address, two_stretches); });
        _found.address = works ? address_method::ksm : address_method::none;
        if (!done || !works || !_found.atomics) {
            return done;
        }
        _found.atomics = rights.remote_atomic;
        return _found.atomics ? all_of(_found.atomics, [&] { return _loop.adds(over->key(), test_address + 8, 200); })
                              : done;
    }

    // No memory is mapped there; the address has an odd place in its page.
    static constexpr std::uint64_t test_address = 0x7000'0000'0000 + 40;

    ibv_pd* _pd;
    const capabilities& _said;
    key_address_option _wanted;
    loopback _loop;
    key_rights _rights; // all that the device may have
    mkey_owner _list;
    mkey_owner _repeat;
    mkey_owner _outer; // over the list, so it must end first
    self_test_result _found;
};

} // namespace

result<self_test_result> test_device(ibv_pd* pd, bind_queue& queue, const capabilities& said, key_address_option wanted)
{
    return device_test(pd, queue, said, wanted).run();
}

} // namespace ucxl::mlx5
