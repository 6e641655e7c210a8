// Atomic operations of the client on words in the server's memory: those that the layout describes, one after the
// other, each a multiple of the word's size from the start of the packed bytes. The server sets them to 0 before a run.
// After it, the server compares their final values with what the operations make of them; see word_account.h.
#pragma once

#include "exchange.h"
#include "rdma_memory.h"
#include "remote_memory.h"
#include "requests_in_flight.h"
#include "word_account.h"

namespace ucxl::perf
{

// Where fetched values arrive: a ring of two halves. Values are looked at by halves, because it takes an operation to
// read memory of type rdma. While one half is looked at, operations in flight use the other one.
class fetched_values
{
public:
    fetched_values(ucp_process& owner, memory_kind kind, std::size_t outstanding);

    std::size_t half() const { return _ring.size() / 2; }
    std::uint64_t* host(std::uint64_t operation) { return &_ring[operation % _ring.size()]; }
    void* address(std::uint64_t operation);
    // Makes host() show the values of these operations, which do not cross the end of a half.
    void load(std::uint64_t first, std::size_t count);

private:
    std::vector<std::uint64_t> _ring;
    rdma_memory _device;
};

class atomic_stream : public exchange
{
public:
    atomic_stream(session& session, method& method, const settings& settings);

    void prepare_client(std::uint64_t count) override;
    void run_client(std::uint64_t count, method_statistics& statistics) override;
    std::uint64_t verify_client(std::uint64_t count) override;

    void prepare_server(std::uint64_t count) override;
    // The target takes no part; it waits in the following barrier.
    void run_server(std::uint64_t /*count*/) override {}
    void verify_server(std::uint64_t count) override;

private:
    // The number of an operation in the run: which word, and which operation on that word.
    struct position {
        std::uint64_t word;
        std::uint64_t number;
    };

    position position_of(std::uint64_t operation) const
    {
        return {.word = operation % _accounts.size(), .number = operation / _accounts.size()};
    }
    ucs_status_ptr_t start(std::uint64_t operation, unsigned slot);
    void account_until(std::uint64_t operation);
    std::vector<std::byte*> find_words() const;

    session& _session;
    method& _method;
    test_kind _kind;
    std::uint32_t _word_bytes;
    bool _validate;
    remote_memory _remote;
    requests_in_flight _requests;
    std::vector<std::uint64_t> _operands; // of each slot; UCX may read them until the operation is complete
    fetched_values _fetched;
    std::vector<word_account> _accounts; // of each word
    std::uint64_t _accounted = 0;        // operations of this run
};

} // namespace ucxl::perf
