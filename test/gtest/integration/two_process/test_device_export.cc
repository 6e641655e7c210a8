// Memory of a host that a DPU uses: two functions of one device, a process on each. Role 0 is the host; role 1 is the
// DPU and does all transfers. Everything goes through calls of stock UCP.
#include "device_fabric.h"
#include "remote_key.h"
#include "scenario.h"
#include "side.h"
#include "strided_window.h"
#include "transports.h"

#include "support/exported_memory.h"
#include "support/printed_text.h"
#include "support/random.h"
#include "support/wait_until.h"
#include "uct/ib/mlx5/domain/exported_handle.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <sys/mman.h>

namespace ucxl::two_process
{

namespace
{

constexpr strided_shape shape{.block = 64, .number = 1024};

using test::exported;
using test::imported_memory;

// Registered memory of the host, filled with `gap`.
class host_buffer : public test::plain_buffer
{
public:
    host_buffer(ucp_context_h context, std::size_t length) : test::plain_buffer(context, length)
    {
        std::ranges::fill(bytes(), strided_window::gap);
    }

    bool holds(std::span<const std::byte> wanted) const { return std::ranges::equal(bytes(), wanted); }
};

// The window shows the beginning of the message, and nothing else in its memory has changed.
void expect_beginning(const strided_window& window, std::size_t length, unsigned salt, const char* call)
{
    const bytes wanted = strided_window::message(shape.length(), salt);
    for (std::size_t i = 0; i < shape.span(); ++i) {
        const std::size_t at      = i / (2 * shape.block) * shape.block + i % (2 * shape.block);
        const bool is_in_message  = i % (2 * shape.block) < shape.block && at < length;
        const std::byte should_be = is_in_message ? wanted[at] : strided_window::gap;
        check(window.memory()[i] == should_be, "{} of {} bytes: byte {} of the memory", call, length, i);
    }
}

// What the DPU needs to know of memory of the host.
bytes described(ucp_mem_h memh, const void* address)
{
    bytes message(sizeof(address));
    std::memcpy(message.data(), &address, sizeof(address));
    const bytes packed = exported(memh);
    check(!packed.empty(), "ucp_memh_pack failed");
    message.insert(message.end(), packed.begin(), packed.end());
    return message;
}

struct described_memory {
    void* address = nullptr;
    bytes packed;

