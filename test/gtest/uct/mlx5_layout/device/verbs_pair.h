// Two connected RC queue pairs of one process on the device under test, with what it takes to move bytes by one request
// and wait for it.
//
// Example: verbs_pair pair;
//          ibv_mr* mr = pair.registered(buffer, size);
//          EXPECT_EQ(pair.write({address, length, mr->lkey}, remote_address, rkey), IBV_WC_SUCCESS);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

namespace ucxl::test
{

class verbs_pair
{
public:
    verbs_pair();
    ~verbs_pair();
    verbs_pair(const verbs_pair&)            = delete;
    verbs_pair& operator=(const verbs_pair&) = delete;

    ibv_context* context() const { return _context; }
    ibv_pd* pd() const { return _pd; }
    // The one that the operations below are posted to. It takes raw requests.
    ibv_qp* qp() const { return _queue[0]; }

    // Remote access of every kind; ends with the pair.
    ibv_mr* registered(void* buffer, std::size_t length);

    ibv_wc_status write(const ibv_sge& local, std::uint64_t remote, std::uint32_t rkey);
    ibv_wc_status read(const ibv_sge& local, std::uint64_t remote, std::uint32_t rkey);
    // A send on one queue pair, the receive on the other; the first status that is not success.
    ibv_wc_status send(const ibv_sge& from, const ibv_sge& to);
    ibv_wc_status fetch_add(const ibv_sge& result, std::uint64_t remote, std::uint32_t rkey, std::uint64_t addend);

    // Waits for one completion of qp().
    ibv_wc wait();

    // Both queue pairs anew, after an error.
    void reconnect();

    // Ends everything but the device; whether nothing of the protection domain was left. Nothing else may be called
    // then.
    bool close();

private:
    void connect(int which);
    ibv_wc_status execute(ibv_send_wr& request);
    ibv_wc wait_on(ibv_cq* cq);

    ibv_context* _context = nullptr;
    ibv_pd* _pd           = nullptr;
    ibv_cq* _cq[2]        = {};
    ibv_qp* _queue[2]     = {};
    std::vector<ibv_mr*> _registered;
};

} // namespace ucxl::test
