// Everything that makes or changes keys of windows, with its first command, work request or allocation failing, then
// its second one, until it needs no more of them. The call says what happened, and then: windows that are mapped show
// the right bytes, the same call works, and the device has no object left in the end.
#include "device_control.h"
#include "dpu.h"
#include "shown_memory.h"

#include "support/alloc_failure.h"
#include "support/log_guard.h"

#include <algorithm>
#include <cstdlib>
#include <format>
#include <functional>
#include <map>
#include <optional>
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
    std::optional<plain_buffer> buffer;
    std::vector<std::byte> packed; // the exported buffer
    std::optional<test::context> dpu;
    std::optional<imported_memory> imported;

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
    const char* message; // that says so if it fails; null: none
    std::function<void(life&)> prepare;
    std::function<ucs_status_t(life&)> act;
    own_peer_options options{};
    bool has_commands       = true;
    bool has_binds          = true;
    bool has_allocations    = true;
    const char* ucx_message = nullptr; // UCX says so instead, or as well
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

ucs_status_t status_of_export(ucp_mem_h memh, std::vector<std::byte>* to = nullptr)
{
    const ucp_memh_pack_params_t params{.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS,
                                        .flags      = UCP_MEMH_PACK_FLAG_EXPORT};
    void* buffer       = nullptr;
    std::size_t length = 0;
    const auto status  = ucp_memh_pack(memh, &params, &buffer, &length);
    if (status == UCS_OK) {
        const auto* const first = static_cast<const std::byte*>(buffer);
        if (to != nullptr) {
            to->assign(first, first + length);
        }
        const ucp_memh_buffer_release_params_t release{};
        ucp_memh_buffer_release(buffer, &release);
    }
    return status;
}

ucs_status_t export_window(life& one)
{
    return status_of_export(one.second.window().memh());
}

void map_and_export(life& one)
{
    map_both(one);
    check_ok(status_of_export(one.first.window().memh()), "ucp_memh_pack");
}

// The domain has found out what the device can do.
void register_buffer(life& one)
{
    map_first(one);
    one.buffer.emplace(one.peer.context());
}

// Of a context that has exported another buffer.
void register_another_buffer(life& one)
{
    const plain_buffer other(one.peer.context());
    register_buffer(one);
    check_ok(status_of_export(other.memh()), "ucp_memh_pack");
}

// UCX makes the key if the library does not.
ucs_status_t export_buffer(life& one)
{
    return status_of_export(one.buffer->memh(), &one.packed);
}

void register_and_export_buffer(life& one)
{
    register_buffer(one);
    check_ok(export_buffer(one), "ucp_memh_pack");
}

ucs_status_t import_buffer(life& one)
{
    one.imported.emplace(one.dpu->get(), one.packed);
    return one.imported->status();
}

void export_to_dpu(life& one)
{
    register_and_export_buffer(one);
    one.dpu.emplace(dpu_context(false));
}

// UCX could not make its own key either.
constexpr auto not_exported = "ibv_poll_cq(UMR CQ";