    explicit described_memory(const bytes& message) : packed(message.begin() + sizeof(address), message.end())
    {
        std::memcpy(&address, message.data(), sizeof(address));
    }
};

ucp_request_param_t with_handle(const imported_memory& imported)
{
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
    param.memh         = imported.get();
    return param;
}

ucs_status_t put(session& session, const described_memory& memory, const imported_memory& imported, std::size_t length,
                 const remote_key& target)
{
    const auto param = with_handle(imported);
    const auto status =
        session.wait(ucp_put_nbx(session.endpoint(), memory.address, length, target.address(), target.get(), &param));
    const ucp_request_param_t plain{};
    const auto flushed = session.wait(ucp_ep_flush_nbx(session.endpoint(), &plain));
    return status != UCS_OK ? status : flushed;
}

// The DPU puts from a window of the host into a plain buffer of the host, and from another plain buffer into a window.
void moved_by_the_dpu(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    if (arguments.plays(0)) {
        strided_window window(context.get(), shape);
        strided_window sink(context.get(), shape);
        host_buffer buffer(context.get(), shape.length());
        for (unsigned round = 0; round < arguments.rounds; ++round) {
            window.fill(round);
            session.exchange(described(window.get().memh(), window.address()));
            session.exchange(described(buffer.memh(), buffer.address()));
            bytes keys;
            append_key(keys, context.get(), buffer.memh(), buffer.address());
            append_key(keys, context.get(), sink.get().memh(), sink.address());
            session.exchange(keys);
            session.barrier(); // the DPU has moved everything
            check(buffer.holds(strided_window::message(shape.length(), round)), "round {}: the buffer", round);
            sink.verify(round, "what the DPU has put from the buffer");
            window.verify(round, "what the DPU has read");
        }
        window.expect_no_copies("exported");
        sink.expect_no_copies("written by the DPU");
    } else {
        for (unsigned round = 0; round < arguments.rounds; ++round) {
            const described_memory window(session.exchange({}));
            const described_memory buffer(session.exchange({}));
            const bytes keys                = session.exchange({});
            std::span<const std::byte> rest = keys;
            const remote_key to_buffer(session.endpoint(), rest);
            const remote_key to_sink(session.endpoint(), rest);
            const imported_memory first(context.get(), window.packed);
            const imported_memory second(context.get(), buffer.packed);
            check_ok(first.status(), "import of a window");
            check_ok(second.status(), "import of a buffer");
            check_ok(put(session, window, first, shape.length(), to_buffer), "put from the window");
            check_ok(put(session, buffer, second, shape.length(), to_sink), "put from the buffer");
            session.barrier();
        }
    }
    session.close();
}

// Temporary memory: mapped, exported, imported, moved and unmapped in each round.
void moved_from_fresh_memory(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    std::optional<host_buffer> target;
    std::optional<remote_key> to_target;
    if (arguments.plays(0)) {
        target.emplace(context.get(), shape.length());
        bytes key;
        append_key(key, context.get(), target->memh(), target->address());
        session.exchange(key);
    } else {
        const bytes key                 = session.exchange({});
        std::span<const std::byte> rest = key;
        to_target.emplace(session.endpoint(), rest);
    }
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        if (arguments.plays(0)) {
            strided_window window(context.get(), shape);
            window.fill(round);
            session.exchange(described(window.get().memh(), window.address()));
            session.barrier();
            check(target->holds(strided_window::message(shape.length(), round)), "round {}", round);
        } else {
            const described_memory window(session.exchange({}));
            const imported_memory imported(context.get(), window.packed);
            check_ok(imported.status(), "import");
            check_ok(put(session, window, imported, shape.length(), *to_target), "put");
            session.barrier();
        }
    }
    to_target.reset();
    session.close();
}

const scenario fresh("export.fresh", moved_from_fresh_memory);

const scenario moving("export.move", moved_by_the_dpu);

// The DPU is on the same host, so a CPU of the DPU reaches shared memory of the host. The other side is a window that
// no CPU reaches.
void moved_within_the_host(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    if (arguments.plays(0)) {
        strided_window window(context.get(), shape);
        window.fill(1);
        side shared(session, {.kind = side_kind::shared, .seed = 2}, shape.length());
        session.exchange(described(window.get().memh(), window.address()));
        bytes key;
        append_key(key, context.get(), shared.memh(), shared.buffer());
        session.exchange(key);
        session.barrier(); // put
        shared.expect_message(strided_window::message(shape.length(), 1));
        shared.verify();
        shared.put_message(strided_window::message(shape.length(), 2));
        session.barrier();
        session.barrier(); // got
        window.verify(2, "what the DPU has got");
        shared.verify();
    } else {
        const described_memory window(session.exchange({}));
        const bytes key                 = session.exchange({});
        std::span<const std::byte> rest = key;
        const remote_key shared(session.endpoint(), rest);
        const imported_memory imported(context.get(), window.packed);
        check_ok(imported.status(), "import of a window");
        check_ok(put(session, window, imported, shape.length(), shared), "put from the window");
        session.barrier();
        session.barrier();
        const auto param = with_handle(imported);
        check_ok(session.wait(ucp_get_nbx(session.endpoint(), window.address, shape.length(), shared.address(),
                                          shared.get(), &param)),
                 "get into the window");
        session.barrier();
    }
    session.close();
}

const scenario moving_within("export.move_within", moved_within_the_host);

// After the host has unmapped it, the DPU cannot reach the memory, whatever it still has. What it then imports anew
// works.
void lost_after_unmap(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context, {.error_handling = true});
    if (arguments.plays(0)) {
        strided_window window(context.get(), shape);
        host_buffer buffer(context.get(), shape.length());
        window.fill(1);
        session.exchange(described(window.get().memh(), window.address()));
        bytes keys;
        append_key(keys, context.get(), buffer.memh(), buffer.address());
        session.exchange(keys);
        window.unmap();
        session.barrier();
        session.barrier(); // the DPU has tried
        check(std::ranges::count(buffer.bytes(), strided_window::gap) == static_cast<std::ptrdiff_t>(shape.length()),
              "the DPU has moved bytes of a window that is not mapped");
    } else {
        const described_memory window(session.exchange({}));
        const bytes keys                = session.exchange({});
        std::span<const std::byte> rest = keys;
        const imported_memory imported(context.get(), window.packed);
        check_ok(imported.status(), "import of a window");
        session.barrier();
        {
            const remote_key to_buffer(session.endpoint(), rest);
            check(put(session, window, imported, shape.length(), to_buffer) != UCS_OK,
                  "a put from a window that is not mapped was UCS_OK");
        }
        session.barrier();
    }
    session.abandon();
}

