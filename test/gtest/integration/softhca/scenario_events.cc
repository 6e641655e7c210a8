// Objects that are destroyed while they have unread events. The destroy functions of libibverbs wait until as many
// events were acknowledged as the kernel says were read. With a wrong count they wait forever, and a signal ends the
// scenario.
#include "scenario.h"

#include "support/verbs.h"
#include "support/verbs_endpoint.h"
#include "support/wait_until.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <poll.h>
#include <set>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace ucxl::softhca::test
{

using ucxl::test::address;
using ucxl::test::connect_queue_pair;
using ucxl::test::die;
using ucxl::test::endpoint;

namespace
{

constexpr unsigned patience_s = 60;

void require(bool holds, const char* what)
{
    if (!holds) {
        die(what);
    }
}

// Its own peer, connected again for each event.
class queue_pair
{
public:
    explicit queue_pair(endpoint& around, ibv_comp_channel* channel = nullptr, ibv_srq* shared = nullptr)
        : _around(around), _cq(ibv_create_cq(around.context(), 16, nullptr, channel, 0))
    {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = _cq;
        wanted.recv_cq = _cq;
        wanted.srq     = shared;
        wanted.qp_type = IBV_QPT_RC;
        wanted.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
        _qp        = _cq != nullptr ? ibv_create_qp(around.domain(), &wanted) : nullptr;
        require(_qp != nullptr, "a queue pair");
    }

    ~queue_pair() { destroy(); }
    queue_pair(const queue_pair&)            = delete;
    queue_pair& operator=(const queue_pair&) = delete;

    void destroy()
    {
        if (_qp != nullptr) {
            require(ibv_destroy_qp(_qp) == 0 && ibv_destroy_cq(_cq) == 0, "destroying a queue pair");
            _qp = nullptr;
        }
    }

    void connect()
    {
        ibv_qp_attr reset{};
        reset.qp_state = IBV_QPS_RESET;
        require(ibv_modify_qp(_qp, &reset, IBV_QP_STATE) == 0, "RESET");
        address self = _around.own();
        self.qpn     = _qp->qp_num;
        connect_queue_pair(_qp, {.peer = self.qpn, .lid = self.lid, .timeout_exponent = 8});
    }

    // A message to itself.
    void send(ibv_wr_opcode opcode, std::uint32_t rkey, ibv_wc_status expected)
    {
        ibv_sge piece = _around.piece(0, 8);
        ibv_send_wr request{};
        request.opcode      = opcode;
        request.send_flags  = IBV_SEND_SIGNALED;
        request.wr.rdma     = {.remote_addr = _around.own().buffer, .rkey = rkey};
        request.sg_list     = &piece;
        request.num_sge     = 1;
        ibv_send_wr* unsent = nullptr;
        require(ibv_post_send(_qp, &request, &unsent) == 0, "ibv_post_send");
        require(next_status(IBV_WC_RECV) == expected, "the status of a request");
    }

    // IBV_EVENT_QP_ACCESS_ERR, once.
    void raise_event()
    {
        connect();
        send(IBV_WR_RDMA_WRITE, ~_around.own().rkey, IBV_WC_REM_ACCESS_ERR);
    }

    ibv_qp* verbs() { return _qp; }
    ibv_cq* completions() { return _cq; }

private:
    ibv_wc_status next_status(ibv_wc_opcode unwanted)
    {
        ibv_wc found{};
        do {
            int count = 0;
            while ((count = ibv_poll_cq(_cq, 1, &found)) == 0) {
            }
            require(count == 1, "ibv_poll_cq");
        } while (found.status == IBV_WC_SUCCESS && found.opcode == unwanted);
        return found.status;
    }

    endpoint& _around;
    ibv_cq* _cq;
    ibv_qp* _qp = nullptr;
};

void do_not_block(int fd)
{
    require(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) == 0, "O_NONBLOCK");
}

bool readable(int fd, int timeout_ms = 0)
{
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&wait, 1, timeout_ms) == 1 && (wait.revents & POLLIN) != 0;
}

void expect_event(endpoint& here, ibv_event_type type, const void* object)
{
    ibv_async_event event{};
    require(readable(here.context()->async_fd), "there should be an event to poll for");
    require(ibv_get_async_event(here.context(), &event) == 0, "there should be an event");
    require(event.event_type == type && event.element.qp == object, "another event was expected");
    ibv_ack_async_event(&event);
}

