// The queue that binds keys fails while memory is exported and unmapped: exports go on, by keys of the library or of
// UCX, and nobody reaches memory that is not mapped any more. UCX 1.18.1 makes its own keys by a queue pair as well,
// which it never makes again: when that one has failed, only the library exports.
#include "device_control.h"
#include "dpu.h"
#include "own_peer.h"

#include "support/log_guard.h"
#include "support/random.h"

#include <algorithm>
#include <format>
#include <memory>

namespace ucxl::test
{
namespace
{

constexpr std::byte untouched{0x11};

// A buffer of the host in its whole life on both sides.
class shared_buffer
{
public:
    shared_buffer(own_peer& host, dpu_side& dpu, std::uint64_t salt)
        : _dpu(dpu), _buffer(host.context()), _packed(exported(_buffer.memh()))
    {
        if (_packed.empty()) {
            return;
        }
        _imported = std::make_unique<imported_memory>(dpu.context(), _packed);
        check_ok(_imported->status(), "import");
        random random(salt);
        for (std::byte& each : _buffer.bytes()) {
            each = static_cast<std::byte>(random.next());
        }
    }

    bool is_exported() const { return !_packed.empty(); }
    bool is_of_the_library() const { return test::is_of_the_library(_packed); }
    void expect_read() const
    {
        std::vector<std::byte> got(_buffer.bytes().size());
        check_ok(_dpu.read(*_imported, _buffer.address(), got), "a read of exported memory");
        check(std::ranges::equal(got, _buffer.bytes()), "the DPU has read other bytes");
    }
    // The DPU still has what it imported.
    void unmap_and_expect_nothing_is_reached()
    {
        _buffer.unmap();
        std::ranges::fill(_buffer.bytes(), untouched);
        const std::vector<std::byte> written(_buffer.bytes().size(), std::byte{0x22});
        check(_dpu.write(*_imported, _buffer.address(), written) != UCS_OK, "a write to unmapped memory was UCS_OK");
        check(std::ranges::count(_buffer.bytes(), untouched) == std::ssize(written), "unmapped memory was written");
    }

private:
    dpu_side& _dpu;
    plain_buffer _buffer;
    std::vector<std::byte> _packed;
    std::unique_ptr<imported_memory> _imported;
};

struct outcome {
    unsigned by_the_library = 0;
    unsigned by_ucx         = 0;
    unsigned by_nobody      = 0;
};

class faults_of_the_bind_queue : public ucx_test
{
protected:
    faults_of_the_bind_queue()
    {
        for (const char* const message :
             {"could not be invalidated and is destroyed", "Remote access error", "Remote operation error",
              "RDMA_WRITE", // of the DPU to unmapped memory
              "ibv_poll_cq(UMR CQ", "failed to export"}) {
            logs().allow(message);
        }
    }
    ~faults_of_the_bind_queue() override { _device.stop_failing(); }

    // Exports so many buffers and unmaps them in a random order: one bind each for both.
    outcome use(own_peer& host, dpu_side& dpu, unsigned num_buffers)
    {
        outcome found;
        std::vector<std::unique_ptr<shared_buffer>> all;
        const auto drop_one = [&] {
            const auto place = all.begin() + static_cast<std::ptrdiff_t>(_random.below(all.size()));
            (*place)->unmap_and_expect_nothing_is_reached();
            all.erase(place);
        };
        for (unsigned made = 0; made < num_buffers;) {
            if (!all.empty() && _random.one_in(3)) {
                drop_one();
            } else {
                ++made;
                auto next = std::make_unique<shared_buffer>(host, dpu, _random.next());
                ++(!next->is_exported()        ? found.by_nobody
                   : next->is_of_the_library() ? found.by_the_library
                                               : found.by_ucx);
                if (next->is_exported()) {
                    all.push_back(std::move(next));
                }
            }
            for (const auto& each : all) {
                each->expect_read();
            }
        }
        while (!all.empty()) {
            drop_one();
        }
        return found;
    }

    random _random{run_seed()};
    const device_control _device;
};

TEST_F(faults_of_the_bind_queue, leave_exports_working_and_unmapped_memory_unreachable)
{
    const auto before = _device.objects();
    unsigned by_ucx   = 0;
    for (unsigned first = 1; first <= 10; ++first) {
        for (const unsigned times : {1u, 3u}) {
            SCOPED_TRACE(std::format("first={}, times={}", first, times));
            own_peer host({.keeps_memory = false});
            dpu_side dpu;
            ASSERT_EQ(use(host, dpu, 1).by_the_library, 1u);
            _device.fail(std::format("wqe:umr,first={},times={}", first, times));
            const auto found = use(host, dpu, 8);
            EXPECT_TRUE(_device.stop_failing());
            EXPECT_TRUE(times > 1 || found.by_nobody == 0) << "UCX exports what the library cannot";
            by_ucx += found.by_ucx;
            EXPECT_EQ(use(host, dpu, 1).by_the_library, 1u) << "the library exports again";
        }
    }
    EXPECT_GT(by_ucx, 0u) << "no bind failed";
    EXPECT_EQ(_device.objects(), before);
}

TEST_F(faults_of_the_bind_queue, that_do_not_end_leave_nothing_exported_until_they_end)
{
    const auto before = _device.objects();
    {
        own_peer host({.keeps_memory = false});
        dpu_side dpu;
        shared_buffer exported_before(host, dpu, 1);
        ASSERT_TRUE(exported_before.is_of_the_library());
        _device.fail("wqe:umr,times=all");
        EXPECT_EQ(use(host, dpu, 6).by_the_library, 0u);
        exported_before.unmap_and_expect_nothing_is_reached();
        ASSERT_TRUE(_device.stop_failing());
        const auto later = use(host, dpu, 6);
        EXPECT_GT(later.by_the_library, 0u);
        EXPECT_EQ(later.by_ucx + later.by_nobody, 0u);
    }
    EXPECT_EQ(_device.objects(), before);
}

} // namespace
} // namespace ucxl::test
