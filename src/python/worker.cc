#include "worker.h"

#include "collected.h"
#include "gil.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ucxl::python
{

namespace
{

using clock = std::chrono::steady_clock;

constexpr auto spin_time     = std::chrono::microseconds(200); // then the CPU is given away between two looks
constexpr auto signal_time   = std::chrono::milliseconds(50);  // Ctrl-C is noticed so often
constexpr int rounds_of_spin = 64;
constexpr std::uint32_t magic_of_addresses = 0x3164616c; // "lad1"
constexpr std::uint32_t magic_of_keys      = 0x32796b6c; // "lky2"

// UCP is not told how long an address or a packed key is, and follows the numbers in it: 64 keys of domains of 255
// bytes at most. Behind the bytes of a peer there are zeros for all that, so that nothing else is read.
constexpr std::size_t longest_packed = 32768;

std::string padded(std::string_view packed)
{
    std::string bytes(packed);
    bytes.resize(packed.size() + longest_packed);
    return bytes;
}

// In front of a key.
struct key_header {
    std::uint64_t address, length;
};

// In front of what goes to the peer by ways that UCX does not know, and that programs may cut short or mix up: UCX
// follows the numbers in it without looking. This finds damage. Who means harm can make a right seal.
struct seal {
    std::uint32_t magic;
    std::uint32_t length;
    std::uint64_t hash;
};

// FNV-1a.
std::uint64_t hash_of(std::string_view content)
{
    std::uint64_t value = 0xcbf29ce484222325;
    for (const char each : content) {
        value = (value ^ static_cast<unsigned char>(each)) * 0x100000001b3;
    }
    return value;
}

std::string sealed(std::uint32_t magic, std::string_view content)
{
    const seal made{magic, static_cast<std::uint32_t>(content.size()), hash_of(content)};
    std::string bytes(reinterpret_cast<const char*>(&made), sizeof(made));
    bytes.append(content);
    return bytes;
}

// `name` is that of the argument. Raises if the content is not the one that was sealed.
std::string_view unsealed(std::uint32_t magic, const char* name, const nb::bytes& bytes)
{
    std::string_view content(static_cast<const char*>(bytes.data()), bytes.size());
    seal made{};
    if (content.size() >= sizeof(made)) {
        std::memcpy(&made, content.data(), sizeof(made));
        content.remove_prefix(sizeof(made));
    }
    if (made.magic != magic || made.length != content.size() || made.hash != hash_of(content)) {
        raise(PyExc_ValueError, "{}: these {} bytes are no {}, or are damaged", name, bytes.size(), name);
    }
    return content;
}

void check_ucx(ucs_status_t status, const char* where)
{
    if (status != UCS_OK) {
        raise(kind_of(status), "{}: {}", where, meaning_of(status));
    }
}

// With the GIL, and without the worker's lock.
void let_go(const std::vector<operation_ptr>& ended)
{
    for (const auto& each : ended) {
        each->let_go();
    }
}

} // namespace

control_socket::control_socket(int descriptor)
    : _descriptor(descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : -1)
{
    if (descriptor >= 0 && _descriptor < 0) {
        raise(PyExc_OSError, "socket: {}", std::generic_category().message(errno));
    }
    set_linger(true);
}

void control_socket::set_linger(bool is_reset_by_end)
{
    const linger value{.l_onoff = is_reset_by_end ? 1 : 0, .l_linger = 0};
    setsockopt(_descriptor, SOL_SOCKET, SO_LINGER, &value, sizeof(value));
}

void control_socket::allow_orderly_end()
{
    set_linger(false);
}

void control_socket::close()
{
    if (_descriptor >= 0) {
        ::close(std::exchange(_descriptor, -1));
    }
}

void control_socket::reset()
{
    const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
    ::connect(_descriptor, &nobody, sizeof(nobody)); // for TCP of Linux this is a reset
}

worker::worker(int socket) : _control(socket)
{
    const auto& ucp = ucx();
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features   = UCP_FEATURE_TAG | UCP_FEATURE_RMA;
    // libucp_layout's own function stands before UCX's: contexts that it makes have windows.
    check_ucx(ucp_init(&params, nullptr, &_context), "Worker: ucp_init");
    ucp_worker_params_t worker_params{};
    worker_params.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    if (const auto status = ucp.worker_create(_context, &worker_params, &_worker); status != UCS_OK) {
        ucp.cleanup(std::exchange(_context, nullptr));
        check_ucx(status, "Worker: ucp_worker_create");
    }
}

worker::~worker()
{
    close();
}

void worker::require_open() const
{
    if (!_process.is_here()) {
        raise(PyExc_RuntimeError, "the connection was made before fork(), by the parent of this process");
    }
    if (!is_open()) {
        raise(PyExc_ValueError, "the connection is closed");
    }
}

void worker::require_peer() const
{
    require_open();
    if (_peer == nullptr) {
        raise(PyExc_ValueError, "the connection has no peer yet, or none any more");
    }
}

nb::bytes worker::address() const
{
    require_open();
    ucp_address_t* address = nullptr;
    std::size_t length     = 0;
    check_ucx(ucx().worker_get_address(_worker, &address, &length), "Worker: ucp_worker_get_address");
    const auto bytes = sealed(magic_of_addresses, {reinterpret_cast<const char*>(address), length});
    ucx().worker_release_address(_worker, address);
    return nb::bytes(bytes.data(), bytes.size());
}

void worker::connect(const nb::bytes& address)
{
    require_open();
    if (_peer != nullptr) {
        raise(PyExc_ValueError, "address: there is a peer already");
    }
    const std::string packed = padded(unsealed(magic_of_addresses, "address", address));
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address    = reinterpret_cast<const ucp_address_t*>(packed.data());
    const std::scoped_lock guard(_lock);
    check_ucx(ucx().ep_create(_worker, &params, &_peer), "address: ucp_ep_create");
}

// A window over what is not contiguous.
operation_ptr worker::prepare(const char* name, nb::handle array, const layout_object* layout, direction way)
{
    require_peer();
    auto made   = std::make_shared<operation>();
    made->name  = name;
    made->bytes = std::make_unique<operand>(array, "array", layout_or_null(layout));
    if (way == direction::in) {
        made->bytes->require_target();
    }
    made->length          = made->bytes->length();
    const auto& described = made->bytes->layout();
    if (described.num_sources() == 1 && described.query(UCP_LAYOUT_ATTR_FIELD_DEPTH).depth == 0) {
        made->address = static_cast<std::byte*>(made->bytes->bases().front()) + described.bounds().front().lb;
    } else {
        const std::scoped_lock guard(_lock);
        if (is_open()) { // else start() says so
            made->window  = std::make_unique<window_object>(_context, std::move(made->bytes));
            made->address = made->window->get().address();
        }
    }
    return made;
}

// Calls begin(parameters), which begins the operation.
template <typename Start>
operation_ptr worker::start(operation_ptr made, Start&& begin)
{
    std::vector<operation_ptr> ended;
    bool has_peer = false;
    {
        const std::scoped_lock guard(_lock);
        has_peer = is_open() && _peer != nullptr; // another thread may have closed it
        if (has_peer) {
            ucp_request_param_t param{};
            if (made->window != nullptr) {
                param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
                param.memh         = made->window->get().memh();
            }
            param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL * (made->is_receive ? 1U : 0U);
            made->call = begin(param);
            if (UCS_PTR_IS_PTR(made->call)) {
                _running.push_back(made);
                progress_locked();
            } else {
                made->end(UCS_PTR_STATUS(std::exchange(made->call, nullptr)));
                _ended.push_back(made);
            }
            ended = ended_locked();
        } else {
            made->end_window();
        }
    }
    let_go(ended);
    if (!has_peer) {
        require_peer();
    }
    return made;
}

operation_ptr worker::send(nb::handle array, const layout_object* layout, std::uint64_t tag, bool is_synchronous)
{
    const auto made  = prepare("send", array, layout, direction::out);
    const auto& call = is_synchronous ? ucx().tag_send_sync : ucx().tag_send;
    return start(
        made, [&](const ucp_request_param_t& param) { return call(_peer, made->address, made->length, tag, &param); });
}

operation_ptr worker::receive(nb::handle array, const layout_object* layout, std::uint64_t tag)
{
    const auto made  = prepare("recv", array, layout, direction::in);
    made->is_receive = true;
    return start(made, [&](const ucp_request_param_t& param) {
        return ucx().tag_recv(_worker, made->address, made->length, tag, ~std::uint64_t{0}, &param);
    });
}

// For as many bytes of the peer.
operation_ptr worker::prepare_remote(const char* name, nb::handle array, const layout_object* layout, direction way,
                                     std::size_t remote_length)
{
    auto made = prepare(name, array, layout, way);
    if (made->length != remote_length) {
        raise(PyExc_ValueError, "array: {} bytes, the remote memory has {}", made->length, remote_length);
    }
    return made;
}

operation_ptr worker::put(nb::handle array, const layout_object* layout, std::uint64_t remote,
                          const std::shared_ptr<ucp_rkey>& key, std::size_t remote_length)
{
    const auto made = prepare_remote("put", array, layout, direction::out, remote_length);
    made->key       = key;
    return start(made, [&](const ucp_request_param_t& param) {
        return ucx().put(_peer, made->address, made->length, remote, key.get(), &param);
    });
}

operation_ptr worker::get(nb::handle array, const layout_object* layout, std::uint64_t remote,
                          const std::shared_ptr<ucp_rkey>& key, std::size_t remote_length)
{
    const auto made = prepare_remote("get", array, layout, direction::in, remote_length);
    made->key       = key;
    return start(made, [&](const ucp_request_param_t& param) {
        return ucx().get(_peer, made->address, made->length, remote, key.get(), &param);
    });
}

operation_ptr worker::flush()
{
    require_peer();
    auto made  = std::make_shared<operation>();
    made->name = "flush";
    return start(made, [&](const ucp_request_param_t& param) { return ucx().ep_flush(_peer, &param); });
}

operation_ptr worker::disconnect()
{
    require_open();
    auto made  = std::make_shared<operation>();
    made->name = "close";
    if (_peer == nullptr) {
        made->end(UCS_OK);
        made->let_go();
        return made;
    }
    return start(
        made, [&](const ucp_request_param_t& param) { return ucx().ep_close(std::exchange(_peer, nullptr), &param); });
}

std::unique_ptr<window_object> worker::show(nb::handle array, const layout_object* layout)
{
    require_open();
    auto shown = std::make_unique<operand>(array, "array", layout_or_null(layout));
    if (shown->length() == 0) {
        raise(PyExc_ValueError, "array: it has no bytes");
    }
    shown->require_target(); // the peer may put there
    std::unique_ptr<window_object> window;
    {
        const std::scoped_lock guard(_lock);
        if (is_open()) { // another thread may have closed it
            window = std::make_unique<window_object>(_context, std::move(shown));
        }
    }
    if (window == nullptr) {
        require_open();
    }
    return window;
}

std::string worker::pack_key(const window_object& shown)
{
    require_open();
    const std::scoped_lock guard(_lock);
    const auto& window = shown.get();
    void* key          = nullptr;
    std::size_t length = 0;
    check_ucx(ucx().rkey_pack(_context, window.memh(), &key, &length), "array: ucp_rkey_pack");
    const key_header header{reinterpret_cast<std::uintptr_t>(window.address()), window.length()};
    std::string content(reinterpret_cast<const char*>(&header), sizeof(header));
    content.append(static_cast<const char*>(key), length);
    ucx().rkey_buffer_release(key);
    return sealed(magic_of_keys, content);
}

std::shared_ptr<ucp_rkey> worker::unpack_key(std::string_view bytes)
{
    require_peer();
    const std::string packed = padded(bytes);
    ucp_rkey_h key           = nullptr;
    ucs_status_t status      = UCS_ERR_NOT_CONNECTED;
    {
        const std::scoped_lock guard(_lock);
        if (is_open() && _peer != nullptr) { // another thread may have closed it
            status = ucx().ep_rkey_unpack(_peer, packed.data(), &key);
        }
    }
    check_ucx(status, "key: ucp_ep_rkey_unpack");
    return {key, [this](ucp_rkey_h ended) { destroy_key(ended); }};
}

// In a child of fork() the lock may be that of a thread of the parent.
void worker::destroy_key(ucp_rkey_h key)
{
    if (!_process.is_here()) {
        return;
    }
    const std::scoped_lock guard(_lock);
    if (is_open()) {
        ucx().rkey_destroy(key);
    }
}

// Marks what has ended. Needs no GIL.
bool worker::progress_locked()
{
    const auto& ucp    = ucx();
    const bool is_busy = ucp.worker_progress(_worker) != 0;
    for (auto each = _running.begin(); each != _running.end();) {
        operation& running = **each;
        ucp_tag_recv_info_t info{};
        const auto status =
            running.is_receive ? ucp.tag_recv_test(running.call, &info) : ucp.request_status(running.call);
        if (status == UCS_INPROGRESS) {
            ++each;
            continue;
        }
        ucp.request_free(std::exchange(running.call, nullptr));
        running.received = info.length;
        running.end(status);
        _ended.push_back(*each);
        each = _running.erase(each);
    }
    return is_busy;
}

// What has ended since the last call. To be let go without the lock.
std::vector<operation_ptr> worker::ended_locked()
{
    for (const auto& each : _ended) {
        each->end_window();
    }
    return std::exchange(_ended, {});
}

bool worker::progress()
{
    require_open();
    std::vector<operation_ptr> ended;
    bool is_busy = false;
    {
        const std::scoped_lock guard(_lock);
        for (int i = 0; i < rounds_of_spin && is_open() && progress_locked(); ++i) {
            is_busy = true;
        }
        ended = ended_locked();
    }
    let_go(ended);
    return is_busy;
}

void worker::wait(const operation* awaited, double seconds, int socket)
{
    require_open();
    const auto begin = clock::now();
    auto last_busy = begin, last_signals = begin;
    bool is_readable   = false;
    const auto is_over = [&](clock::time_point now) {
        return (awaited != nullptr && awaited->has_ended()) || is_readable ||
               std::chrono::duration<double>(now - begin).count() >= seconds;
    };
    for (auto now = begin;; now = clock::now()) {
        {
            const without_gil released;
            while (!is_over(now) && now - last_signals < signal_time) {
                bool is_busy = false;
                {
                    const std::scoped_lock guard(_lock);
                    for (int i = 0; i < rounds_of_spin && is_open() && _ended.empty(); ++i) {
                        is_busy = progress_locked() || is_busy;
                    }
                    if (!_ended.empty()) {
                        break; // also of others, who may wait for it in Python: they need their arrays
                    }
                }
                last_busy = is_busy ? now : last_busy;
                // An awaited operation is not over because of the socket: its bytes may still come.
                pollfd ready{.fd = socket, .events = POLLIN | POLLRDHUP, .revents = 0};
                const bool is_idle = now - last_busy > spin_time;
                if (is_idle || awaited == nullptr) {
                    const int found = poll(&ready, socket >= 0 ? 1 : 0, is_idle ? 1 : 0);
                    is_readable     = found > 0 && (awaited == nullptr || (ready.revents & (POLLRDHUP | POLLHUP)) != 0);
                }
                now = clock::now();
            }
        }
        std::vector<operation_ptr> ended;
        {
            const std::scoped_lock guard(_lock);
            ended = ended_locked();
        }
        let_go(ended);
        if (PyErr_CheckSignals() != 0) {
            throw nb::python_error();
        }
        require_open();
        if (is_over(now)) {
            return;
        }
        last_signals = now;
    }
}

void worker::leave()
{
    // In a child of fork() the lock may be that of a thread of the parent.
    if (!_process.is_here()) {
        return;
    }
    const without_gil released;
    const std::scoped_lock guard(_lock);
    if (!is_open()) {
        return;
    }
    const auto limit    = clock::now() + std::chrono::seconds(1);
    const auto is_shown = [](const operation_ptr& each) { return each->has_array() && !each->is_receive; };
    while (std::ranges::any_of(_running, is_shown) && clock::now() < limit) {
        progress_locked();
    }
    if (std::ranges::none_of(_running, is_shown)) {
        _control.allow_orderly_end();
    }
}

void worker::close()
{
    if (!_process.is_here()) {
        _control.close(); // all else is the parent's
        return;
    }
    std::vector<operation_ptr> ended;
    {
        const std::scoped_lock guard(_lock);
        if (is_open()) { // another thread may have closed it
            ended = close_locked();
        }
    }
    let_go(ended);
}

std::vector<operation_ptr> worker::close_locked()
{
    for (const auto& each : _running) {
        ucx().request_cancel(_worker, each->call);
    }
    const auto limit = clock::now() + std::chrono::seconds(1);
    while (!_running.empty() && clock::now() < limit) {
        progress_locked();
    }
    if (std::ranges::none_of(_running, &operation::has_array)) {
        // A flush or the end of the endpoint, behind messages that UCX still keeps. It has copied them.
        for (const auto& each : std::exchange(_running, {})) {
            ucx().request_free(std::exchange(each->call, nullptr));
            each->end(UCS_ERR_CANCELED);
            _ended.push_back(each);
        }
    }
    auto ended = ended_locked();
    if (_running.empty()) {
        destroy_locked(limit);
    } else {
        abandon_locked();
    }
    _control.close();
    return ended;
}

void worker::destroy_locked(clock::time_point limit)
{
    const auto& ucp = ucx();
    ucp_request_param_t param{};
    param.op_attr_mask       = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags              = UCP_EP_CLOSE_FLAG_FORCE;
    ucs_status_ptr_t closing = _peer != nullptr ? ucp.ep_close(std::exchange(_peer, nullptr), &param) : nullptr;
    if (UCS_PTR_IS_PTR(closing)) {
        while (ucp.request_status(closing) == UCS_INPROGRESS && clock::now() < limit) {
            progress_locked();
        }
        ucp.request_free(closing);
    }
    _control.allow_orderly_end();
    ucp.worker_destroy(std::exchange(_worker, nullptr));
    ucp.cleanup(std::exchange(_context, nullptr));
}

// A send that the peer has not received, or a receive of which a part is there, does not end when it is cancelled, and
// UCX ends the process if its worker is destroyed then. The peer may still read the array of such a send, so the array
// stays. But from here on it may be written, and the peer must not take what it reads: that is why the reset comes
// first.
void worker::abandon_locked()
{
    _control.reset();
    for (const auto& each : _running) {
        each->end(UCS_ERR_CANCELED);
        each->set_done();
    }
    new std::list(std::move(_running)); // never freed
    _running.clear();
    _peer    = nullptr;
    _worker  = nullptr;
    _context = nullptr;
}

namespace
{

using worker_ptr = std::shared_ptr<worker>;

std::size_t result_of(const operation& of)
{
    if (!of.is_done()) {
        raise(PyExc_RuntimeError, "{}: it is not done", of.name);
    }
    if (const auto status = of.status(); status != UCS_OK) {
        raise(status == UCS_ERR_CANCELED ? PyExc_ConnectionError : kind_of(status), "{}: {}", of.name,
              meaning_of(status));
    }
    if (of.is_receive && of.received != of.length) {
        raise(PyExc_ValueError, "array: {} bytes, the message has {}", of.length, of.received);
    }
    return of.length;
}

class exposed
{
public:
    exposed(worker_ptr owner, std::unique_ptr<window_object> shown)
        : _owner(std::move(owner)), _shown(std::move(shown)), _key(_owner->pack_key(*_shown))
    {
    }

    nb::bytes key() const { return nb::bytes(_key.data(), _key.size()); }
    std::size_t length() const { return _shown->get().length(); }
    // A closed worker has ended the context in which the window had a handle.
    void close() { _shown->close(); }
    // For collected.h.
    void clear() { close(); }
    int traverse(visitproc visit, void* arg) const { return _shown->traverse(visit, arg); }

private:
    worker_ptr _owner;
    std::unique_ptr<window_object> _shown;
    std::string _key;
};

class remote
{
public:
    remote(worker_ptr owner, const nb::bytes& key) : _owner(std::move(owner))
    {
        const auto content = unsealed(magic_of_keys, "key", key);
        key_header header{};
        const auto in_front = content.copy(reinterpret_cast<char*>(&header), sizeof(header));
        _address            = header.address;
        _length             = header.length;
        _key                = _owner->unpack_key(content.substr(in_front));
    }

    // Operations that run keep the key.
    void close() { _key.reset(); }

    std::size_t length() const { return _length; }

    operation_ptr put(nb::handle array, const layout_object* layout) const
    {
        require_open();
        return _owner->put(array, layout, _address, _key, _length);
    }

    operation_ptr get(nb::handle array, const layout_object* layout) const
    {
        require_open();
        return _owner->get(array, layout, _address, _key, _length);
    }

private:
    void require_open() const
    {
        if (_key == nullptr) {
            raise(PyExc_ValueError, "Remote: it is closed");
        }
    }

    worker_ptr _owner;
    std::uint64_t _address = 0;
    std::size_t _length    = 0;
    std::shared_ptr<ucp_rkey> _key; // the owner outlives it
};

} // namespace

void bind_worker(nb::module_& module)
{
    const auto layout_argument = [] { return nb::arg("layout") = nb::none(); };
    nb::class_<operation>(module, "Operation", nb::is_final(), "What one call of a Worker began.")
        .def_prop_ro("done", &operation::is_done)
        .def("result", &result_of, "Bytes moved; raises the error of the operation.");
    PyType_Slot slots[] = {traverse_slot<exposed>(), clear_slot<exposed>(), {0, nullptr}};
    nb::class_<exposed>(module, "Exposed", nb::type_slots(slots), nb::is_final(),
                        "An array that the peer may read and write, until it is closed. Keeps the array.")
        .def_prop_ro("key", &exposed::key, "What the peer needs for Connection.remote().")
        .def_prop_ro("length", &exposed::length, "Packed bytes.")
        .def("close", &exposed::close, "No operation of the peer may be running.")
        .def(
            "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> Exposed"))
        .def(
            "__exit__", [](exposed& shown, nb::args) { shown.close(); },
            nb::sig("def __exit__(self, *exception: object) -> None"));
    nb::class_<remote>(module, "Remote", nb::is_final(), "An array of the peer, for put() and get().")
        .def_prop_ro("length", &remote::length, "Packed bytes.")
        .def("close", &remote::close)
        .def("put", &remote::put, nb::arg("array"), layout_argument())
        .def("get", &remote::get, nb::arg("array"), layout_argument());
    nb::class_<worker>(module, "Worker", nb::is_final(), "A context and a worker of UCX with one peer; see Connection.")
        .def(nb::new_([](int socket) { return std::make_shared<worker>(socket); }), nb::arg("socket") = -1)
        .def("address", &worker::address)
        .def("connect", &worker::connect, nb::arg("address"))
        .def("send", &worker::send, nb::arg("array"), nb::arg("layout").none(), nb::arg("tag"),
             nb::arg("synchronous") = false)
        .def("recv", &worker::receive, nb::arg("array"), nb::arg("layout").none(), nb::arg("tag"))
        .def("flush", &worker::flush)
        .def("disconnect", &worker::disconnect)
        .def(
            "expose",
            [](const worker_ptr& self, nb::handle array, const layout_object* layout) {
                return std::make_unique<exposed>(self, self->show(array, layout));
            },
            nb::arg("array"), layout_argument())
        .def(
            "remote", [](const worker_ptr& self, const nb::bytes& key) { return std::make_unique<remote>(self, key); },
            nb::arg("key"))
        .def("progress", &worker::progress)
        .def("wait", &worker::wait, nb::arg("operation").none(), nb::arg("seconds"), nb::arg("socket"))
        .def_prop_ro("open", &worker::is_open)
        .def("leave", &worker::leave)
        .def("close", &worker::close);
}

} // namespace ucxl::python