void expect_no_event(endpoint& here)
{
    ibv_async_event event{};
    require(!readable(here.context()->async_fd), "nothing should be there to poll for");
    require(ibv_get_async_event(here.context(), &event) == -1 && errno == EAGAIN, "no event should be there");
}

} // namespace

int unread_events(int)
{
    constexpr int rounds = 2000;
    constexpr int read   = 250; // of each
    ::alarm(patience_s);
    endpoint here(4096);
    do_not_block(here.context()->async_fd);
    queue_pair first(here);
    queue_pair second(here);
    queue_pair third(here);
    for (int i = 0; i < rounds; ++i) {
        first.raise_event();
        second.raise_event();
        third.raise_event();
    }
    first.destroy();
    for (int i = 0; i < read; ++i) {
        expect_event(here, IBV_EVENT_QP_ACCESS_ERR, second.verbs());
        expect_event(here, IBV_EVENT_QP_ACCESS_ERR, third.verbs());
    }
    second.destroy();
    for (int i = 0; i < rounds - read; ++i) {
        expect_event(here, IBV_EVENT_QP_ACCESS_ERR, third.verbs());
    }
    expect_no_event(here);
    third.raise_event();
    third.destroy();
    expect_no_event(here);
    return 0;
}

int events_that_wait_for_their_acknowledgement(int)
{
    ::alarm(patience_s);
    endpoint here(4096);
    queue_pair noisy(here);
    for (int i = 0; i < 100; ++i) {
        noisy.raise_event();
    }
    std::array<ibv_async_event, 2> read{};
    for (ibv_async_event& each : read) {
        require(ibv_get_async_event(here.context(), &each) == 0, "ibv_get_async_event");
    }
    ibv_ack_async_event(&read[0]);
    std::atomic<bool> destroyed = false;
    std::atomic<pid_t> thread   = 0;
    std::thread destroyer([&] {
        thread = ::gettid();
        thread.notify_one();
        noisy.destroy();
        destroyed = true;
    });
    thread.wait(0);
    require(ucxl::test::wait_until([&thread] { return ucxl::test::is_asleep(thread); }), "destroying does not wait");
    require(!destroyed, "destroyed before all that was read was acknowledged");
    ibv_ack_async_event(&read[1]);
    destroyer.join();
    do_not_block(here.context()->async_fd);
    expect_no_event(here);
    return 0;
}

int unread_completion_events(int)
{
    constexpr std::size_t number = 150;
    ::alarm(patience_s);
    endpoint here(4096, 16, true);
    do_not_block(here.channel()->fd);
    std::vector<std::unique_ptr<queue_pair>> all;
    for (std::size_t i = 0; i < number; ++i) {
        all.push_back(std::make_unique<queue_pair>(here, here.channel()));
        require(ibv_req_notify_cq(all[i]->completions(), 0) == 0, "ibv_req_notify_cq");
        all[i]->connect();
        all[i]->send(IBV_WR_RDMA_WRITE, here.own().rkey, IBV_WC_SUCCESS);
    }
    for (std::size_t i = 0; i < number; i += 3) {
        all[i]->destroy();
    }
    for (std::size_t i = 0; i < number; ++i) {
        if (i % 3 != 0) {
            ibv_cq* queue = nullptr;
            void* context = nullptr;
            require(readable(here.channel()->fd) && ibv_get_cq_event(here.channel(), &queue, &context) == 0,
                    "an event is missing");
            require(queue == all[i]->completions(), "an event of another queue");
            ibv_ack_cq_events(queue, 1);
        }
        if (i % 3 == 1) {
            all[i]->destroy();
        }
    }
    require(!readable(here.channel()->fd), "an event too many");
    return 0;
}

