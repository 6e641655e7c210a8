#include "dead_device.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include <poll.h>

#include "support/verbs_pair.h"
#include "uct/ib/mlx5/layout/api/uct_mlx5_layout.h"

namespace ucxl::test
{

namespace
{

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds soon{2000}; // far less than waiting for the device would take

class victim
{
public:
    void live()
    {
        uct_mlx5_layout_domain_params_t domain_params{};
        domain_params.field_mask = UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PD;
        domain_params.pd         = _pair.pd();
        expect("opening", uct_mlx5_layout_domain_open(&domain_params, &_domain), UCS_OK);
        expect("creating", uct_mlx5_layout_region_create(_domain, &params(), &_region), UCS_OK);
        expect("setting", set(0), UCS_OK);
        if (_wrong == 0) {
            die();
            everything_fails();
            nothing_is_done();
        }
        uct_mlx5_layout_region_destroy(_region);
        uct_mlx5_layout_domain_close(_domain);
        if (!_pair.close()) {
            std::printf("something was left\n");
            ++_wrong;
        }
    }

    int wrong() const { return _wrong; }

private:
    static const uct_mlx5_layout_region_params_t& params()
    {
        static const uct_mlx5_layout_region_params_t none{};
        return none;
    }

    ucs_status_t set(unsigned flags)
    {
        const ibv_sge piece{reinterpret_cast<std::uintptr_t>(_memory.data()), 64, _mr->lkey};
        return uct_mlx5_layout_set_sg(_region, flags, 1, &piece);
    }

    void expect(const char* call, ucs_status_t got, ucs_status_t wanted)
    {
        if (got != wanted) {
            std::printf("%s: %s, not %s\n", call, ucs_status_string(got), ucs_status_string(wanted));
            ++_wrong;
        }
    }

    void post_read()
    {
        _pair.post_read({reinterpret_cast<std::uintptr_t>(_memory.data()), 8, _mr->lkey},
                        reinterpret_cast<std::uintptr_t>(_memory.data()), _mr->rkey);
    }

    // The device fails at a read, or because somebody sees "ready" and makes it fail.
    void begin_to_fail()
    {
        if (std::getenv("UCXL_DEVICE_FAILS") != nullptr) {
            std::printf("ready\n");
            std::fflush(stdout);
        } else {
            post_read();
        }
    }

    // Of the events within 30 seconds. That of a port may come before it.
    bool is_told_of_failure(ibv_async_event& event)
    {
        const auto deadline = clock::now() + std::chrono::seconds(30);
        pollfd events{.fd = _pair.context()->async_fd, .events = POLLIN, .revents = 0};
        while (clock::now() < deadline) {
            if (poll(&events, 1, 1000) != 1) {
                continue;
            }
            if (ibv_get_async_event(_pair.context(), &event) != 0) {
                return false;
            }
            ibv_ack_async_event(&event);
            if (event.event_type == IBV_EVENT_DEVICE_FATAL) {
                return true;
            }
        }
        return false;
    }

    // The domain is told only if the environment says so.
    void die()
    {
        ibv_async_event event;
        begin_to_fail();
        if (!is_told_of_failure(event)) {
            std::printf("no event\n");
            ++_wrong;
            return;
        }
        if (std::getenv("UCXL_TELL_DOMAIN") != nullptr) {
            expect("telling", uct_mlx5_layout_domain_handle_event(_domain, &event), UCS_OK);
        }
    }

    void nothing_is_done()
    {
        if (ibv_pd* const pd = ibv_alloc_pd(_pair.context()); pd != nullptr) {
            std::printf("the device answered a command\n");
            ++_wrong;
            ibv_dealloc_pd(pd);
        }
        _pair.set_patience(std::chrono::milliseconds(100));
        post_read();
        try {
            std::printf("a request completed: %s\n", ibv_wc_status_str(_pair.wait().status));
            ++_wrong;
        } catch (const std::runtime_error&) {
            // As it has to be.
        }
    }

    void everything_fails()
    {
        const auto begin = clock::now();
        // If the domain was not told, this call detects the failure.
        expect("invalidating", uct_mlx5_layout_invalidate(&_region, 1), UCS_ERR_IO_ERROR);
        expect("setting", set(0), UCS_ERR_IO_ERROR);
        expect("preparing", set(UCT_MLX5_LAYOUT_SET_WITH_POST_WR), UCS_ERR_IO_ERROR);
        uct_mlx5_layout_region_h none = nullptr;
        expect("creating", uct_mlx5_layout_region_create(_domain, &params(), &none), UCS_ERR_IO_ERROR);
        expect("invalidating again", uct_mlx5_layout_invalidate(&_region, 1), UCS_ERR_IO_ERROR);
        if (clock::now() - begin > soon) {
            std::printf("the calls took too long\n");
            ++_wrong;
        }
        uct_mlx5_layout_region_attr_t attr{};
        attr.field_mask = UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LENGTH;
        expect("asking", uct_mlx5_layout_region_query(_region, &attr), UCS_OK);
        if (attr.length != 0) {
            std::printf("the region still has a layout\n");
            ++_wrong;
        }
    }

    verbs_pair _pair;
    std::vector<std::uint8_t> _memory = std::vector<std::uint8_t>(64);
    ibv_mr* _mr                       = _pair.registered(_memory.data(), _memory.size());
    uct_mlx5_layout_domain_h _domain  = nullptr;
    uct_mlx5_layout_region_h _region  = nullptr;
    int _wrong                        = 0;
};

} // namespace

int dead_device()
{
    try {
        victim one;
        one.live();
        return one.wrong() == 0 ? 0 : 1;
    } catch (const std::runtime_error& failed) {
        std::printf("%s\n", failed.what());
        return 1;
    }
}

} // namespace ucxl::test
