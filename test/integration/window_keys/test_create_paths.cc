// Everything that makes or changes keys of windows, with its first command, work request or allocation failing, then
// its second one, until it needs no more of them. The call says what happened, and then: windows that are mapped show
// the right bytes, the same call works, and the device has no object left in the end.
#include "device_control.h"
#include "shown_memory.h"

#include "support/alloc_failure.h"
#include "support/log_guard.h"

#include <format>
#include <functional>
#include <string>
#include <string_view>

namespace ucxl::test
{
namespace
{

using namespace std::literals;

// Windows of earlier lives are kept, and how they are carried. So every life has other layouts.
std::uint64_t num_lives = 0;

// Irregular, and too many for one key.
spec_ptr pieces(std::uint64_t place)
{
    std::vector<spec_part> parts;
    for (std::int64_t i = 0; i < 300; ++i) {
        const std::int64_t offset = 200 * i + i * i % 61 + static_cast<std::int64_t>(place * (i == 0 ? 0 : 1));
        parts.push_back({0, offset, spec::block(64), 1, {}});
    }
    return spec::iov(std::move(parts));
}

spec_ptr rows(std::uint64_t number)
{
    return spec::strided(spec::block(64), {{number, 160}});
}

struct life {
    own_peer peer;
    shown_memory first{rows(500 + ++num_lives)};
    shown_memory second{pieces(num_lives)};
    shown_memory same_as_second{pieces(num_lives)};

    bool has_keys() const
    {
        for (const shown_memory* const each : {&first, &second, &same_as_second}) {
            if (each->is_mapped() && !each->has_key()) {
                return false;
            }
        }
        return true;
    }

    explicit life(const own_peer_options& options) : peer(options) {}
};

struct path {
    const char* name;
    const char* call; // who says so if it fails; null: nobody
    std::function<void(life&)> prepare;
    std::function<ucs_status_t(life&)> act;
    own_peer_options options{};
    bool has_commands = true;
};

void PrintTo(const path& one, std::ostream* to)
{
    *to << one.name;
}

void map_first(life& one)
{
    check_ok(one.first.map(one.peer.context()), "ucp_layout_map");
    one.first.exchange(one.peer);
}

void map_both(life& one)
{
    map_first(one);
    check_ok(one.second.map(one.peer.context()), "ucp_layout_map");
    one.second.exchange(one.peer);
}

ucs_status_t export_window(life& one)
{
    const ucp_memh_pack_params_t params{.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS,
                                        .flags      = UCP_MEMH_PACK_FLAG_EXPORT};
    void* buffer       = nullptr;
    std::size_t length = 0;
    const auto status  = ucp_memh_pack(one.second.window().memh(), &params, &buffer, &length);
    if (status == UCS_OK) {
        const ucp_memh_buffer_release_params_t release{};
        ucp_memh_buffer_release(buffer, &release);
    }
    return status;
}

const path paths[] = {
    {"export", "ucp_memh_pack for export", map_both, export_window},
    {"first_window", "ucp_layout_map", [](life&) {}, [](life& one) { return one.first.map(one.peer.context()); }},
    {"window_of_pieces", "ucp_layout_map", map_first, [](life& one) { return one.second.map(one.peer.context()); }},
    {"window_again",
     "ucp_layout_map",
     [](life& one) {
         map_both(one);
         one.second.unmap();
     },
     [](life& one) { return one.second.map(one.peer.context()); },
     {},
     false},
    {"rebind", "ucp_layout_rebind", map_both, [](life& one) { return one.first.rebind(); }},
    {"rebind_pieces", "ucp_layout_rebind", map_both, [](life& one) { return one.second.rebind(); }},
    {"unmap",
     nullptr,
     map_both,
     [](life& one) {
         one.second.unmap();
         return UCS_OK;
     },
     {},
     false},
    {"own_key",
     nullptr,
     [](life& one) {
         map_both(one);
         check_ok(one.same_as_second.map(one.peer.context()), "ucp_layout_map");
     },
     [](life& one) { return one.same_as_second.send_to(one.second, one.peer); },
     {.error_handling = true}},
};

// What fails, N-th.
struct failure {
    const char* name;
    const char* fault; // of the device; null for allocations
};

void PrintTo(const failure& one, std::ostream* to)
{
    *to << one.name;
}

class create_path : public testing::TestWithParam<std::tuple<path, failure>>
{
protected:
    // Returns whether the N-th one was there and failed.
    bool fail_at(unsigned number)
    {
        const auto& [path, failure] = GetParam();
        bool has_failed             = false;
        {
            life one(path.options);
            path.prepare(one);
            if (failure.fault != nullptr) {
                _device.fail(std::format("{},first={}", failure.fault, number));
            } else {
                fail_only_allocations_of({"libucp_layout", "libuct_mlx5_layout"});
                fail_allocation_after(number - 1);
            }
            const auto status = path.act(one);
            has_failed        = failure.fault != nullptr ? _device.stop_failing() : stop_failing_allocations();
            EXPECT_TRUE(has_failed || (one.has_keys() && status == UCS_OK)) << ucs_status_string(status);
            ++_statuses[status];
            for (shown_memory* const each : {&one.first, &one.second, &one.same_as_second}) {
                each->verify();
                if (each->is_mapped()) {
                    each->exchange(one.peer);
                }
            }
            again(one);
        }
        EXPECT_EQ(_device.objects(), _before);
        return has_failed;
    }

    // The domain works as before.
    static void again(life& one)
    {
        for (shown_memory* const each : {&one.first, &one.second, &one.same_as_second}) {
            each->unmap();
            check_ok(each->map(one.peer.context()), "ucp_layout_map after the failure");
            each->exchange(one.peer);
            each->unmap();
        }
    }

    const device_control _device;
    const device_objects _before = _device.objects();
    std::map<ucs_status_t, unsigned> _statuses;
    log_guard _logs;
};

TEST_P(create_path, that_fails_anywhere_says_so_and_leaves_nothing)
{
    const char* const call = std::get<path>(GetParam()).call;
    if (call != nullptr) {
        _logs.allow(std::string(call) + ": ");
    }
    for (const char* const warning : {"shows nothing any more", "could not be invalidated and is destroyed",
                                      "could not be destroyed: ", "ibv_dealloc_pd() failed"}) {
        _logs.allow(warning);
    }
    unsigned number = 1;
    while (!HasFailure() && fail_at(number)) {
        ++number;
    }
    const bool has_some = std::get<path>(GetParam()).has_commands || std::get<failure>(GetParam()).name != "command"sv;
    EXPECT_EQ(number > 1, has_some);
    // Whoever fails logs it, once.
    const auto num_errors = number - _statuses[UCS_OK];
    EXPECT_EQ(call != nullptr ? _logs.count(std::string(call) + ": ") : 0, num_errors);
    std::string statuses;
    for (const auto& [status, count] : _statuses) {
        statuses += std::format(" {} {}", count, ucs_status_string(status));
    }
    RecordProperty("statuses", statuses);
    std::printf("%s\n", statuses.c_str());
}

constexpr failure failures[] = {
    {"command", "command"},       {"bind", "wqe:umr"},     {"bind_and_repair", "wqe:umr,times=2"},
    {"binds", "wqe:umr,times=4"}, {"allocation", nullptr},
};

INSTANTIATE_TEST_SUITE_P(every, create_path, testing::Combine(testing::ValuesIn(paths), testing::ValuesIn(failures)),
                         [](const auto& each) {
                             return std::string(std::get<0>(each.param).name) + "_" + std::get<1>(each.param).name;
                         });

} // namespace
} // namespace ucxl::test
