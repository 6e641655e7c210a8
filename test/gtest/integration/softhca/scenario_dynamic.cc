// Dynamic connections of a program on libmlx5: an initiator outlives its targets and its own errors.
#include "scenario.h"

#include "support/dc_queues.h"
#include "support/verbs_endpoint.h"

#include <csignal>
#include <cstring>
#include <memory>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ucxl::softhca::test
{

using ucxl::test::address;
using ucxl::test::dc_access_key;
using ucxl::test::dc_initiator;
using ucxl::test::dc_target;
using ucxl::test::die;
using ucxl::test::endpoint;

namespace
{

// Where the bytes of an endpoint go, by a target of its process.
address place_of(const endpoint& process, const dc_target& target)
{
    address place = process.own();
    place.qpn     = target.number();
    return place;
}

ibv_wc_status write(endpoint& here, dc_initiator& initiator, const address& to, std::uint64_t key)
{
    return initiator.write({.target = to.qpn, .access_key = key, .lid = to.lid}, here.piece(0, 64), to.buffer + 1024,
                           to.rkey);
}

// Nobody answers: the initiator fails, and works again after a reset.
void expect_no_answer(endpoint& here, dc_initiator& initiator, const address& to, std::uint64_t key, const char* why)
{
    const ibv_wc_status status = write(here, initiator, to, key);
    if (status != IBV_WC_RETRY_EXC_ERR) {
        die(std::string(why) + ": " + ibv_wc_status_str(status));
    }
    if (initiator.state() != IBV_QPS_ERR) {
        die(std::string(why) + ": the initiator has not failed");
    }
    initiator.reconnect();
}

void expect_success(endpoint& here, dc_initiator& initiator, const address& to, const char* why)
{
    if (const ibv_wc_status status = write(here, initiator, to, dc_access_key); status != IBV_WC_SUCCESS) {
        die(std::string(why) + ": " + ibv_wc_status_str(status));
    }
}

} // namespace

int initiator_outlives_targets(int)
{
    int up[2];
    if (::pipe(up) != 0) {
        die("pipe");
    }
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        endpoint there(4096);
        const dc_target target(there.domain(), there.queue());
        const address place = place_of(there, target);
        if (::write(up[1], &place, sizeof(address)) != sizeof(address)) {
            die("write");
        }
        while (true) {
            ::pause();
        }
    }
    address far{};
    if (::read(up[0], &far, sizeof(far)) != sizeof(far)) {
        die("the target did not start");
    }
    endpoint here(4096);
    auto near = std::make_unique<dc_target>(here.domain(), here.queue());
    dc_initiator initiator(here.domain(), here.queue());
    const address place = place_of(here, *near);
    std::memset(here.buffer(), 0x5a, 64);
    expect_success(here, initiator, far, "a target in another process");
    expect_success(here, initiator, place, "a target in this process");
    if (std::memcmp(here.buffer(), here.buffer() + 1024, 64) != 0) {
        die("other bytes arrived");
    }
    expect_no_answer(here, initiator, place, dc_access_key + 1, "a wrong access key");
    expect_success(here, initiator, place, "after a wrong access key");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    expect_no_answer(here, initiator, far, dc_access_key, "a killed process");
    expect_success(here, initiator, place, "after a killed process");
    near.reset();
    expect_no_answer(here, initiator, place, dc_access_key, "a destroyed target");
    return 0;
}

} // namespace ucxl::softhca::test
