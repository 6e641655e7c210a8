// Any bytes as a heap of memory keys, requests that change them, and uses of them: every walk finds what the oracle
// finds, and nothing is read or written but what the oracle allows.
#include "fuzz_target.h"

#include "prm/umr.h"
#include "softhca/core/arena/record_table.h"
#include "softhca/core/keys/key_work.h"
#include "softhca/core/keys/memory_transfer.h"
#include "softhca/core/keys/translation_pool.h"
#include "gtest/softhca/core/key_maker.h"
#include "gtest/softhca/core/random_keys.h"
#include "gtest/softhca/core/reference_walk.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include <sys/mman.h>

using namespace ucxl;
using namespace ucxl::softhca;
using fuzz::require;

namespace
{

constexpr client_id only_client   = 1;
constexpr std::uint64_t longest   = 700; // bytes of a use: the oracle is slow
constexpr std::size_t buffer_size = 4096;

// Fields of a key that a request may change to anything: those of umr_mask but for the domain and the signature.
constexpr std::uint64_t often_good = 0x203e6143;

// Memory of one process is one buffer; everything else is not there.
class one_buffer final : public host
{
public:
    std::span<std::byte> buffer() { return _bytes; }

    bool lock() override { return false; }
    void unlock() override {}
    move_status move(std::span<const piece> to, std::span<const piece> from) override
    {
        for (std::size_t i = 0; i < to.size(); ++i) {
            require(to[i].length == from[i].length, "pieces come in pairs");
            if (!is_there(to[i])) {
                return move_status::fault_to;
            }
            if (!is_there(from[i])) {
                return move_status::fault_from;
            }
            std::memmove(reinterpret_cast<void*>(to[i].address), reinterpret_cast<const void*>(from[i].address),
                         to[i].length);
        }
        return move_status::ok;
    }
    bool alive(client_id) override { return true; }
    std::uint64_t now_ns() override { return 0; }
    void wake_at(std::uint64_t) override {}
    void notify(client_id, event_route&, std::uint32_t) override {}
    void spend(std::uint64_t) override {}
    void trace(std::span<const char>) override {}
    bool tracing() const override { return false; }

private:
    bool is_there(const piece& asked) const
    {
        if (asked.space == space::engine) {
            return true;
        }
        const std::uint64_t offset = asked.address - softhca::test::address_of(_bytes);
        return asked.client == only_client && offset <= _bytes.size() && asked.length <= _bytes.size() - offset;
    }

    std::array<std::byte, buffer_size> _bytes{};
};

arena& shared_memory()
{
    static arena* const made = [] {
        void* const at =
            mmap(nullptr, sizeof(arena), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) {
            throw std::bad_alloc();
        }
        arena* const memory               = static_cast<arena*>(at);
        memory->card                      = {};
        memory->function_table[0].vhca_id = 1;
        memory->function_table[1].vhca_id = 2;
        return memory;
    }();
    return *made;
}

void forget_keys(arena& memory)
{
    for (std::uint32_t id = 1; id < memory.mkeys.end; ++id) {
        memory.mkeys.records[id] = {};
    }
    memory.mkeys.end = memory.mkeys.live = memory.mkeys.cursor = 0;
    rebuild_translation_pool(memory);
}

class input
{
public:
    explicit input(std::span<const std::uint8_t> bytes) : _left(bytes) {}

    bool empty() const { return _left.empty(); }

    std::uint64_t below(std::uint64_t bound)
    {
        std::uint64_t value = 0;
        for (std::uint64_t reach = bound == 0 ? 0 : bound - 1; reach != 0 && !_left.empty(); reach >>= 8) {
            value = value << 8 | _left.front();
            _left = _left.subspan(1);
        }
        return bound == 0 ? 0 : value % bound;
    }

    void fill(std::span<std::byte> bytes)
    {
        std::ranges::generate(bytes, [this] { return static_cast<std::byte>(below(256)); });
    }

private:
    std::span<const std::uint8_t> _left;
};

class heap_of_keys
{
public:
    explicit heap_of_keys(input& bytes)
        : _bytes(bytes),
          _keys(_memory, only_client, _host.buffer(), [this](std::uint64_t bound) { return _bytes.below(bound); })
    {
        _keys.make(static_cast<unsigned>(_bytes.below(24)) + 2);
    }

    ~heap_of_keys() { forget_keys(_memory); }
    heap_of_keys(const heap_of_keys&)            = delete;
    heap_of_keys& operator=(const heap_of_keys&) = delete;

    void step()
    {
        switch (_bytes.below(4)) {
        case 0:
            change_key();
            break;
        case 1:
            move_something();
            break;
        default:
            walk();
        }
    }

private:
    softhca::test::random_keys::target pick()
    {
        auto at   = _keys.pick();
        at.length = _bytes.below(std::min(at.length, longest) + 2);
        return at;
    }

