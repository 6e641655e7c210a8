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

// What a key is made of. It always shows pattern_bytes.
struct shape {
    key_kind kind;
    std::vector<resolved_entry> entries;
    std::uint32_t turns = 0; // of a repeat block
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
    void forget_refusal() { _queue.forget_refusal(); }
    // Of a step that did not work.
    std::string reason() const { return last_refusal().empty() ? "other bytes were changed" : last_refusal(); }

    result<mkey_owner> key() const { return create_key(_pd, 8); }

    resolved_entry piece(std::size_t offset, std::uint64_t length, std::uint64_t stride = 0) const
    {
        return {_registered->lkey, address_of(_memory->target.data() + offset), length, stride};
    }

    // Whether the device accepts the bind request.
    result<bool> bind(const mkey_owner& key, const shape& shown, const key_rights& rights,
                      std::optional<std::uint64_t> start = std::nullopt)
    {
        const auto& [kind, entries, turns] = shown;
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
        UCXL_TRY(encode_entries(key_kind::klm, 0, entries, place));
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

private:
    static std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

    ibv_pd* _pd;
    bind_queue& _queue;
    request_flags _flags;
    std::unique_ptr<scratch> _memory;
    mr_owner _registered; // must end before the memory
};

// The keys live as long as the test. Keys over keys are a chain: the list or repeat block that was tested alone is the
// lowest, then come lists and repeat blocks in turn, as layouts have them.
class device_test
{
public:
    device_test(ibv_pd* pd, bind_queue& queue, const capabilities& said, key_address_option wanted)
        : _pd(pd), _said(said), _wanted(wanted), _loop(pd, queue, said), _rights{true, true, true, said.atomics}
    {
    }

    device_test(const device_test&)            = delete;
    device_test& operator=(const device_test&) = delete;

