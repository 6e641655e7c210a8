// Two connected RC queue pairs of one process on the device under test, with what it takes to move bytes by one request
// and wait for it. For the queue pair of one process of several there is verbs_endpoint.h.
//
// Example: verbs_pair pair;
//          ibv_mr* mr = pair.registered(buffer, size);
//          EXPECT_EQ(pair.write({address, length, mr->lkey}, remote_address, rkey), IBV_WC_SUCCESS);
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

namespace ucxl::test
{

// Elements of one list, as large as libmlx5 allows for a queue pair.
inline constexpr unsigned max_elements = 30;

class verbs_pair
{
public:
    verbs_pair();
    // In the protection domain of another pair, which must outlive this one.
    struct beside {
        const verbs_pair& home;
        bool signals_all = false; // sq_sig_all
    };
    explicit verbs_pair(const beside& other);
    ~verbs_pair();
    verbs_pair(const verbs_pair&)            = delete;
    verbs_pair& operator=(const verbs_pair&) = delete;

    ibv_context* context() const { return _context; }
    ibv_pd* pd() const { return _pd; }
    // The queue pair of the operations below. It takes raw requests.
    ibv_qp* qp() const { return _queue[0]; }

    // Registers memory with every kind of remote access, until the pair ends.
    ibv_mr* registered(void* buffer, std::size_t length);

    ibv_wc_status write(const ibv_sge& local, std::uint64_t remote, std::uint32_t rkey);
    ibv_wc_status read(const ibv_sge& local, std::uint64_t remote, std::uint32_t rkey);
    // These post the request and do not wait. `flags`: IBV_SEND_*.
    void post_read(const ibv_sge& local, std::uint64_t remote, std::uint32_t rkey);
    void post_write(const ibv_sge& local, std::uint64_t remote, std::uint32_t rkey, unsigned flags = 0);
    // Sends on one queue pair and receives on the other. Returns the first status that is not success.
    ibv_wc_status send(const ibv_sge& from, const ibv_sge& to);
    ibv_wc_status fetch_add(const ibv_sge& result, std::uint64_t remote, std::uint32_t rkey, std::uint64_t addend);

    // On the other queue pair.
    void post_receive(const ibv_sge& to);

    // Waits for one completion of qp().
    ibv_wc wait();
    // The same on the other queue pair.
    ibv_wc wait_for_receive();

    // The time limit of a request; a failed device never completes one.
    void set_patience(std::chrono::milliseconds patience) { _patience = patience; }

    // Resets both queue pairs after an error.
    void reconnect();
    // Connects qp() to a queue pair of another process, on the same port.
    void connect_to(std::uint32_t qpn);

    // Ends everything but the device. Returns whether nothing of the protection domain was left. The last call.
    bool close();

private:
    void begin();
    void post(ibv_send_wr& request);
    ibv_wc_status execute(ibv_send_wr& request);
    ibv_wc wait_on(ibv_cq* cq);

    bool _is_guest        = false; // in the protection domain of another one
    bool _signals_all     = false;
    ibv_context* _context = nullptr;
    ibv_pd* _pd           = nullptr;
    std::chrono::milliseconds _patience{20000};
    ibv_cq* _cq[2]    = {};
    ibv_qp* _queue[2] = {};
    std::vector<ibv_mr*> _registered;
};

} // namespace ucxl::test