const path paths[] = {
    {"export", "ucp_memh_pack for export: ", map_both, export_window},
    {"first_window", "ucp_layout_map: ", [](life&) {}, [](life& one) { return one.first.map(one.peer.context()); }},
    {"window_of_pieces", "ucp_layout_map: ", map_first, [](life& one) { return one.second.map(one.peer.context()); }},
    {"window_again",
     "ucp_layout_map: ",
     [](life& one) {
         map_both(one);
         one.second.unmap();
     },
     [](life& one) { return one.second.map(one.peer.context()); },
     {},
     false},
    {"rebind", "ucp_layout_rebind: ", map_both, [](life& one) { return one.first.rebind(); }},
    {"rebind_pieces", "ucp_layout_rebind: ", map_both, [](life& one) { return one.second.rebind(); }},
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
    {"export_again", "ucp_memh_pack for export: ", map_and_export, export_window},
    {"first_export_of_buffer",
     "ucp_memh_pack for export: ",
     register_buffer,
     export_buffer,
     {},
     true,
     true,
     true,
     not_exported},
    {"export_of_buffer",
     "ucp_memh_pack for export: ",
     register_another_buffer,
     export_buffer,
     {},
     true,
     true,
     true,
     not_exported},
    {"import",
     "ucp_mem_map of exported memory: ",
     export_to_dpu,
     import_buffer,
     {},
     true,
     false,
     true,
     "no suitable UCT memory domains to perform importing on"},
    {"unmap_exported_window",
     nullptr,
     [](life& one) {
         map_both(one);
         check_ok(export_window(one), "ucp_memh_pack");
     },
     [](life& one) {
         one.second.unmap();
         return UCS_OK;
     },
     {},
     false},
    {"unmap_exported_buffer",
     nullptr,
     register_and_export_buffer,
     [](life& one) {
         one.buffer->unmap();
         return UCS_OK;
     },
     {.keeps_memory = false},
     true,
     true,
     false},
    {"unmap_import",
     nullptr,
     [](life& one) {
         setenv("UCX_LAYOUT_KEYS_ALIASES", "0", 1);
         export_to_dpu(one);
         unsetenv("UCX_LAYOUT_KEYS_ALIASES");
         check_ok(import_buffer(one), "import");
     },
     [](life& one) {
         one.imported.reset();
         return UCS_OK;
     },
     {},
     true,
     false,
     false},
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
            again(one, path.name == "first_window"sv && failure.name == "binds"sv);
        }
        EXPECT_EQ(_device.objects(), _before);
        return has_failed;
    }

    // The domain works as before. One that was opened while request after request failed has found out less about the
    // device.
    static void again(life& one, bool knows_less)
    {
        for (shown_memory* const each : {&one.first, &one.second, &one.same_as_second}) {
            each->unmap();
            check_ok(each->map(one.peer.context()), "ucp_layout_map after the failure");
            EXPECT_TRUE(each->has_key() || knows_less) << each->why_no_key();
            each->exchange(one.peer);
            each->unmap();
        }
        plain_buffer buffer(one.peer.context());
        const auto packed = exported(buffer.memh());
        EXPECT_TRUE(is_of_the_library(packed) || knows_less);
        if (one.dpu) {
            one.imported.reset();
            const imported_memory imported(one.dpu->get(), packed);
            check_ok(imported.status(), "import after the failure");
            dpu_side dpu(one.dpu->get());
            buffer.bytes().front() = std::byte{0x47};
            std::vector<std::byte> got(buffer.bytes().size());
            check_ok(dpu.read(imported, buffer.address(), got), "a read after the failure");
            EXPECT_TRUE(std::ranges::equal(got, buffer.bytes()));
        }
    }

    bool has_some() const
    {
        const auto& [path, failure] = GetParam();
        return failure.fault == nullptr       ? path.has_allocations
               : failure.fault == "command"sv ? path.has_commands
                                              : path.has_binds;
    }

    const device_control _device;
    const device_objects _before = _device.objects();
    std::map<ucs_status_t, unsigned> _statuses;
    log_guard _logs;
};

TEST_P(create_path, that_fails_anywhere_says_so_and_leaves_nothing)
{
    const char* const message     = std::get<path>(GetParam()).message;
    const char* const ucx_message = std::get<path>(GetParam()).ucx_message;
    for (const char* const each : {message, ucx_message}) {
        if (each != nullptr) {
            _logs.allow(each);
        }
    }
    for (const char* const warning :
         {"shows nothing any more", "could not be invalidated and is destroyed",
          "could not be destroyed: ", "ibv_dealloc_pd() failed", "ibv_dereg_mr() failed", "failed to dereg from md"}) {
        _logs.allow(warning);
    }
    unsigned number = 1;
    while (!HasFailure() && fail_at(number)) {
        ++number;
    }
    EXPECT_EQ(number > 1, has_some());
    // Whoever fails logs it, once.
    const auto num_errors = number - _statuses[UCS_OK];
    const auto num_logged = message != nullptr ? _logs.count(message) : 0;
    // Nothing can be done instead of importing.
    EXPECT_TRUE(std::get<path>(GetParam()).name != "import"sv || !has_some() || num_errors > 0);
    if (ucx_message == nullptr) {
        EXPECT_EQ(num_logged, num_errors);
    } else {
        EXPECT_GE(num_logged + _logs.count(ucx_message), num_errors);
    }
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
