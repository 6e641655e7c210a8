// Many threads and one context on a device: some transfer through windows and put other memory under them, others map
// and unmap windows all the time, also the very window that is being sent.
#include "remote_key.h"
#include "scenario.h"
#include "strided_window.h"
#include "transports.h"

#include <atomic>
#include <thread>

namespace ucxl::two_process
{

namespace
{

constexpr strided_shape shape{.block = 64, .number = 2048};
constexpr unsigned common_salt     = 77;
constexpr unsigned num_mappers     = 2;
constexpr unsigned num_transferors = num_channels;

// The content that all threads map. Nobody writes to its memory.
struct common_content {
    strided_window holder;

    explicit common_content(ucp_context_h context) : holder(context, shape)
    {
        holder.fill(common_salt);
        holder.unmap(); // it lives only as long as a thread has it
    }
    ucx_layout::window map(ucp_context_h context) const
    {
        const auto layout =
            ucx_layout::layout::create_strided(shape.block, {{shape.number, std::ptrdiff_t{2 * shape.block}}});
        check(layout.has_value(), "ucp_layout_strided failed");
        auto window = ucx_layout::window::map(context, *layout, holder.memory());
        check(window.has_value(), "ucp_layout_map: {}", ucs_status_string(window ? UCS_OK : window.error()));
        return std::move(*window);
    }
};

// A transferor of each process. Role 0 has the common content and gets it back each time.
class transferor
{
public:
    transferor(session& session, const common_content& common)
        : _session(session), _common(common), _own(session.context(), shape)
    {
    }

    void round(unsigned salt)
    {
        by_messages();
        _own.verify(common_salt, "after messages");
        rebind();
        by_remote_access();
        _own.verify(common_salt, "after put and get");
        rebind();
        _own.fill(salt);
        _own.unmap();
        _own.map(_session.context());
        _own.verify(salt, "after mapping again");
    }
    void expect_key() const { check(_own.memory_type() == UCS_MEMORY_TYPE_RDMA, "the window has no key"); }

private:
    void rebind()
    {
        _session.barrier(); // nobody uses the memory any more
        std::byte* const before = _own.rebind();
        _session.barrier();
        _own.verify_untouched("new memory");
        munmap(before, shape.span());
    }
    void send(const void* from)
    {
        const ucp_request_param_t param{};
        check_ok(_session.wait(ucp_tag_send_nbx(_session.endpoint(), from, shape.length(), tag(), &param)), "send");
    }
    void receive()
    {
        const ucp_request_param_t param{};
        check_ok(_session.wait(
                     ucp_tag_recv_nbx(_session.worker(), _own.address(), shape.length(), tag(), UINT64_MAX, &param)),
                 "receive");
    }
    void by_messages()
    {
        if (_session.plays(0)) {
            const auto common = _common.map(_session.context());
            send(common.address());
            receive();
        } else {
            receive();
            send(_own.address());
        }
    }
    void by_remote_access()
    {
        const ucp_request_param_t param{};
        bytes packed;
        append_key(packed, _session.context(), _own.get().memh(), _own.address());
        const bytes other               = _session.exchange(packed);
        std::span<const std::byte> rest = other;
        {
            const remote_key key(_session.endpoint(), rest);
            if (_session.plays(0)) {
                const auto common = _common.map(_session.context());
                check_ok(_session.wait(ucp_put_nbx(_session.endpoint(), common.address(), shape.length(), key.address(),
                                                   key.get(), &param)),
                         "put");
                _session.flush();
                check_ok(_session.wait(ucp_get_nbx(_session.endpoint(), _own.address(), shape.length(), key.address(),
                                                   key.get(), &param)),
                         "get");
            }
            _session.barrier();
        }
    }
    std::uint64_t tag() const { return _session.arguments().thread; }

    session& _session;
    const common_content& _common;
    strided_window _own;
};

void map_and_unmap(ucp_context_h context, const common_content& common, const std::atomic<bool>& is_over)
{
    strided_window own(context, {.block = 48, .number = 700});
    for (unsigned i = 0; !is_over; ++i) {
        const auto again        = common.map(context);
        std::byte* const before = own.rebind();
        own.fill(i);
        own.unmap();
        munmap(before, own.shape().span());
        own.map(context);
        own.verify(i, "a window that nobody transfers");
        if (i % 3 == 0) {
            own.unmap();
            own.make_memory(own.memory()); // at once, as other threads look for a place, too
            own.map(context);
        }
        std::this_thread::yield();
    }
}

void run_threads(const peer_arguments& arguments, bool is_one_worker)
{
    const context_handle context(arguments, true);
    const common_content common(context.get());
    const ucp_worker_h shared = is_one_worker ? test::open_worker(context.get(), UCS_THREAD_MODE_MULTI) : nullptr;
    {
        std::atomic<bool> is_over{false};
        std::atomic<unsigned> num_done{0};
        std::vector<std::jthread> mappers;
        for (unsigned i = 0; i < num_mappers; ++i) {
            mappers.emplace_back([&] { map_and_unmap(context.get(), common, is_over); });
        }
        std::vector<std::jthread> transferors;
        for (unsigned i = 0; i < num_transferors; ++i) {
            transferors.emplace_back([&, i] {
                auto own   = arguments;
                own.thread = i;
                session session(own, context, {.shared_worker = shared});
                {
                    transferor transferor(session, common);
                    for (unsigned round = 0; round < arguments.rounds; ++round) {
                        transferor.round(round);
                    }
                    transferor.expect_key();
                }
                // UCP pairs the endpoints between two workers in the order of their creation, not by our threads. So
                // an endpoint may carry transfers of another thread until all are done.
                for (++num_done; num_done < num_transferors;) {
                    session.turn();
                }
                session.barrier();
                session.close();
            });
        }
        transferors.clear();
        is_over = true;
    }
    if (shared != nullptr) {
        ucp_worker_destroy(shared);
    }
}

const scenario own_workers("device.threads", [](const peer_arguments& arguments) { run_threads(arguments, false); });
const scenario one_worker("device.threads_of_one_worker",
                          [](const peer_arguments& arguments) { run_threads(arguments, true); });

class device_threads : public testing::TestWithParam<setting>
{
};

TEST_P(device_threads, transfer_and_map_with_a_worker_each)
{
    EXPECT_PAIR(config_for(GetParam(), "device.threads", 10));
}

TEST_P(device_threads, transfer_and_map_with_one_worker)
{
    EXPECT_PAIR(config_for(GetParam(), "device.threads_of_one_worker", 10));
}

INSTANTIATE_TEST_SUITE_P(matrix, device_threads,
                         testing::Combine(testing::ValuesIn(transports({}, {"rc_x", "dc_x", "rc_v", "ud_x"})),
                                          testing::Values("y")),
                         setting_name);

} // namespace

} // namespace ucxl::two_process
