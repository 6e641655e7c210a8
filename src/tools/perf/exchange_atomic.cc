#include "exchange_atomic.h"

#include "tools/common/failure.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace ucxl::perf
{

namespace
{

// So that reading a half from a device is rare.
constexpr std::size_t least_half = 512;

ucp_atomic_op_t operation_of(test_kind kind)
{
    switch (kind) {
    case test_kind::swap:
        return UCP_ATOMIC_OP_SWAP;
    case test_kind::cswap:
        return UCP_ATOMIC_OP_CSWAP;
    default: // ucp_add, ucp_fadd
        return UCP_ATOMIC_OP_ADD;
    }
}

// The owner's CPU may have done the operations in another thread's or process's name: by shared memory.
template <typename Word>
std::uint64_t load(std::byte* address)
{
    return std::atomic_ref<Word>(*reinterpret_cast<Word*>(address)).load(std::memory_order_acquire);
}

} // namespace

fetched_values::fetched_values(ucp_process& owner, memory_kind kind, std::size_t outstanding)
    : _ring(2 * std::max(outstanding, least_half))
{
    if (kind == memory_kind::rdma) {
        _device = rdma_memory::create(owner, _ring.size() * sizeof(_ring[0]));
    }
}

void* fetched_values::address(std::uint64_t operation)
{
    if (_device.memh() == nullptr) {
        return host(operation);
    }
    return reinterpret_cast<void*>(_device.address() + operation % _ring.size() * sizeof(_ring[0]));
}

void fetched_values::load(std::uint64_t first, std::size_t count)
{
    if (_device.memh() != nullptr) {
        _device.read(first % _ring.size() * sizeof(_ring[0]), std::as_writable_bytes(std::span(host(first), count)));
    }
}

atomic_stream::atomic_stream(session& session, method& method, const settings& settings)
    : _session(session), _method(method), _kind(settings.test), _word_bytes(settings.word_bytes),
      _validate(settings.validate), _remote(remote_memory::trade(session, method.exposed_incoming())),
      _requests(session, settings.outstanding, "ucp_atomic_op_nbx"), _operands(settings.outstanding),
      _fetched(session.own_process(), settings.memory.local, settings.outstanding),
      _accounts(settings.message_size / settings.word_bytes)
{
}

void atomic_stream::prepare_client(std::uint64_t /*count*/)
{
    std::ranges::fill(_accounts, word_account());
    _accounted = 0;
}

ucs_status_ptr_t atomic_stream::start(std::uint64_t operation, unsigned slot)
{
    const auto [word, number]    = position_of(operation);
    const word_operands operands = operands_of(_kind, number);
    _operands[slot]              = operands.operand;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype     = ucp_dt_make_contig(_word_bytes);
    if (_kind != test_kind::add) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.reply_buffer = _fetched.address(operation);
    }
    if (_kind == test_kind::cswap) {
        *_fetched.host(operation) = operands.replacement;
    }
    return ucp_atomic_op_nbx(_session.endpoint(), operation_of(_kind), &_operands[slot], 1,
                             _remote.address(0) + word * _word_bytes, _remote.key(), &param);
}

void atomic_stream::run_client(std::uint64_t count, method_statistics& statistics)
{
    for (std::uint64_t i = 0; i < count; ++i) {
        const unsigned slot = _requests.slot_of(i);
        _requests.finish(slot);
        if (i >= _requests.slots()) {
            const std::uint64_t complete = i - _requests.slots() + 1;
            if (complete % _fetched.half() == 0) {
                account_until(complete);
            }
        }
        _requests.start(slot, start(i, slot));
        statistics.lap();
    }
    _requests.finish_all();
    _session.flush();
    account_until(count);
}

void atomic_stream::account_until(std::uint64_t operation)
{
    if (!_validate || _kind == test_kind::add) {
        return;
    }
    while (_accounted < operation) {
        const std::uint64_t rest_of_half = _fetched.half() - _accounted % _fetched.half();
        const std::uint64_t end          = _accounted + std::min(rest_of_half, operation - _accounted);
        _fetched.load(_accounted, end - _accounted);
        for (; _accounted < end; ++_accounted) {
            const auto [word, number] = position_of(_accounted);
            const std::uint64_t mask  = word_mask(_word_bytes);
            _accounts[word].fetched(_kind, number, mask, *_fetched.host(_accounted) & mask);
        }
    }
}

std::uint64_t atomic_stream::verify_client(std::uint64_t count)
{
    _session.peer().send(oob_kind::account, std::as_bytes(std::span(_accounts)));
    _session.peer().receive(oob_kind::status, 0);
    return count;
}

void atomic_stream::prepare_server(std::uint64_t /*count*/)
{
    layout_image& image = _method.destination();
    image.clear();
    for (const memory_block& block : image.blocks()) {
        std::memset(block.address, 0, block.length);
    }
    _method.publish();
}

std::vector<std::byte*> atomic_stream::find_words() const
{
    std::vector<std::byte*> words;
    words.reserve(_accounts.size());
    for (const memory_block& block : _method.destination().blocks()) {
        for (std::size_t offset = 0; offset < block.length; offset += _word_bytes) {
            words.push_back(block.address + offset);
        }
    }
    return words;
}

void atomic_stream::verify_server(std::uint64_t count)
{
    const std::vector<std::byte> message =
        _session.peer().receive(oob_kind::account, std::as_bytes(std::span(_accounts)).size());
    if (message.size() != std::as_bytes(std::span(_accounts)).size()) {
        tools::give_up("{} sent accounts of {} bytes for {} words", _session.peer().peer_name(), message.size(),
                       _accounts.size());
    }
    std::memcpy(static_cast<void*>(_accounts.data()), message.data(), message.size());
    _method.collect();
    const std::vector<std::byte*> words = find_words();
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::uint64_t value =
            _word_bytes == sizeof(std::uint32_t) ? load<std::uint32_t>(words[i]) : load<std::uint64_t>(words[i]);
        const std::uint64_t operations = count / words.size() + (i < count % words.size() ? 1 : 0);
        const std::string wrong        = _accounts[i].error(_kind, operations, word_mask(_word_bytes), value);
        if (!wrong.empty()) {
            tools::give_up("verification failed, {}, {} operations: the final value of word {} {}", info_of(_kind).name,
                           count, i, wrong);
        }
    }
    if (const std::string wrong = _method.destination().check_outside(); !wrong.empty()) {
        tools::give_up("verification failed, {}: {}", info_of(_kind).name, wrong);
    }
    _session.peer().send(oob_kind::status, {});
}

} // namespace ucxl::perf
