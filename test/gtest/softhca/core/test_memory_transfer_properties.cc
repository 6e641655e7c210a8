// Compares transfers between random nested keys with the oracle. The keys of each side refer to memory of its own
// process.
#include "random_keys.h"
#include "reference_walk.h"
#include "softhca/core/keys/memory_transfer.h"
#include "support/random.h"
#include "test_host.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ucxl::softhca::test
{

namespace
{

using outcome = transfer_result::outcome;
using ucxl::test::random;
using ucxl::test::run_seed;

// A list of references, and each of its bytes.
struct random_side {
    std::vector<reference> references;
    std::vector<byte_place> places;
    access_fault fault = access_fault::none;

    bool in_device_memory() const
    {
        return std::ranges::any_of(places, [](const byte_place& one) { return one.space == space::engine; });
    }
};

class random_transfers
{
public:
    explicit random_transfers(std::uint64_t seed)
        : _numbers(seed), _from_keys(_machine.memory(), _near.id(), _source, chooser()),
          _to_keys(_machine.memory(), _far.id(), _destination, chooser())
    {
        _from_keys.make(20);
        _to_keys.make(20);
    }

    // Whether something was moved, and moved correctly.
    void step(unsigned& moved)
    {
        const random_side to   = make_side(_to_keys, right::local_write);
        const random_side from = make_side(_from_keys, right::local_read);
        if (to.in_device_memory() && from.in_device_memory()) {
            return; // both sides share memory, so the order of bytes would matter
        }
        std::ranges::generate(_source, [&] { return static_cast<std::byte>(_numbers.next()); });
        const std::uint64_t length            = std::min(to.places.size(), from.places.size());
        const std::vector<std::byte> expected = after_transfer(to, from, length);
        const memory_side into{_to_keys.user(), right::local_write, to.references};
        const memory_side out_of{_from_keys.user(), right::local_read, from.references};
        const auto result = transfer(_device, into, out_of, length);
        if (result.result != outcome::done) {
            // A fault of a range is found before its first byte, so fewer bytes may be moved than the oracle lists.
            ASSERT_TRUE(to.fault != access_fault::none || from.fault != access_fault::none);
            return;
        }
        ASSERT_TRUE(std::ranges::equal(expected, _destination));
        moved += length != 0;
    }

private:
    choice chooser()
    {
        return [this](std::uint64_t bound) { return _numbers.below(bound); };
    }

    random_side make_side(random_keys& keys, right needed)
    {
        random_side made;
        for (std::uint64_t count = _numbers.below(3) + 1; count != 0 && made.fault == access_fault::none; count--) {
            const auto at = keys.pick();
            const reference one{at.key, at.address, _numbers.below(at.length + 1), nullptr};
            const auto seen = reference_walk(_machine.memory(), keys.user(), one.key, one.address, one.length, needed);
            made.references.push_back(one);
            made.places.insert(made.places.end(), seen.bytes.begin(), seen.bytes.end());
            made.fault = seen.fault;
        }
        return made;
    }

    // The memory of the destination's process afterwards. Of two bytes for the same place the later one stays.
    std::vector<std::byte> after_transfer(const random_side& to, const random_side& from, std::uint64_t length) const
    {
        std::vector<std::byte> after(_destination.size());
        std::ranges::copy(_destination, after.begin());
        for (std::uint64_t i = 0; i < length; i++) {
            if (to.places[i].space == space::process) {
                after[to.places[i].address - address_of(_destination)] =
                    *reinterpret_cast<const std::byte*>(from.places[i].address);
            }
        }
        return after;
    }

    random _numbers;
    test_machine _machine;
    test_process& _near = _machine.start();
    test_process& _far  = _machine.start();
    environment _device{_machine.memory(), _near, _near.id()};
    std::span<std::byte> _source      = _near.allocate(4096);
    std::span<std::byte> _destination = _far.allocate(4096);
    random_keys _from_keys;
    random_keys _to_keys;
};

TEST(transfer_properties, gathers_and_scatters_what_the_oracle_says)
{
    unsigned moved = 0;
    // By hand: keys that refer to one another, of which none can be left out.
    for (unsigned heap = 0; heap < 60; heap++) {
        random_transfers transfers(run_seed() * 977 + heap);
        for (unsigned step = 0; step < 100; step++) {
            SCOPED_TRACE("seed " + std::to_string(run_seed()) + " heap " + std::to_string(heap) + " step " +
                         std::to_string(step));
            ASSERT_NO_FATAL_FAILURE(transfers.step(moved));
        }
    }
    EXPECT_GT(moved, 500u);
}

} // namespace

} // namespace ucxl::softhca::test