// The DPU sends messages from memory of the host, over an endpoint whose peers must be able to lose keys.
void sent_by_the_dpu(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context, {.error_handling = true});
    if (arguments.plays(0)) {
        strided_window window(context.get(), shape);
        for (unsigned round = 0; round < arguments.rounds; ++round) {
            window.fill(round);
            session.exchange(described(window.get().memh(), window.address()));
            bytes received(shape.length());
            const ucp_request_param_t param{};
            check_ok(session.wait(
                         ucp_tag_recv_nbx(session.worker(), received.data(), received.size(), 1, UINT64_MAX, &param)),
                     "receive");
            check(received == strided_window::message(shape.length(), round), "round {}", round);
            session.barrier();
        }
    } else {
        for (unsigned round = 0; round < arguments.rounds; ++round) {
            const described_memory window(session.exchange({}));
            const imported_memory imported(context.get(), window.packed);
            check_ok(imported.status(), "import");
            ucp_request_param_t param{};
            param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
            param.memh         = imported.get();
            check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), window.address, shape.length(), 1, &param)),
                     "send");
            session.barrier();
        }
    }
    session.close();
}

const scenario sending("export.send", sent_by_the_dpu);

constexpr std::size_t short_lengths[] = {1, 8, 65, 500, 4000, 20000, shape.length()};

// The device does not reach a window that the host has unmapped. UCP has no way to fail when the CPU copies a short
// message: it carries zeros, and the failure is counted and logged. Where UCP has the card gather it, it fails.
void short_after_unmap(const peer_arguments& arguments)
{
    constexpr std::size_t length = 8;
    const context_handle context(arguments);
    session session(arguments, context, {.error_handling = true});
    const ucp_request_param_t plain{};
    if (arguments.plays(0)) {
        strided_window window(context.get(), shape);
        window.fill(1);
        session.exchange(described(window.get().memh(), window.address()));
        window.unmap();
        session.barrier();
        if (session.exchange({}) == bytes(1)) {
            bytes received(length, strided_window::gap);
            check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), received.data(), length, 1, UINT64_MAX, &plain)),
                     "receive");
            check(received == bytes(length, std::byte{0}), "something else than zeros came");
        }
    } else {
        const described_memory window(session.exchange({}));
        const imported_memory imported(context.get(), window.packed);
        check_ok(imported.status(), "import of a window");
        session.barrier();
        const auto param   = with_handle(imported);
        const auto sent    = session.wait(ucp_tag_send_nbx(session.endpoint(), window.address, length, 1, &param));
        const auto flushed = session.wait(ucp_ep_flush_nbx(session.endpoint(), &plain));
        session.exchange(sent == UCS_OK && flushed == UCS_OK ? bytes(1) : bytes{});
    }
    session.abandon();
}

const scenario short_lost("export.short_lost", short_after_unmap);