    ~device_test()
    {
        while (!_keys.empty()) {
            _keys.pop_back(); // each is over the one before
        }
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
    // A key shows these words of the target, in this order.
    static constexpr std::size_t num_words  = 4;
    static constexpr std::size_t word_bytes = pattern_bytes / num_words;
    using words                             = std::array<std::size_t, num_words>;

    result<void> prepare()
    {
        UCXL_TRY(_loop.begin());
        while (_keys.size() < std::clamp(_said.limits.max_nesting, 1U, deepest)) {
            auto created = UCXL_TRY(_loop.key());
            _keys.push_back(std::move(created));
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

    result<bool> shows(std::uint32_t rkey, std::uint64_t address, const words& wanted)
    {
        std::array<stretch, num_words> ranges{};
        std::ranges::transform(wanted, ranges.begin(), [](std::size_t at) { return stretch{at, word_bytes}; });
        return _loop.shows(rkey, address, ranges);
    }

    // Adds to the second word that a key shows, if keys have atomics so far.
    result<void> test_atomics(std::uint32_t rkey, std::uint64_t address, const words& shown)
    {
        if (!_found.atomics) {
            return {};
        }
        _loop.forget_refusal();
        UCXL_TRY(all_of(_found.atomics, [&] { return _loop.adds(rkey, address + word_bytes, shown[1]); }));
        if (!_found.atomics) {
            _found.atomics_refusal = _loop.reason();
        }
        return {};
    }

    static constexpr words list_words{40, 200, 208, 216};
    static constexpr words repeat_words{16, 64, 112, 160};

    shape list() const { return {key_kind::klm, {_loop.piece(40, 8), _loop.piece(200, 24)}, 0}; }
    shape repeat_block() const { return {key_kind::repeat, {_loop.piece(16, 8, 48)}, 4}; }

    result<void> test_list()
    {
        bool works = false;
        UCXL_TRY(show_list(works));
        if (!works && _said.umr_sets_atomic_right) { // perhaps it may not, in spite of what the device says
            _rights.remote_atomic    = false;
            _found.sets_atomic_right = false;
            _found.atomics_refusal   = _loop.last_refusal();
            _loop.leave_atomic_right();
            UCXL_TRY(show_list(works));
        }
        if (!works) {
            return fail(errc::unsupported,
                        std::format("a memory key made of a list does not show the memory it lists{}{}",
                                    _loop.last_refusal().empty() ? "" : "; ", _loop.last_refusal()));
        }
        _found.atomics = _rights.remote_atomic;
        return test_atomics(_keys[0]->rkey, 0, list_words);
    }

    result<void> show_list(bool& works)
    {
        return all_of(
            works, [&] { return _loop.bind(_keys[0], list(), _rights); },
            [&] { return shows(_keys[0]->rkey, 0, list_words); });
    }

    // With the last key, because the list is needed below the others.
    result<void> test_pointer()
    {
        const std::array entries{_loop.piece(296, 16), _loop.piece(80, 16)};
        return all_of(
            _found.pointer_entries, [&] { return _loop.bind_by_pointer(_keys.back(), entries, _rights); },
            [&] { return shows(_keys.back()->rkey, 0, {296, 304, 80, 88}); });
    }

    result<void> test_repeat_block()
    {
        if (!_said.limits.repeat_blocks) {
            return {};
        }
        UCXL_TRY(all_of(
            _found.repeat_blocks, [&] { return _loop.bind(_keys[0], repeat_block(), _rights); },
            [&] { return shows(_keys[0]->rkey, 0, repeat_words); }));
        bool is_again = _found.repeat_blocks; // else a list, as before
        return is_again ? test_atomics(_keys[0]->rkey, 0, repeat_words)
                        : all_of(is_again, [&] { return _loop.bind(_keys[0], list(), _rights); });
    }

    // The key at this level of the chain, counted from below. A list swaps the halves of the key below it, a repeat
    // block interleaves them.
    shape shape_at(std::size_t level) const
    {
        if (level == 0) {
            return _found.repeat_blocks ? repeat_block() : list();
        }
        const std::uint32_t below = _keys[level - 1]->lkey;
        if (_found.repeat_blocks && level % 2 == 0) {
            return {key_kind::repeat, {{below, 0, word_bytes, word_bytes}, {below, 16, word_bytes, word_bytes}}, 2};
        }
        return {key_kind::klm, {{below, 16, 16, 0}, {below, 0, 16, 0}}, 0};
    }

    words words_of(std::size_t levels) const
    {
        words shown = _found.repeat_blocks ? repeat_words : list_words;
        for (std::size_t level = 1; level < levels; ++level) {
            const bool interleaves = _found.repeat_blocks && level % 2 == 0;
            shown                  = interleaves ? words{shown[0], shown[2], shown[1], shown[3]}
                                                 : words{shown[2], shown[3], shown[0], shown[1]};
        }
        return shown;
    }

    // The key at this level, over those below it as they are.
    result<bool> bind_level(std::size_t level, const key_rights& rights, std::optional<std::uint64_t> start = {})
    {
        return _loop.bind(_keys[level], shape_at(level), rights, start);
    }

    // The first key of the chain with all rights, and those below it with others.
    result<bool> bind_chain(const key_rights& below)
    {
        result<bool> bound = true;
        for (std::size_t level = 0; level < _found.levels && bound && *bound; ++level) {
            bound = bind_level(level, level + 1 == _found.levels ? _rights : below);
        }
        return bound;
    }

    const mkey_owner& first() const { return _keys[_found.levels - 1]; }

    result<void> test_nesting()
    {
        for (bool works = true; works && _found.levels < _keys.size();) {
            const std::size_t level = _found.levels;
            const words shown       = words_of(level + 1);
            UCXL_TRY(all_of(
                works, [&] { return bind_level(level, _rights); },
                [&] { return shows(_keys[level]->rkey, 0, shown); }));
            if (works) {
                ++_found.levels;
                UCXL_TRY(test_atomics(first()->rkey, 0, shown));
            }
        }
        return {};
    }

    // The first key has remote rights, those below it local ones.
    result<void> test_nested_rights()
    {
        if (!_said.nested_by_local_rights || _found.levels < 2) {
            return {};
        }
        const words shown = words_of(_found.levels);
        UCXL_TRY(all_of(
            _found.nested_by_local_rights, [&] { return bind_chain({.local_write = true}); },
            [&] { return shows(first()->rkey, 0, shown); },
            [&] { return !_found.atomics ? result<bool>(true) : _loop.adds(first()->rkey, word_bytes, shown[1]); }));
        bool is_again = _found.nested_by_local_rights; // else as before
        return is_again ? result<void>() : all_of(is_again, [&] { return bind_chain(_rights); });
    }

    result<void> test_start()
    {
        if (_wanted == key_address_option::ksm) {
            return {};
        }
        const words shown = words_of(_found.levels);
        bool works        = false;
        _loop.forget_refusal();
        UCXL_TRY(all_of(
            works, [&] { return bind_level(_found.levels - 1, _rights, test_address); },
            [&] { return shows(first()->rkey, test_address, shown); }));
        if (!works) {
            _found.address_refusal = _loop.reason();
            return {};
        }
        _found.address = address_method::umr;
        return test_atomics(first()->rkey, test_address, shown);
    }

    // In place of the first key, which has the rights of nested keys then.
    result<void> test_overlay()
    {
        if (_found.address != address_method::none || _wanted == key_address_option::umr || _found.levels < 2 ||
            !_said.equal_entries) {
            return {};
        }
        const std::uint32_t below = _keys[_found.levels - 2]->lkey;
        const words shown         = words_of(_found.levels - 1);
        key_rights rights         = _rights;
        rights.remote_atomic      = _found.atomics;
        auto over                 = address_overlay::create(_pd, below, test_address, rights, _said.relaxed_only);
        if (!over && over.error().code != errc::no_memory && rights.remote_atomic) {
            rights.remote_atomic = false; // an overlay without atomics is better than none
            over                 = address_overlay::create(_pd, below, test_address, rights, _said.relaxed_only);
        }
        if (!over) {
            return over.error().code == errc::no_memory ? result<void>(std::unexpected(over.error())) : result<void>();
        }
        bool works = false;
        UCXL_TRY(all_of(works, [&] { return shows(over->key(), test_address, shown); }));
        if (!works) {
            return {};
        }
        _found.address = address_method::ksm;
        _found.atomics = rights.remote_atomic;
        return test_atomics(over->key(), test_address, shown);
    }

    // No memory is mapped there; the address has an odd place in its page.
    static constexpr std::uint64_t test_address = 0x7000'0000'0000 + 40;
    // Levels of keys that are tried and used, if a device has more.
    static constexpr unsigned deepest = 8;

    ibv_pd* _pd;
    const capabilities& _said;
    key_address_option _wanted;
    loopback _loop;
    key_rights _rights; // all that the device may have
    std::vector<mkey_owner> _keys;
    self_test_result _found;
};

} // namespace

std::string in_brackets(const std::string& refusal)
{
    return refusal.empty() ? "" : std::format(" ({})", refusal);
}

result<self_test_result> test_device(ibv_pd* pd, bind_queue& queue, const capabilities& said, key_address_option wanted)
{
    return device_test(pd, queue, said, wanted).run();
}

} // namespace ucxl::mlx5