    void walk()
    {
        const auto at       = pick();
        const auto needed   = static_cast<right>(_bytes.below(5));
        const auto expected = test::reference_walk(_memory, _keys.user(), at.key, at.address, at.length, needed);
        key_walk walk(_device, _keys.user(), at.key, at.address, at.length, needed);
        std::size_t seen = 0;
        piece found;
        while (walk.next(found)) {
            for (std::uint64_t i = 0; i < found.length; ++i, ++seen) {
                require(seen < expected.bytes.size() && test::is_at(_memory, expected.bytes[seen], found, i),
                        "a walk finds the bytes of the oracle");
            }
        }
        require(seen == expected.bytes.size() && walk.fault() == expected.fault, "a walk ends as the oracle does");
    }

    // Bytes of the input as they are, or in the frame of a request that is likely to be taken.
    void change_key()
    {
        using umr_control = prm::wqe_umr_control_segment;
        std::array<std::byte, 192> wqe{};
        _bytes.fill(wqe);
        if (_bytes.below(8) != 0) {
            const auto keys    = _keys.keys();
            const auto control = *prm::view<prm::wqe_control_segment>::over(wqe);
            control.put<prm::wqe_opcode::umr>(prm::wqe_control_segment::opcode);
            control.put(prm::wqe_control_segment::imm, keys[_bytes.below(keys.size())]);
            control.put<12>(prm::wqe_control_segment::ds);
            const auto umr = *prm::view<umr_control>::over(std::span(wqe).subspan(16));
            umr.put(umr_control::klm_octowords, static_cast<std::uint16_t>(_bytes.below(2) * 4));
            umr.put(umr_control::translation_offset, static_cast<std::uint16_t>(_bytes.below(3) * 4));
            umr.put<true>(umr_control::translation_offset_en);
            umr.put<false>(umr_control::check_free);
            umr.put(umr_control::mkey_mask, _bytes.below(1 << 30) & often_good);
            if (_bytes.below(4) != 0) {
                make_sense(std::span(wqe).subspan<64>());
            }
        }
        qp_record qp;
        qp.pd = _keys.user().pd;
        (void)execute_umr(_device, qp, _keys.user().qpn, wqe);
        (void)invalidate_key(_device, qp, _keys.user().qpn, static_cast<std::uint32_t>(_bytes.below(1 << 16)),
                             _bytes.below(2) != 0);
    }

    // A context and four entries that can be used.
    void make_sense(std::span<std::byte, 128> context_and_entries)
    {
        const prm::view<prm::mkc> context(context_and_entries.first<prm::mkc::size_bytes>());
        context.put<false>(prm::mkc::free);
        context.put<prm::any_qpn>(prm::mkc::qpn);
        context.put(prm::mkc::start_addr, _bytes.below(2));
        context.put(prm::mkc::len, _bytes.below(300));
        for (std::span<std::byte> left = context_and_entries.subspan(prm::mkc::size_bytes); !left.empty();) {
            const auto at    = pick();
            const auto entry = test::klm(static_cast<std::uint32_t>(at.length), at.key, at.address);
            std::ranges::copy(entry, left.begin());
            left = left.subspan(entry.size());
        }
    }

    void move_something()
    {
        std::array<std::byte, longest> own{};
        std::array<reference, 3> references;
        const std::span used = std::span(references).first(_bytes.below(references.size()) + 1);
        for (reference& one : used) {
            const auto at = pick();
            one           = {at.key, at.address, at.length, _bytes.below(4) == 0 ? own.data() : nullptr};
            one.length    = std::min(one.length, longest);
        }
        const reference flat{.length = own.size(), .data = own.data()};
        const memory_side keys{_keys.user(), right::local_read, used};
        const memory_side bytes{_keys.user(), right::local_read, {&flat, 1}};
        const std::uint64_t length = _bytes.below(longest + 1);
        if (_bytes.below(2) == 0) {
            (void)transfer(_device, bytes, keys, length);
        } else {
            (void)transfer(_device, {_keys.user(), right::local_write, used}, bytes, length);
        }
    }

    input& _bytes;
    one_buffer _host;
    arena& _memory = shared_memory();
    environment _device{_memory, _host, only_client};
    test::random_keys _keys;
};

} // namespace

UCXL_FUZZ_TARGET(softhca_keys)
{
    input bytes({data, size});
    heap_of_keys heap(bytes);
    for (unsigned steps = 0; steps < 200 && !bytes.empty(); ++steps) {
        heap.step();
    }
    return 0;
}