// Messages of all lengths, as UCP chooses to send them: short ones it copies by the CPU, which cannot reach the host's
// memory. The DPU sends, puts and receives, and gets, all with windows of the host.
void short_messages(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    const ucp_request_param_t plain{};
    if (arguments.plays(0)) {
        strided_window source(context.get(), shape);
        strided_window sink(context.get(), shape);
        host_buffer buffer(context.get(), shape.length());
        source.fill(1);
        session.exchange(described(source.get().memh(), source.address()));
        session.exchange(described(sink.get().memh(), sink.address()));
        bytes key;
        append_key(key, context.get(), buffer.memh(), buffer.address());
        session.exchange(key);
        const bytes wanted = strided_window::message(shape.length(), 1);
        for (const std::size_t length : short_lengths) {
            session.barrier(); // the DPU has put
            check(std::equal(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(length),
                             buffer.bytes().begin()),
                  "put of {} bytes", length);
            bytes received(length);
            check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), received.data(), length, 1, UINT64_MAX, &plain)),
                     "receive");
            check(std::equal(received.begin(), received.end(), wanted.begin()), "message of {} bytes", length);
            std::ranges::copy(strided_window::message(shape.length(), 2), buffer.bytes().begin());
            check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), buffer.address(), length, 2, &plain)), "send");
            session.barrier(); // the DPU has received
            expect_beginning(sink, length, 2, "receive");
            std::fill_n(sink.memory(), shape.span(), strided_window::gap);
            session.barrier();
            session.barrier(); // the DPU has got
            expect_beginning(sink, length, 2, "get");
            std::fill_n(sink.memory(), shape.span(), strided_window::gap);
        }
        source.verify(1, "what the DPU has read");
    } else {
        const described_memory source(session.exchange({}));
        const described_memory sink(session.exchange({}));
        const bytes key                 = session.exchange({});
        std::span<const std::byte> rest = key;
        const remote_key remote(session.endpoint(), rest);
        const imported_memory from(context.get(), source.packed);
        const imported_memory to(context.get(), sink.packed);
        check_ok(from.status(), "import");
        check_ok(to.status(), "import");
        const auto from_param = with_handle(from);
        const auto to_param   = with_handle(to);
        for (const std::size_t length : short_lengths) {
            check_ok(put(session, source, from, length, remote), "put");
            session.barrier();
            check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), source.address, length, 1, &from_param)),
                     "send");
            check_ok(session.wait(ucp_tag_recv_nbx(session.worker(), sink.address, length, 2, UINT64_MAX, &to_param)),
                     "receive");
            session.barrier();
            session.barrier();
            check_ok(session.wait(ucp_get_nbx(session.endpoint(), sink.address, length, remote.address(), remote.get(),
                                              &to_param)),
                     "get");
            session.barrier();
        }
    }
    session.close();
}

const scenario short_ones("export.short", short_messages);

const scenario losing("export.lose", lost_after_unmap);

// Waits until the other peer is gone, however it ended.
void wait_for_end(session& session)
{
    try {
        while (!session.side_channel().try_receive()) {
            session.turn();
        }
    } catch (const std::exception&) {
    }
}