int unread_limit_events(int)
{
    constexpr int rounds = 500;
    ::alarm(patience_s);
    endpoint here(4096);
    do_not_block(here.context()->async_fd);
    ibv_srq_init_attr wanted{.srq_context = nullptr, .attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0}};
    std::array<ibv_srq*, 2> shared{};
    for (ibv_srq*& each : shared) {
        each = ibv_create_srq(here.domain(), &wanted);
        require(each != nullptr, "ibv_create_srq");
    }
    std::array<queue_pair, 2> users{queue_pair{here, nullptr, shared[0]}, queue_pair{here, nullptr, shared[1]}};
    users[0].connect();
    users[1].connect();
    for (int i = 0; i < rounds; ++i) {
        for (std::size_t which = 0; which < shared.size(); ++which) {
            ibv_sge piece = here.piece(64, 64);
            ibv_recv_wr receive{};
            receive.sg_list       = &piece;
            receive.num_sge       = 1;
            ibv_recv_wr* unposted = nullptr;
            ibv_srq_attr limit{.max_wr = 0, .max_sge = 0, .srq_limit = 1};
            require(ibv_post_srq_recv(shared[which], &receive, &unposted) == 0, "ibv_post_srq_recv");
            require(ibv_modify_srq(shared[which], &limit, IBV_SRQ_LIMIT) == 0, "ibv_modify_srq");
            users[which].send(IBV_WR_SEND, 0, IBV_WC_SUCCESS);
        }
    }
    expect_event(here, IBV_EVENT_SRQ_LIMIT_REACHED, shared[0]);
    users[0].destroy();
    require(ibv_destroy_srq(shared[0]) == 0, "ibv_destroy_srq");
    for (int i = 0; i < rounds; ++i) {
        expect_event(here, IBV_EVENT_SRQ_LIMIT_REACHED, shared[1]);
    }
    expect_no_event(here);
    users[1].destroy();
    require(ibv_destroy_srq(shared[1]) == 0, "ibv_destroy_srq");
    return 0;
}

// The program closes descriptors of the device and opens others in their places, which must stay intact.
int unread_events_behind_closed_descriptors(int)
{
    constexpr std::size_t length = 4096;
    constexpr int highest        = 1024;
    ::alarm(patience_s);
    endpoint here(4096);
    queue_pair noisy(here);
    noisy.raise_event();
    expect_event(here, IBV_EVENT_QP_ACCESS_ERR, noisy.verbs());
    const int file = ::memfd_create("text", 0);
    const std::string text(length, 'x');
    require(::pwrite(file, text.data(), length, 0) == static_cast<ssize_t>(length), "pwrite");
    for (int fd = 3; fd < highest; ++fd) {
        if (fd != file && fd != here.context()->cmd_fd && fd != here.context()->async_fd) {
            require(::dup2(file, fd) == fd, "dup2");
        }
    }
    noisy.destroy();
    std::string found(2 * length, '\0');
    require(::pread(file, found.data(), found.size(), 0) == static_cast<ssize_t>(length) && found.starts_with(text) &&
                ::lseek(file, 0, SEEK_CUR) == 0,
            "a file of the program has changed");
    ::_exit(0); // the rest cannot be closed properly
}

// Objects are destroyed while others read events: no event of them comes afterwards, and every destroy function
// returns.
int events_read_by_threads(int)
{
    constexpr int makers = 3;
    ::alarm(patience_s);
    endpoint here(4096);
    do_not_block(here.context()->async_fd);
    std::mutex lock;
    std::multiset<const void*> live; // an address may be reused before it is removed
    std::atomic<int> working = makers;
    std::atomic<int> read    = 0;
    const auto reader        = [&] {
        while (working.load() != 0) {
            ibv_async_event event{};
            if (!readable(here.context()->async_fd, 1) || ibv_get_async_event(here.context(), &event) != 0) {
                continue;
            }
            {
                const std::scoped_lock held(lock);
                require(live.contains(event.element.qp), "an event of a queue pair that is gone");
            }
            ibv_ack_async_event(&event);
            if (++read % 16 == 0) {
                ::usleep(5000); // synchronises nothing: a slow reader, so that some stay unread
            }
        }
    };
    const auto maker = [&] {
        for (int round = 0; round < 6; ++round) {
            queue_pair noisy(here);
            const void* const name = noisy.verbs();
            {
                const std::scoped_lock held(lock);
                live.insert(name);
            }
            for (int i = 0; i < 300; ++i) {
                noisy.raise_event();
            }
            noisy.destroy();
            const std::scoped_lock held(lock);
            live.erase(live.find(name));
        }
        --working;
    };
    std::vector<std::thread> threads;
    threads.emplace_back(reader);
    threads.emplace_back(reader);
    for (int i = 0; i < makers; ++i) {
        threads.emplace_back(maker);
    }
    for (std::thread& each : threads) {
        each.join();
    }
    require(read.load() > 100, "too little was read for a test");
    expect_no_event(here);
    return 0;
}

} // namespace ucxl::softhca::test
