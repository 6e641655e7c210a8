// A queue pair and its buffer, as a program has them through libibverbs, for the programs that tests run on the device.
// Any failure ends the program with a message.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ucxl::softhca::test
{

[[noreturn]] void die(const std::string& reason);

// The data that the peer needs.
struct address {
    std::uint32_t qpn;
    std::uint32_t rkey;
    std::uint64_t buffer;
    std::uint16_t lid;
};

// Changes the state from RESET to RTS. timeout_exponent: of the ACK timeout, with 7 retries.
void connect_queue_pair(ibv_qp* queue_pair, const address& peer, std::uint8_t timeout_exponent = 8);

class endpoint
{
public:
    explicit endpoint(std::size_t buffer_bytes, unsigned depth = 16, bool events = false);
    ~endpoint(); // closes everything properly
    endpoint(const endpoint&)            = delete;
    endpoint& operator=(const endpoint&) = delete;

    address own() const;
    void connect(const address& peer, std::uint8_t timeout_exponent = 8);

    void write(std::size_t from, std::size_t to, std::size_t length, std::uint64_t id);
    void read(std::size_t into, std::size_t from, std::size_t length, std::uint64_t id);
    bool try_post(ibv_wr_opcode opcode, std::size_t local, std::size_t remote, std::size_t length, std::uint64_t id);
    void fetch_add(std::size_t into, std::size_t at, std::uint64_t id); // adds 1 to 8 bytes of the peer
    void receive(std::size_t into, std::size_t length, std::uint64_t id);

    // Waits for the next CQE without looking at the clock, for measurements.
    void await_one();
    // The next CQE. Nothing when there is none within that time.
    std::optional<ibv_wc> completion(double seconds);
    // Waits for the next CQE, which must be a success.
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

} // namespace ucxl::softhca::test