// The DPU puts from memory of a host that has died, into memory of its own: an error, and it works on.
void host_dies(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context, {.error_handling = true});
    if (arguments.plays(0)) {
        strided_window window(context.get(), shape);
        window.fill(1);
        session.exchange(described(window.get().memh(), window.address()));
        session.barrier();
        raise(SIGKILL);
    }
    const described_memory window(session.exchange({}));
    std::optional<imported_memory> imported(std::in_place, context.get(), window.packed);
    check_ok(imported->status(), "import of a window");
    host_buffer buffer(context.get(), shape.length());
    ucp_ep_params_t params{};
    params.field_mask      = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_mode        = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb  = [](void*, ucp_ep_h, ucs_status_t) {};
    const auto put_to_self = [&](const void* from, ucp_mem_h memh) {
        const ucp_ep_h self = test::connect(session.worker(), test::address_of(session.worker()), params);
        ucs_status_t status = UCS_OK;
        {
            bytes key;
            append_key(key, context.get(), buffer.memh(), buffer.address());
            std::span<const std::byte> rest = key;
            const remote_key target(self, rest);
            ucp_request_param_t param{};
            param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
            param.memh         = memh;
            status = session.wait(ucp_put_nbx(self, from, shape.length(), target.address(), target.get(), &param));
            const ucp_request_param_t plain{};
            const auto flushed = session.wait(ucp_ep_flush_nbx(self, &plain));
            status             = status != UCS_OK ? status : flushed;
        }
        ucp_request_param_t force{};
        force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        force.flags        = UCP_EP_CLOSE_FLAG_FORCE;
        session.wait(ucp_ep_close_nbx(self, &force));
        return status;
    };
    check_ok(put_to_self(window.address, imported->get()), "a put from memory of the host while it lives");
    check(buffer.holds(strided_window::message(shape.length(), 1)), "the put brought other bytes");
    std::ranges::fill(buffer.bytes(), strided_window::gap);
    session.barrier();
    wait_for_end(session);
    check(put_to_self(window.address, imported->get()) != UCS_OK, "a put from memory of a dead host was UCS_OK");
    check(std::ranges::count(buffer.bytes(), strided_window::gap) == static_cast<std::ptrdiff_t>(shape.length()),
          "bytes of a dead host have come");
    imported.reset();
    host_buffer source(context.get(), shape.length());
    std::ranges::fill(source.bytes(), std::byte{0x33});
    check_ok(put_to_self(source.address(), source.memh()), "a put from memory of the DPU");
    session.abandon();
}

const scenario dying_host("export.host_dies", host_dies);

// The host goes on when the DPU has died: it unmaps what was imported, and exports again.
void dpu_dies(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context, {.error_handling = true});
    if (arguments.plays(1)) {
        const described_memory window(session.exchange({}));
        const imported_memory imported(context.get(), window.packed);
        check_ok(imported.status(), "import of a window");
        session.barrier();
        raise(SIGKILL);
    }
    strided_window window(context.get(), shape);
    window.fill(1);
    session.exchange(described(window.get().memh(), window.address()));
    session.barrier();
    wait_for_end(session);
    window.unmap();
    window.map(context.get());
    check(!described(window.get().memh(), window.address()).empty(), "no handle");
    window.verify(1, "after the DPU has died");
    session.abandon();
}

const scenario dying_dpu("export.dpu_dies", dpu_dies);

unsigned long num_aliases()
{
    const std::string all = test::printed_text(
        [](FILE* stream) { check_ok(ucp_layout_print_windows(0, stream), "ucp_layout_print_windows"); });
    const std::string name = "\n  aliases ";
    const auto found       = all.find(name);
    return found == std::string::npos ? 0 : std::stoul(all.substr(found + name.size()));
}

// Registered memory of the host that takes pages only where it is touched.
class sparse_buffer
{
public:
    sparse_buffer(ucp_context_h context, std::size_t length)
        : _context(context), _length(length),
          _memory(static_cast<std::byte*>(
              mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)))
    {
        check(_memory != MAP_FAILED, "mmap of {} bytes", length);
        ucp_mem_map_params_t params{};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address    = _memory;
        params.length     = length;
        check_ok(ucp_mem_map(context, &params, &_memh), "ucp_mem_map");
    }
    ~sparse_buffer()
    {
        ucp_mem_unmap(_context, _memh);
        munmap(_memory, _length);
    }
    sparse_buffer(const sparse_buffer&)            = delete;
    sparse_buffer& operator=(const sparse_buffer&) = delete;

    ucp_mem_h memh() const { return _memh; }
    std::byte* memory() const { return _memory; }

private:
    ucp_context_h _context;
    std::size_t _length;
    std::byte* _memory;
    ucp_mem_h _memh = nullptr;
};

