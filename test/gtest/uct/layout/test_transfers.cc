// Every kind of stock UCP operation on windows, over several transports, in one process.
#include "patterned_window.h"
#include "support/log_guard.h"
#include "support/ucp_pair.h"
#include "uct/layout/init.h"

#include <ucs/config/global_opts.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <span>

using namespace ucxl;
using namespace ucxl::test;

namespace
{

struct setting {
    std::string name;
    ucp_options options;
    bool without_memtype_cache = false;
};

void PrintTo(const setting& one, std::ostream* to)
{
    *to << one.name;
}

const std::vector<std::size_t> lengths = {0, 1, 7, 64, 4096, 65536, 1 << 20};

// Where the bytes of one side are.
enum class place { host, window };

class transfers : public ucx_test, public testing::WithParamInterface<setting>
{
protected:
    using operation = std::function<ucs_status_t(ucp_pair&, const void* from, void* to, std::size_t length, place at)>;

    void SetUp() override
    {
        uct_layout_init();
        set_memtype_cache(GetParam().without_memtype_cache ? "n" : "try");
        _pair = std::make_unique<ucp_pair>(GetParam().options);
    }
    void TearDown() override
    {
        _pair.reset();
        set_memtype_cache("try");
    }

    void check_all(place from, place to, place remote, const operation& run)
    {
        for (const std::size_t length : lengths) {
            SCOPED_TRACE("length " + std::to_string(length));
            check(length, from, to, remote, run);
        }
    }

private:
    static void set_memtype_cache(const char* value)
    {
        ASSERT_EQ(UCS_OK, ucs_global_opts_set_value("MEMTYPE_CACHE", value));
    }

    void check(std::size_t length, place from, place to, place remote, const operation& run)
    {
        patterned_window source({64, 128}, length, 1);
        patterned_window target({24, 40}, length, 2);
        // One byte more than needed, because UCP maps no memory at null.
        auto source_host = source.packed();
        source_host.push_back({});
        std::vector<std::byte> target_host(length + 1);
        const void* from_address = from == place::window ? source.address() : source_host.data();
        void* to_address         = to == place::window ? target.address() : target_host.data();
        ASSERT_EQ(UCS_OK, run(*_pair, from_address, to_address, length, remote));
        const auto arrived = to == place::window ? target.packed() : target_host;
        EXPECT_TRUE(std::equal(source_host.begin(), source_host.end() - 1, arrived.begin()));
        EXPECT_TRUE(std::ranges::equal(source.packed(), std::span(source_host).first(length)));
        EXPECT_TRUE(source.gaps_untouched());
        EXPECT_TRUE(target.gaps_untouched());
    }

    std::unique_ptr<ucp_pair> _pair;
};

ucs_memory_type_t type_of(place side)
{
    return side == place::window ? UCS_MEMORY_TYPE_RDMA : UCS_MEMORY_TYPE_HOST;
}

ucs_status_t tag(ucp_pair& pair, const void* from, void* to, std::size_t length, place)
{
    return pair.send_tag(from, to, length);
}

ucs_status_t stream(ucp_pair& pair, const void* from, void* to, std::size_t length, place)
{
    return pair.send_stream(from, to, length);
}

ucs_status_t am_eager(ucp_pair& pair, const void* from, void* to, std::size_t length, place)
{
    return pair.send_am(from, to, length, false);
}

ucs_status_t am_rendezvous(ucp_pair& pair, const void* from, void* to, std::size_t length, place)
{
    return pair.send_am(from, to, length, true);
}

ucs_status_t put(ucp_pair& pair, const void* from, void* to, std::size_t length, place remote)
{
    return pair.put(from, to, length, type_of(remote));
}

ucs_status_t get(ucp_pair& pair, const void* from, void* to, std::size_t length, place remote)
{
    return pair.get(from, to, length, type_of(remote));
}

TEST_P(transfers, tag_between_windows)
{
    check_all(place::window, place::window, place::window, tag);
}
TEST_P(transfers, tag_window_to_host)
{
    check_all(place::window, place::host, place::host, tag);
}
TEST_P(transfers, tag_host_to_window)
{
    check_all(place::host, place::window, place::window, tag);
}
TEST_P(transfers, tag_between_hosts)
{
    check_all(place::host, place::host, place::host, tag);
}
TEST_P(transfers, stream_between_windows)
{
    check_all(place::window, place::window, place::window, stream);
}
TEST_P(transfers, am_eager_from_window)
{
    check_all(place::window, place::host, place::host, am_eager);
}
TEST_P(transfers, am_rendezvous_between_windows)
{
    check_all(place::window, place::window, place::window, am_rendezvous);
}
// With UCX_PROTO_ENABLE=n stock UCP emulates put and get by plain memory accesses, for any memory type.
class remote_access : public transfers
{
};

TEST_P(remote_access, put_between_windows)
{
    check_all(place::window, place::window, place::window, put);
}
TEST_P(remote_access, put_host_to_window)
{
    check_all(place::host, place::window, place::window, put);
}
TEST_P(remote_access, put_window_to_host)
{
    check_all(place::window, place::host, place::host, put);
}
TEST_P(remote_access, get_between_windows)
{
    check_all(place::window, place::window, place::window, get);
}
TEST_P(remote_access, get_host_from_window)
{
    check_all(place::window, place::host, place::window, get);
}
TEST_P(remote_access, get_window_from_host)
{
    check_all(place::host, place::window, place::host, get);
}

std::vector<setting> settings(const std::string& proto)
{
    std::vector<setting> all;
    const auto add = [&](const std::string& name, const char* tls, bool self = false, bool wakeup = false) {
        all.push_back({name, {.config = {{"TLS", tls}, {"PROTO_ENABLE", proto}}, .self = self, .wakeup = wakeup}});
    };
    add("posix", "posix,lay_copy");
    add("posix_cma", "posix,cma,lay_copy");
    add("sysv", "sysv,lay_copy");
    add("tcp", "tcp,lay_copy");
    add("any", "all");
    add("self", "all", true);
    add("wakeup", "posix,lay_copy", false, true);
    all.push_back(
        {"rendezvous", {.config = {{"TLS", "posix,cma,lay_copy"}, {"RNDV_THRESH", "0"}, {"PROTO_ENABLE", proto}}}});
    all.push_back({"no_memtype_cache", {.config = {{"TLS", "posix,cma,lay_copy"}, {"PROTO_ENABLE", proto}}}, true});
    return all;
}

std::string name_of(const testing::TestParamInfo<setting>& info)
{
    return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(proto_v2, transfers, testing::ValuesIn(settings("y")), name_of);
INSTANTIATE_TEST_SUITE_P(proto_v1, transfers, testing::ValuesIn(settings("n")), name_of);
INSTANTIATE_TEST_SUITE_P(proto_v2, remote_access, testing::ValuesIn(settings("y")), name_of);

} // namespace
