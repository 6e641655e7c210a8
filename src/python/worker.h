// Worker, Operation, Exposed and Remote of Python: one context and one worker of UCX with one peer, and what runs.
//
// Threads: every call of UCX is made under the worker's lock. Who holds that lock never waits for the GIL, so the GIL
// may be held while waiting for the lock. After the end of an operation its window ends under the lock; its arrays are
// let go after that, with the GIL: what they call then may give up the GIL. For Python it is done after that.
#pragma once

#include "layout_object.h"
#include "ucx.h"
#include "window_object.h"

#include <atomic>
#include <chrono>
#include <list>
#include <mutex>

namespace ucxl::python
{

// What is sent, received, put or got, until that has ended.
struct operation {
    const char* name;
    std::unique_ptr<window_object> window; // null: the bytes are contiguous
    std::unique_ptr<operand> bytes;        // null if the window has them
    void* address         = nullptr;
    std::size_t length    = 0;
    ucs_status_ptr_t call = nullptr;
    std::size_t received  = 0; // by a receive
    bool is_receive       = false;
    std::shared_ptr<ucp_rkey> key; // of the memory of the peer

    // Under the lock. Who sees by has_ended() that it has ended sees all that was written before, too.
    void end(ucs_status_t as) { _status.store(as, std::memory_order_release); }
    bool has_ended() const { return status() != UCS_INPROGRESS; }
    bool has_array() const { return address != nullptr || window != nullptr || bytes != nullptr; }
    ucs_status_t status() const { return _status.load(std::memory_order_acquire); }
    // With the GIL, after the end: for Python it is done when its arrays have been let go, or are kept for ever.
    void let_go()
    {
        bytes.reset();
        set_done();
    }
    void set_done() { _is_done = true; }
    bool is_done() const { return _is_done; }
    // Under the lock.
    void end_window()
    {
        if (window != nullptr) {
            bytes = window->end();
            window.reset();
        }
        key.reset();
    }

private:
    std::atomic<ucs_status_t> _status = UCS_INPROGRESS;
    bool _is_done                     = false;
};

using operation_ptr = std::shared_ptr<operation>;

// The TCP connection to the peer that carries addresses: a descriptor of its own, so that it is there as long as the
// worker is. If the process ends without ending the worker, the peer gets a reset, by which it tells this from an
// orderly end.
class control_socket
{
public:
    // -1: there is none.
    explicit control_socket(int descriptor);
    ~control_socket() { close(); }
    control_socket(const control_socket&)            = delete;
    control_socket& operator=(const control_socket&) = delete;

    void close();
    // From here on its end is orderly.
    void allow_orderly_end();
    // Ends the connection by a reset, whoever else has a descriptor of it.
    void reset();

private:
    void set_linger(bool is_reset_by_end);

    int _descriptor;
};

class worker
{
public:
    // `socket` as for control_socket.
    explicit worker(int socket);
    ~worker();
    worker(const worker&)            = delete;
    worker& operator=(const worker&) = delete;

    nb::bytes address() const;
    void connect(const nb::bytes& address);

    // Of a synchronous send the end says that the peer has received it.
    operation_ptr send(nb::handle array, const layout_object* layout, std::uint64_t tag, bool is_synchronous);
    operation_ptr receive(nb::handle array, const layout_object* layout, std::uint64_t tag);
    operation_ptr put(nb::handle array, const layout_object* layout, std::uint64_t remote,
                      const std::shared_ptr<ucp_rkey>& key, std::size_t remote_length);
    operation_ptr get(nb::handle array, const layout_object* layout, std::uint64_t remote,
                      const std::shared_ptr<ucp_rkey>& key, std::size_t remote_length);
    operation_ptr flush();
    operation_ptr disconnect();

    std::unique_ptr<window_object> show(nb::handle array, const layout_object* layout);
    std::string pack_key(const window_object& shown);
    // The worker outlives it.
    std::shared_ptr<ucp_rkey> unpack_key(std::string_view bytes);

    // Makes UCX work for a while, with the GIL; whether anything happened.
    bool progress();
    // Until the operation is done, or the seconds are over, or the socket has something to read or is closed.
    void wait(const operation* awaited, double seconds, int socket);
    // Before the interpreter ends beside threads that use it: lets UCX work for up to a second. If the peer needs no
    // array of this process any more, the end of the process is orderly then.
    void leave();
    // Cancels what runs and ends the context. The peer should have disconnected before. What UCX does not end within a
    // second is kept for ever, with its arrays and the context, and the connection to the peer is reset.
    void close();
    bool is_open() const { return _context != nullptr; }

private:
    enum class direction { out, in };

    void require_open() const;
    operation_ptr prepare(const char* name, nb::handle array, const layout_object* layout, direction way);
    operation_ptr prepare_remote(const char* name, nb::handle array, const layout_object* layout, direction way,
                                 std::size_t remote_length);
    void require_peer() const;
    template <typename Start>
    operation_ptr start(operation_ptr made, Start&& start);
    void destroy_key(ucp_rkey_h key);
    bool progress_locked();
    std::vector<operation_ptr> ended_locked();
    std::vector<operation_ptr> close_locked();
    void destroy_locked(std::chrono::steady_clock::time_point limit);
    void abandon_locked();

    made_here _process;
    control_socket _control;
    ucp_context_h _context = nullptr;
    ucp_worker_h _worker   = nullptr;
    ucp_ep_h _peer         = nullptr;
    std::recursive_mutex _lock;
    std::list<operation_ptr> _running;
    std::vector<operation_ptr> _ended;
};

void bind_worker(nb::module_& module);

} // namespace ucxl::python