// An entry of a key has up to 2 GiB, so a longer buffer has several.
void long_buffer(const peer_arguments& arguments)
{
    constexpr std::size_t gib = std::size_t{1} << 30, length = 2 * gib + gib / 4, part = 8192;
    constexpr std::size_t places[] = {0, 2 * gib - part, 2 * gib - 1000, 2 * gib, length - part};
    const context_handle context(arguments);
    session session(arguments, context);
    if (arguments.plays(0)) {
        const sparse_buffer memory(context.get(), length);
        host_buffer target(context.get(), part);
        session.exchange(described(memory.memh(), memory.memory()));
        bytes key;
        append_key(key, context.get(), target.memh(), target.address());
        session.exchange(key);
        for (unsigned i = 0; i < std::size(places); ++i) {
            const bytes wanted = strided_window::message(part, i);
            std::ranges::copy(wanted, memory.memory() + places[i]);
            session.barrier();
            session.barrier(); // the DPU has put
            check(target.holds(wanted), "at {}", places[i]);
        }
    } else {
        const described_memory memory(session.exchange({}));
        const bytes key                 = session.exchange({});
        std::span<const std::byte> rest = key;
        const remote_key to_target(session.endpoint(), rest);
        const imported_memory imported(context.get(), memory.packed);
        check_ok(imported.status(), "import");
        for (const std::size_t at : places) {
            session.barrier();
            auto there    = memory;
            there.address = static_cast<std::byte*>(memory.address) + at;
            check_ok(put(session, there, imported, part, to_target), "put");
            session.barrier();
        }
    }
    session.close();
}

const scenario long_ones("export.long", long_buffer);

// The handles that the DPU has imported told it of the keys that come next: it makes their aliases by itself.
void announced(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    constexpr unsigned most = 40; // handles, until the host has made keys that they can announce
    if (arguments.plays(0)) {
        std::vector<std::unique_ptr<host_buffer>> buffers;
        for (unsigned i = 0; i < most; ++i) {
            auto& buffer = *buffers.emplace_back(std::make_unique<host_buffer>(context.get(), 4096));
            session.exchange(described(buffer.memh(), buffer.address()));
            if (session.exchange({}) != bytes{}) {
                break;
            }
        }
        session.barrier();
    } else {
        std::vector<std::unique_ptr<imported_memory>> imported;
        bool has_more = false;
        for (unsigned i = 0; i < most && !has_more; ++i) {
            const described_memory buffer(session.exchange({}));
            imported.push_back(std::make_unique<imported_memory>(context.get(), buffer.packed));
            check_ok(imported.back()->status(), "import");
            has_more =
                test::wait_until([&] { return num_aliases() > imported.size(); }, std::chrono::seconds(i < 20 ? 0 : 1));
            session.exchange(has_more ? bytes(1) : bytes{});
        }
        check(has_more, "{} handles, {} aliases", imported.size(), num_aliases());
        session.barrier();
    }
    session.close();
}

const scenario announcing("export.announce", announced);

