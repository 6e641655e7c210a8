#include "device_method.h"
#include "remote_memory.h"

#include "support/check.h"
#include "support/must.h"

namespace ucxl::bench
{

namespace
{

const examples::pattern_side& own_side(const method_parts& parts)
{
    return parts.is_first ? parts.pattern.send : parts.pattern.receive;
}

class window_method : public method
{
public:
    explicit window_method(const method_parts& parts)
        : _pair(parts.pair), _is_first(parts.is_first),
          _window(make_window(parts.pair.context(), own_side(parts), parts.memory))
    {
    }

    std::uint64_t window_bytes() const override
    {
        ucp_layout_window_attr_t found{};
        found.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS;
        test::check_ok(ucp_layout_window_query(_window.get(), &found), "ucp_layout_window_query");
        return found.statistics.bytes_read + found.statistics.bytes_written;
    }

protected:
    ucp_pair& _pair;
    bool _is_first;
    ucx_layout::window _window;
};

class message : public window_method
{
public:
    using window_method::window_method;

    ucs_status_ptr_t start() override
    {
        ucp_request_param_t how{};
        how.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
        how.memh         = _window.memh();
        return _is_first
                   ? ucp_tag_send_nbx(_pair.peer(), _window.address(), _window.length(), 1, &how)
                   : ucp_tag_recv_nbx(_pair.worker(), _window.address(), _window.length(), 1, ~ucp_tag_t{0}, &how);
    }
};

class put : public window_method
{
public:
    explicit put(const method_parts& parts) : window_method(parts)
    {
        _remote = trade_memory(_pair, _is_first, {.address = _window.address(), .handle = _window.memh()});
    }

    bool is_put() const override { return true; }

    ucs_status_ptr_t start() override
    {
        ucp_request_param_t how{};
        how.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
        how.memh         = _window.memh();
        free_when_done(
            ucp_put_nbx(_pair.peer(), _window.address(), _window.length(), _remote.address, _remote.key.get(), &how));
        return flush(_pair);
    }

private:
    remote_memory _remote;
};

} // namespace

ucx_layout::window make_window(ucp_context_h context, const examples::pattern_side& side, examples::memory_set& memory)
{
    return test::must(ucx_layout::window::map(context, side.make_layout(), memory.bases()));
}

std::unique_ptr<method> window_message(const method_parts& parts)
{
    return std::make_unique<message>(parts);
}

std::unique_ptr<method> window_put(const method_parts& parts)
{
    return std::make_unique<put>(parts);
}

} // namespace ucxl::bench
