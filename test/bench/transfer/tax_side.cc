// Contiguous memory between two processes by stock UCP, as `bench transfer` asks line by line:
//
//     loaded             answers with 1 if libucp_layout is in this process, which only preloading can do, otherwise 0
//     run BYTES TIMES    so many ping-pongs; answers with the seconds of that, halved
#include "bench/common/cpus.h"
#include "bench/common/ucp_pair.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

namespace ucxl::bench
{

namespace
{

struct order {
    std::size_t length;
    unsigned times; // 0: the end
};

// Both processes: the second one is told what the first one gives. It sleeps meanwhile.
order trade_order(const ucp_pair& with, order own)
{
    order remote{};
    const std::vector<std::byte> bytes = with.trade(std::as_bytes(std::span(&own, 1)));
    test::check(bytes.size() == sizeof(remote), "an order");
    std::memcpy(&remote, bytes.data(), sizeof(remote));
    return remote;
}

void ping_pong(ucp_pair& with, bool is_first, std::vector<std::byte>& bytes)
{
    if (is_first) {
        with.send(bytes.data(), bytes.size());
    }
    with.receive(bytes.data(), bytes.size());
    if (!is_first) {
        with.send(bytes.data(), bytes.size());
    }
}

// One more before: it wakes the second one up.
double seconds(ucp_pair& with, bool is_first, const order& given)
{
    std::vector<std::byte> bytes(given.length);
    ping_pong(with, is_first, bytes);
    const auto begin = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < given.times; ++i) {
        ping_pong(with, is_first, bytes);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 2;
}

void lead(ucp_pair& with)
{
    std::cout.precision(15);
    for (std::string verb; std::cin >> verb;) {
        if (verb == "loaded") {
            std::cout << (dlsym(RTLD_DEFAULT, "ucp_layout_map") != nullptr) << std::endl;
        } else {
            order given{};
            std::cin >> given.length >> given.times;
            trade_order(with, given);
            const double time = seconds(with, true, given);
            trade_order(with, given); // when the second one is done, too: others are measured on its CPU next
            std::cout << time << std::endl;
        }
    }
    trade_order(with, {});
}

void follow(ucp_pair& with)
{
    for (;;) {
        const order given = trade_order(with, {});
        if (given.times == 0) {
            return;
        }
        seconds(with, false, given);
        trade_order(with, given);
    }
}

} // namespace

} // namespace ucxl::bench

int main(int argc, char** argv)
{
    using namespace ucxl::bench;
    if (argc > 2) {
        std::fprintf(stderr, "usage: bench_tax_side; `bench transfer` runs it\n");
        return 2;
    }
    return run_pair(argc, argv, 0, [](int socket, bool is_first) {
        take_one(is_first);
        ucp_pair with(socket, UCP_FEATURE_TAG);
        is_first ? lead(with) : follow(with);
    });
}
