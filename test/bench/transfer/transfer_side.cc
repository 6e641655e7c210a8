// The two processes of `bench transfer` by UCP: strided memory as windows or as UCP's lists of blocks, everything else
// as stock UCP does it. Or nothing but what these cannot be faster than.
//
// usage: bench_transfer_side FIFO MEMORY window|mapped|iov|limit; windows over memory of the application or of the
// library, or lists
#include "iov_side.h"
#include "limit_side.h"
#include "mapped_side.h"

#include <cstdio>

namespace ucxl::bench
{

namespace
{

class window_side : public ucp_side
{
public:
    using ucp_side::ucp_side;

    side_memory allocate(const layout_case& of, std::span<std::byte> all) override
    {
        _source.reset();
        _target.reset();
        return side::allocate(of, all);
    }

    void prepare(const layout_case& of, const side_memory& memory) override
    {
        const ucx_layout::layout strided = public_layout(of);
        ucp_side::prepare(of, memory);
        _source = map(strided, memory.source);
        _target = map(strided, memory.target);
    }

    bool moves_strided() const override { return true; }
    void send_strided() override { _with.send(_source->address(), _source->length()); }
    void receive_strided() override { _with.receive(_target->address(), _target->length()); }
    bool moves_lists() const override { return true; }
    void send_list(const block_order& list) override
    {
        const auto from = list_window(_with, list, _memory.source.data());
        _with.send(from->address(), from->length());
    }
    void receive_list(const block_order& list) override
    {
        const auto to = list_window(_with, list, _memory.target.data());
        _with.receive(to->address(), to->length());
    }

private:
    std::unique_ptr<ucx_layout::window> map(const ucx_layout::layout& strided, std::span<std::byte> memory)
    {
        auto made = ucx_layout::window::map(_with.context(), strided, memory.data());
        test::check_ok(made ? UCS_OK : made.error(), "window");
        return std::make_unique<ucx_layout::window>(std::move(*made));
    }

    std::unique_ptr<ucx_layout::window> _source, _target;
};

void run(const char* fifo, const std::string& memory, const std::string& kind, int socket, bool is_first)
{
    take_one(is_first);
    const auto serve = [&](side_loop::side_maker make) { side_loop(std::move(make), is_first, memory).serve(fifo); };
    if (kind == "limit") {
        serve([&] { return std::make_unique<limit_side>(is_first); });
        return;
    }
    ucp_pair with(socket, kind == "mapped" ? UCP_FEATURE_TAG | UCP_FEATURE_RMA : UCP_FEATURE_TAG);
    if (kind == "mapped") {
        serve([&] { return std::make_unique<mapped_side>(with, is_first); });
    } else if (kind == "iov") {
        serve([&] { return std::make_unique<iov_side>(with); });
    } else {
        serve([&] { return std::make_unique<window_side>(with); });
    }
}

} // namespace

} // namespace ucxl::bench

int main(int argc, char** argv)
{
    if (argc != 4 && argc != 5) {
        std::fprintf(stderr,
                     "usage: bench_transfer_side FIFO MEMORY window|mapped|iov|limit; `bench transfer` runs it\n");
        return 2;
    }
    return ucxl::bench::run_pair(argc, argv, 3, [&](int socket, bool is_first) {
        ucxl::bench::run(argv[1], argv[2], argv[3], socket, is_first);
    });
}