// Garbage, handles with changed bytes and handles that name memory of the importing process are refused.
void forged(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    strided_window window(context.get(), shape);
    const described_memory own(described(window.get().memh(), window.address()));
    const described_memory other(session.exchange(described(window.get().memh(), window.address())));
    if (arguments.plays(1)) {
        test::random random(arguments.seed);
        // The domain's part begins with the bytes that no key has, 0xffffffff, and is 152 bytes long.
        const bytes mark(4, std::byte{0xff});
        const auto part = std::ranges::search(other.packed, mark).begin() - other.packed.begin();
        check(part + 152 < std::ssize(other.packed), "no part of this library in an exported handle");
        for (unsigned round = 0; round < arguments.rounds * 20; ++round) {
            bytes changed   = other.packed;
            const auto at   = static_cast<std::size_t>(part) + random.below(152);
            const auto flip = static_cast<std::byte>(1 + random.below(255));
            changed[at] ^= flip;
            const imported_memory imported(context.get(), changed);
            check(imported.status() != UCS_OK, "byte {} of a handle was changed, and it was imported",
                  static_cast<std::ptrdiff_t>(at) - part);
        }
        // A copy of own memory at such an address would go to the other process. Other addresses are free, but they
        // would leave too few for this process.
        const auto* const memory     = reinterpret_cast<const std::byte*>(&session);
        const std::byte* const first = nullptr;
        constexpr std::size_t gib    = std::size_t{1} << 30;
        const auto* const own_arena  = static_cast<const std::byte*>(own.address) + gib;
        const auto* const unused     = first + 16384 * gib;
        for (const auto& [address, length] :
             {std::pair(memory, 8ul), std::pair(memory - 65536, 1ul << 20), std::pair(first, ~0ul),
              std::pair(own_arena, 300 * gib), std::pair(unused, 40960 * gib)}) {
            bytes changed       = other.packed;
            std::byte* const at = changed.data() + part;
            auto handle         = mlx5::unpack_exported(at);
            check(handle.has_value() && handle->is_window, "no handle of a window");
            handle->address      = reinterpret_cast<std::uintptr_t>(address);
            handle->memory_bytes = length;
            mlx5::pack(*handle, std::span<std::byte, mlx5::exported_handle::length>(at, 152));
            const imported_memory imported(context.get(), changed);
            check(imported.status() != UCS_OK, "a handle of {} bytes at {} was imported", length,
                  static_cast<const void*>(address));
        }
        const imported_memory imported(context.get(), other.packed);
        check_ok(imported.status(), "import of the handle itself");
    }
    session.barrier();
    session.close();
}

const scenario forging("export.forge", forged);

pair_config export_config(const char* scenario, const char* tls)
{
    pair_config config{.scenario = scenario, .variables = {{"UCX_TLS", tls}, {"UCX_ZCOPY_THRESH", "0"}}};
    config.own_variables[0] = {{"UCX_NET_DEVICES", "mlx5_0:1"}};
    config.own_variables[1] = {{"UCX_NET_DEVICES", "mlx5_1:1"}};
    return config;
}

class exported_memory : public testing::TestWithParam<const char*>
{
protected:
    void SetUp() override
    {
        if (!has_software_device()) {
            GTEST_SKIP() << "needs a device with two functions";
        }
    }

    // Returns what the device counted.
    static nlohmann::json run(pair_config config)
    {
        device_fabric fabric({"--functions", "2"});
        fabric.add_to(config.variables);
        EXPECT_PAIR(config);
        return fabric.end();
    }

    // Commands to the device for so many rounds.
    static int commands(const char* scenario, unsigned rounds)
    {
        auto config   = export_config(scenario, GetParam());
        config.rounds = rounds;
        // Nothing is made in advance, because that would be going on at some other moment in each run.
        config.variables.emplace_back("UCX_LAYOUT_KEYS_EXPORT_SPARE", "0");
        auto counts = run(config);
        EXPECT_EQ(counts["keys_left"], 0);
        int all = 0;
        for (const auto& [name, command] : counts["commands"].items()) {
            all += command["count"].get<int>();
        }
        return all;
    }

    // The other role sees its peer die.
    static void run_killing(int role, const char* scenario)
    {
        auto config                          = export_config(scenario, GetParam());
        config.expected[role].signal         = SIGKILL;
        config.expected[1 - role].any_output = true; // UCX logs the error of the request, or that the peer is gone
        notice_failures_soon(config.variables);
        run(config);
    }
};

TEST_P(exported_memory, is_moved_by_a_dpu_without_a_command_for_each_transfer)
{
    EXPECT_EQ(commands("export.move", 30), commands("export.move", 60));
    // Registering fresh memory is one command, and so is deregistering it. There is no other.
    EXPECT_EQ(commands("export.fresh", 30) + 2 * 30, commands("export.fresh", 60));
}

