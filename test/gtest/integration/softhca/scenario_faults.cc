// Faults as a program meets them. The tests choose the faults by --fault, so that each comes at a known request.
#include "scenario.h"

#include "support/verbs.h"
#include "support/verbs_endpoint.h"
#include "support/wait_until.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace ucxl::softhca::test
{

using ucxl::test::connect_queue_pair;
using ucxl::test::die;
using ucxl::test::endpoint;

namespace
{

constexpr unsigned patience_s           = 60;
constexpr std::uint8_t timeout_exponent = 12; // 17 ms
constexpr const char* port_folder       = "/sys/class/infiniband/mlx5_0/ports/1/";

void require(bool holds, const std::string& what)
{
    if (!holds) {
        die(what);
    }
}

void expect_event(ibv_context* context, ibv_event_type type)
{
    ibv_async_event event{};
    require(ibv_get_async_event(context, &event) == 0, std::string("no event ") + ibv_event_type_str(type));
    require(event.event_type == type, std::string("the event is ") + ibv_event_type_str(event.event_type) +
                                          " instead of " + ibv_event_type_str(type));
    ibv_ack_async_event(&event);
}

ibv_wc_status write_once(endpoint& here)
{
    here.write(0, 64, 8, 1);
    const auto done = here.completion(patience_s);
    require(done.has_value(), "no completion");
    return done->status;
}

std::string port_file(const std::string& name)
{
    std::string text;
    std::getline(std::ifstream(port_folder + name), text);
    return text;
}

ibv_port_attr port_of(ibv_context* context)
{
    ibv_port_attr port{};
    require(ibv_query_port(context, 1, &port) == 0, "ibv_query_port");
    return port;
}

bool has_device()
{
    int number           = 0;
    ibv_device** devices = ibv_get_device_list(&number);
    require(devices != nullptr, "ibv_get_device_list");
    ibv_free_device_list(devices);
    return number != 0;
}

// A context whose objects are destroyed by hand, each with success.
struct objects {
    objects()
    {
        ibv_device** devices = ibv_get_device_list(nullptr);
        context              = ibv_open_device(devices[0]);
        ibv_free_device_list(devices);
        require(context != nullptr, "ibv_open_device");
        channel = ibv_create_comp_channel(context);
        domain  = ibv_alloc_pd(context);
        queue   = ibv_create_cq(context, 7, nullptr, channel, 0);
        region  = ibv_reg_mr(domain, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
        ibv_srq_init_attr wanted{.srq_context = nullptr, .attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0}};
        shared = ibv_create_srq(domain, &wanted);
        require(channel != nullptr && queue != nullptr && region != nullptr && shared != nullptr, "objects");
        pair = make_pair(shared);
    }

    ibv_qp* make_pair(ibv_srq* with)
    {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = queue;
        wanted.recv_cq = queue;
        wanted.srq     = with;
        wanted.qp_type = IBV_QPT_RC;
        wanted.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
        ibv_qp* const made = ibv_create_qp(domain, &wanted);
        require(made != nullptr, "ibv_create_qp");
        return made;
    }

    void destroy()
    {
        require(ibv_destroy_qp(pair) == 0, "ibv_destroy_qp");
        require(ibv_destroy_srq(shared) == 0, "ibv_destroy_srq");
        require(ibv_destroy_cq(queue) == 0, "ibv_destroy_cq");
        require(ibv_dereg_mr(region) == 0, "ibv_dereg_mr");
        require(ibv_dealloc_pd(domain) == 0, "ibv_dealloc_pd");
        require(ibv_destroy_comp_channel(channel) == 0, "ibv_destroy_comp_channel");
        require(ibv_close_device(context) == 0, "ibv_close_device");
    }

    ibv_sge piece()
    {
        return {.addr = reinterpret_cast<std::uint64_t>(memory.data()), .length = 8, .lkey = region->lkey};
    }

    void post_receive(ibv_qp* to)
    {
        ibv_sge place = piece();
        ibv_recv_wr receive{};
        receive.sg_list       = &place;
        receive.num_sge       = 1;
        ibv_recv_wr* unposted = nullptr;
        require(to != nullptr ? ibv_post_recv(to, &receive, &unposted) == 0
                              : ibv_post_srq_recv(shared, &receive, &unposted) == 0,
                "posting a receive");
    }

    void post_send(ibv_qp* from)
    {
        ibv_sge place = piece();
        ibv_send_wr request{};
        request.opcode      = IBV_WR_SEND;
        request.send_flags  = IBV_SEND_SIGNALED;
        request.sg_list     = &place;
        request.num_sge     = 1;
        ibv_send_wr* unsent = nullptr;
        require(ibv_post_send(from, &request, &unsent) == 0, "ibv_post_send");
    }

    void await(int completions)
    {
        ibv_wc found{};
        while (completions != 0) {
            const int number = ibv_poll_cq(queue, 1, &found);
            require(number >= 0 && (number == 0 || found.status == IBV_WC_SUCCESS), "a completion");
            completions -= number;
        }
    }

    std::array<std::byte, 4096> memory{};
    ibv_context* context      = nullptr;
    ibv_comp_channel* channel = nullptr;
    ibv_pd* domain            = nullptr;
    ibv_cq* queue             = nullptr;
    ibv_mr* region            = nullptr;
    ibv_srq* shared           = nullptr;
    ibv_qp* pair              = nullptr;
};

ibv_qp_state state_of(ibv_qp* pair)
{
    ibv_qp_attr attributes{};
    ibv_qp_init_attr made{};
    require(ibv_query_qp(pair, &attributes, IBV_QP_STATE, &made) == 0, "ibv_query_qp");
    return attributes.qp_state;
}

void expect_the_end(objects& here)
{
    ibv_async_event event{};
    require(ibv_get_async_event(here.context, &event) == -1 && errno == EIO, "events should end with EIO");
    pollfd ended{.fd = here.context->async_fd, .events = POLLIN, .revents = 0};
    require(::poll(&ended, 1, 1000) == 1 && (ended.revents & (POLLHUP | POLLERR)) != 0, "a hangup to poll for");
    ibv_port_attr port{};
    require(ibv_query_port(here.context, 1, &port) == EIO, "commands should give EIO");
    require(ibv_alloc_pd(here.context) == nullptr && errno == EIO, "nothing can be made");
}

} // namespace

// --fault port_down:rdma_write,first=2,time=40ms
int port_bounces(int)
{
    ::alarm(patience_s);
    endpoint here(4096);
    here.connect(here.own(), timeout_exponent);
    require(port_file("state") == "4: ACTIVE", "the port should be up");
    for (int i = 0; i < 4; ++i) {
        require(write_once(here) == IBV_WC_SUCCESS, "traffic should go on");
    }
    expect_event(here.context(), IBV_EVENT_PORT_ERR);
    expect_event(here.context(), IBV_EVENT_CLIENT_REREGISTER);
    expect_event(here.context(), IBV_EVENT_PORT_ACTIVE);
    require(port_file("counters/link_downed") == "1", "link_downed");
    require(std::stoi(port_file("hw_counters/local_ack_timeout_err")) >= 2, "local_ack_timeout_err");
    require(port_of(here.context()).state == IBV_PORT_ACTIVE, "the port should be up again");
    return 0;
}

// --fault port_down:rdma_write
int port_stays_down(int)
{
    ::alarm(patience_s);
    endpoint here(4096);
    here.connect(here.own(), 8);
    require(write_once(here) == IBV_WC_RETRY_EXC_ERR, "a connection without a port should end");
    expect_event(here.context(), IBV_EVENT_PORT_ERR);
    const ibv_port_attr port = port_of(here.context());
    require(port.state == IBV_PORT_DOWN && port.phys_state == 2, "the port should be down, and poll");
    require(port_file("state") == "1: DOWN" && port_file("phys_state") == "2: Polling", "as the files say");
    require(port_file("hw_counters/req_transport_retries_exceeded") == "1", "req_transport_retries_exceeded");
    return 0;
}

// --fault remove:rdma_write
int removed(int)
{
    ::alarm(patience_s);
    objects here;
    std::atomic<int> error = 0;
    std::atomic<pid_t> id  = 0;
    std::thread waiter([&] {
        id = ::gettid();
        id.notify_one();
        ibv_cq* queue = nullptr;
        void* context = nullptr;
        error         = ibv_get_cq_event(here.channel, &queue, &context) == 0 ? 0 : errno;
    });
    id.wait(0);
    require(ucxl::test::wait_until([&id] { return ucxl::test::is_asleep(id); }), "nobody waits for a completion");
    {
        endpoint other(4096);
        other.connect(other.own());
        other.write(0, 64, 8, 1);
        require(!other.completion(0.05), "a removed card completes nothing");
        expect_event(other.context(), IBV_EVENT_DEVICE_FATAL);
    }
    waiter.join();
    require(error == EIO, "who waits for a completion should be woken with EIO");
    require(!has_device(), "the card should be gone for new programs");
    require(!std::ifstream(std::filesystem::path(port_folder) / "state").is_open(), "and its files");
    expect_event(here.context, IBV_EVENT_DEVICE_FATAL);
    expect_the_end(here);
    here.destroy();
    return 0;
}

// --fault fatal:rdma_write,time=100ms
int firmware_recovers(int)
{
    ::alarm(patience_s);
    objects here;
    {
        endpoint other(4096);
        other.connect(other.own());
        other.write(0, 64, 8, 1);
        require(!other.completion(0.02), "a failed card completes nothing");
    }
    expect_event(here.context, IBV_EVENT_DEVICE_FATAL);
    require(ibv_alloc_pd(here.context) == nullptr, "a failed card makes nothing");
    expect_event(here.context, IBV_EVENT_DEVICE_FATAL); // cut off, as the card recovers
    expect_the_end(here);
    endpoint anew(4096);
    anew.connect(anew.own());
    require(write_once(anew) == IBV_WC_SUCCESS, "a new context should work");
    here.destroy();
    return 0;
}

int completion_queue_overrun(int)
{
    ::alarm(patience_s);
    objects here;
    ibv_qp* const pair = here.make_pair(nullptr);
    ibv_port_attr port = port_of(here.context);
    connect_queue_pair(pair, {.peer = pair->qp_num, .lid = port.lid, .timeout_exponent = timeout_exponent});
    for (int i = 0; i < 16; ++i) { // two completions each, for a queue of 8
        here.post_receive(pair);
        here.post_send(pair);
    }
    ibv_async_event event{};
    require(ibv_get_async_event(here.context, &event) == 0, "no event");
    require(event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == here.queue, "IBV_EVENT_CQ_ERR");
    ibv_ack_async_event(&event);
    expect_event(here.context, IBV_EVENT_QP_FATAL);
    require(state_of(pair) == IBV_QPS_ERR, "a queue pair that cannot complete its requests should be in error");
    require(ibv_destroy_qp(pair) == 0, "ibv_destroy_qp");
    here.destroy();
    return 0;
}

int queue_pair_events(int)
{
    ::alarm(patience_s);
    objects here;
    ibv_qp* const sender     = here.make_pair(nullptr);
    const std::uint16_t lid  = port_of(here.context).lid;
    const auto connect_ready = [&](ibv_qp* from, ibv_qp* to) {
        connect_queue_pair(from, {.peer = to->qp_num, .lid = lid, .timeout_exponent = timeout_exponent});
    };
    connect_ready(sender, here.pair);
    ibv_qp_attr attributes{};
    attributes.qp_state        = IBV_QPS_INIT;
    attributes.port_num        = 1;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    require(ibv_modify_qp(here.pair, &attributes,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
            "INIT");
    attributes.qp_state           = IBV_QPS_RTR;
    attributes.path_mtu           = IBV_MTU_1024;
    attributes.dest_qp_num        = sender->qp_num;
    attributes.ah_attr.dlid       = lid;
    attributes.ah_attr.port_num   = 1;
    attributes.max_dest_rd_atomic = 1;
    attributes.min_rnr_timer      = 12;
    require(ibv_modify_qp(here.pair, &attributes,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
            "RTR");
    here.post_receive(nullptr);
    ibv_srq_attr limit{.max_wr = 0, .max_sge = 0, .srq_limit = 1};
    require(ibv_modify_srq(here.shared, &limit, IBV_SRQ_LIMIT) == 0, "ibv_modify_srq");
    here.post_send(sender);
    here.await(2);
    expect_event(here.context, IBV_EVENT_SRQ_LIMIT_REACHED);
    expect_event(here.context, IBV_EVENT_COMM_EST);
    attributes.qp_state = IBV_QPS_ERR;
    require(ibv_modify_qp(here.pair, &attributes, IBV_QP_STATE) == 0, "ERR");
    expect_event(here.context, IBV_EVENT_QP_LAST_WQE_REACHED);
    require(ibv_destroy_qp(sender) == 0, "ibv_destroy_qp");
    here.destroy();
    return 0;
}

// mlx5 drains no send queue for a program, and this device migrates no paths: both are refused, never accepted.
int path_migration_is_refused(int)
{
    objects here;
    ibv_device_attr device{};
    require(ibv_query_device(here.context, &device) == 0, "ibv_query_device");
    require((device.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG) == 0, "the device should not say that it migrates");
    ibv_qp* const pair      = here.make_pair(nullptr);
    const std::uint16_t lid = port_of(here.context).lid;
    connect_queue_pair(pair, {.peer = pair->qp_num, .lid = lid, .timeout_exponent = timeout_exponent});
    ibv_qp_attr attributes{};
    attributes.alt_port_num         = 1;
    attributes.alt_ah_attr.port_num = 1;
    attributes.alt_ah_attr.dlid     = lid;
    attributes.path_mig_state       = IBV_MIG_REARM;
    for (const int mask : {int{IBV_QP_ALT_PATH}, int{IBV_QP_PATH_MIG_STATE}, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE}) {
        require(ibv_modify_qp(pair, &attributes, mask) == EINVAL, "path migration should be refused");
    }
    attributes.path_mig_state = IBV_MIG_MIGRATED;
    require(ibv_modify_qp(pair, &attributes, IBV_QP_PATH_MIG_STATE) == 0, "what is so already may be asked for");
    attributes.qp_state = IBV_QPS_SQD;
    require(ibv_modify_qp(pair, &attributes, IBV_QP_STATE) == EINVAL, "draining should be refused");
    require(state_of(pair) == IBV_QPS_RTS, "nothing should have changed");
    require(ibv_destroy_qp(pair) == 0, "ibv_destroy_qp");
    here.destroy();
    return 0;
}

// Reads events until the port is up again; how many there were is the exit status.
int port_watcher(int)
{
    ::alarm(patience_s);
    endpoint here(4096);
    std::puts("watching");
    std::fflush(stdout);
    for (int events = 1;; ++events) {
        ibv_async_event event{};
        require(ibv_get_async_event(here.context(), &event) == 0, "ibv_get_async_event");
        ibv_ack_async_event(&event);
        if (event.event_type == IBV_EVENT_PORT_ACTIVE) {
            return events;
        }
    }
}

} // namespace ucxl::softhca::test
