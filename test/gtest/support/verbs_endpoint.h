// A queue pair with its buffer, as a program has them through libibverbs; for the programs that tests run with the
// device, and for what measures it. A failure throws std::runtime_error. For two in one process there is verbs_pair.h.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ucxl::test
{

[[noreturn]] void die(const std::string& reason);

// What the peer has to know.
struct address {
    std::uint32_t qpn;
    std::uint32_t rkey;
    std::uint64_t buffer;
    std::uint16_t lid;
};

class endpoint
{
public:
    explicit endpoint(std::size_t buffer_bytes, unsigned depth = 16, bool events = false);
    ~endpoint(); // closes all in an orderly way
    endpoint(const endpoint&)            = delete;
    endpoint& operator=(const endpoint&) = delete;

    address own() const;
    void connect(const address& peer, std::uint8_t timeout_exponent = 8);

    void write(std::size_t from, std::size_t to, std::size_t length, std::uint64_t id);
    void read(std::size_t into, std::size_t from, std::size_t length, std::uint64_t id);
    bool try_post(ibv_wr_opcode opcode, std::size_t local, std::size_t remote, std::size_t length, std::uint64_t id);
    void fetch_add(std::size_t into, std::size_t at, std::uint64_t id); // of 1, to 8 bytes of the peer
    void receive(std::size_t into, std::size_t length, std::uint64_t id);

    // As soon as it is there: for those who measure, without a look at the clock.
    void await_one();
    // Nothing within that time.
    std::optional<ibv_wc> completion(double seconds);
    // One that has to come and be good.
    void finish_one();

    std::byte* buffer() { return _buffer.data(); }
    ibv_sge piece(std::size_t offset, std::size_t length); // of the buffer
    ibv_context* context() { return _context; }
    ibv_pd* domain() { return _pd; }
    ibv_qp* queue_pair() { return _qp; }
    ibv_cq* queue() { return _cq; }
    ibv_comp_channel* channel() { return _channel; }

private:
    std::vector<std::byte> _buffer;
    ibv_context* _context      = nullptr;
    ibv_pd* _pd                = nullptr;
    ibv_comp_channel* _channel = nullptr;
    ibv_cq* _cq                = nullptr;
    ibv_mr* _mr                = nullptr;
    ibv_qp* _qp                = nullptr;
    address _peer{};
};

double seconds_now();

} // namespace ucxl::test