// The same in short, for many orders of the device (test/adversarial).
TEST_P(exported_memory, is_moved_by_a_dpu)
{
    EXPECT_EQ(run(export_config("export.move", GetParam()))["keys_left"], 0);
}

// UCX registers long memory in chunks, and puts a key of its own over them.
TEST_P(exported_memory, may_be_registered_in_chunks)
{
    auto config = export_config("export.move", GetParam());
    config.variables.emplace_back("UCX_IB_REG_MT_THRESH", "8k");
    config.variables.emplace_back("UCX_IB_REG_MT_CHUNK", "8k");
    // With relaxed order UCX 1.18.1 takes the one registration for chunks that it could not make so, and dies with it.
    config.variables.emplace_back("UCX_IB_PCI_RELAXED_ORDERING", "n");
    EXPECT_EQ(run(config)["keys_left"], 0);
}

TEST_P(exported_memory, is_moved_to_and_from_shared_memory_of_the_host)
{
    const std::string tls = std::string(GetParam()) + ",lay_shm";
    auto config           = export_config("export.move_within", tls.c_str());
    // So that puts and gets go by lay_shm alone.
    config.variables.emplace_back("UCX_LAY_SHM_BW", "1000GBs");
    config.variables.emplace_back("UCX_MAX_RMA_RAILS", "1");
    EXPECT_EQ(run(config)["keys_left"], 0);
}

TEST_P(exported_memory, is_sent_over_endpoints_with_error_handling)
{
    auto config = export_config("export.send", GetParam());
    config.variables.emplace_back("UCX_RNDV_THRESH", "0");
    EXPECT_EQ(run(config)["keys_left"], 0);
}

TEST_P(exported_memory, is_reached_by_short_messages_that_ucp_copies)
{
    auto config = export_config("export.short", GetParam());
    std::erase_if(config.variables, [](const auto& each) { return each.first == "UCX_ZCOPY_THRESH"; });
    EXPECT_EQ(run(config)["keys_left"], 0);
}

TEST_P(exported_memory, of_more_than_2_gib_is_reached_everywhere)
{
    EXPECT_EQ(run(export_config("export.long", GetParam()))["keys_left"], 0);
}

TEST_P(exported_memory, announces_keys_whose_aliases_the_dpu_makes_in_advance)
{
    EXPECT_EQ(run(export_config("export.announce", GetParam()))["keys_left"], 0);
}

TEST_P(exported_memory, is_lost_to_short_messages_when_the_host_unmaps_it)
{
    auto config = export_config("export.short_lost", GetParam());
    std::erase_if(config.variables, [](const auto& each) { return each.first == "UCX_ZCOPY_THRESH"; });
    config.expected[0].any_output = true; // its peer may be gone from its endpoint
    config.expected[1].output     = "are memory of another process that the device cannot reach|Local protection error";
    EXPECT_EQ(run(config)["keys_left"], 0);
}

TEST_P(exported_memory, is_lost_to_the_dpu_when_the_host_unmaps_it)
{
    auto config                   = export_config("export.lose", GetParam());
    config.expected[1].any_output = true; // UCX logs the error of the request
    config.expected[0].any_output = true;
    EXPECT_EQ(run(config)["keys_left"], 0);
}

TEST_P(exported_memory, of_a_host_that_was_killed_ends_requests_with_an_error)
{
    run_killing(0, "export.host_dies");
}

TEST_P(exported_memory, is_the_hosts_again_when_the_dpu_was_killed)
{
    run_killing(1, "export.dpu_dies");
}

TEST_P(exported_memory, is_not_imported_with_a_changed_handle)
{
    auto config                   = export_config("export.forge", GetParam());
    config.expected[1].any_output = true; // UCX logs that no domain takes it
    EXPECT_EQ(run(config)["keys_left"], 0);
}

INSTANTIATE_TEST_SUITE_P(transports, exported_memory, testing::Values("rc_x,lay_copy", "dc_x,ud_x,lay_copy"));

} // namespace

} // namespace ucxl::two_process
