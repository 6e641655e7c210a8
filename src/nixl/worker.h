// The UCP worker of an agent: its memory, the agents that it is connected to, transfers and notifications.
//
// Any thread may call any function. Calls of UCX are made under one lock, which is held for the copy of one piece of a
// transfer at most. post() does not wait for it, and check() helps with the work if nobody else does it.
//
// Example:
//     auto made = worker::create("agent");                    // null: the reason was logged
//     auto memory = made->add_region(address, length, sharing::mapped);
//     made->connect("other", metadata);
//     auto prepared = made->prepare(direction::write, local, "other", remote);
//     made->post(**prepared, "arrived");
//     while (made->check(**prepared) == UCS_INPROGRESS) {}
#pragma once

#include "shown_windows.h"
#include "sys/process.h"
#include "transfer.h"

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

namespace ucxl::nixl
{

class worker
{
public:
    using notices = std::vector<std::pair<std::string, std::string>>; // agent, text

    static std::unique_ptr<worker> create(std::string agent);
    ~worker();
    worker(const worker&)            = delete;
    worker& operator=(const worker&) = delete;

    // Not in a child of fork(), which leaves all of it to its parent: it must not even destroy its copy.
    bool is_of_this_process() const { return _process == own_pid(); }

    const std::string& connection() const { return _connection; }
    ucs_status_t connect(const std::string& agent, std::string_view connection);
    bool is_connected(const std::string& agent) const;
    ucs_status_t disconnect(const std::string& agent);

    std::shared_ptr<region> add_region(void* address, std::size_t length, sharing how);
    // Busy if another agent still moves bytes of it after a while: then the program must not use the memory for others.
    ucs_status_t end_region(const std::shared_ptr<region>& ended);

    // Without bytes a transfer is done as soon as it is posted. The blocks are inside of their regions. For the agent
    // itself, remote are regions of this process.
    ucx_layout::result<transfer_ptr> prepare(direction way, block_list local, const std::string& agent,
                                             block_list remote);
    ucs_status_t post(transfer& xfer, std::optional<std::string> notice);
    ucs_status_t check(transfer& xfer);
    // Nothing of it runs any more, and it is not posted again. Waits for what UCX has begun; busy if that has no end
    // because an agent of this host does not go on: UCX still uses the memory of the program then.
    ucs_status_t end(transfer& xfer);
    // Transfers that nobody has any more, but UCX.
    std::size_t num_released() const;
    // Windows over memory of this agent that other agents have.
    std::size_t num_shown() const;

    ucs_status_t send_notice(const std::string& agent, const std::string& text);
    notices take_notices();

    // Whether anything happened.
    bool progress();

private:
    friend struct release_transfer;

    explicit worker(std::string agent) : _agent(std::move(agent)), _process(own_pid()) {}

    bool start();
    static ucs_status_t receive(void* self, const void* header, std::size_t header_length, void* data,
                                std::size_t length, const ucp_am_recv_param_t* param);
    static ucs_status_t receive_data(void* self, const void* header, std::size_t header_length, void* data,
                                     std::size_t length, const ucp_am_recv_param_t* param);
    bool take_data(const data_header& header, std::span<const std::byte> data, bool is_rendezvous, ucp_ep_h sender);
    bool take_fetched(const data_header& header, std::span<const std::byte> data, bool is_rendezvous);
    void send_fetched(const message& asked, ucp_ep_h to);
    void handle_moved(const message& answer);
    void await_answer(const std::shared_ptr<piece>& to, const peer& answerer);
    void await_no_answers(const std::vector<std::shared_ptr<piece>>& pieces);
    std::shared_ptr<piece> answered(std::uint64_t number, std::uint64_t answerer);
    bool set_handler(unsigned id, ucp_am_recv_callback_t call);
    void start_sending(ucp_ep_h to, message content, const message_status& status, std::uint32_t flags);
    message_status send(ucp_ep_h to, message content);
    message_status send(peer& to, message content);
    void handle(const message& content);
    void answer(const message& asked, ucp_ep_h to);
    void greet(const peer& to);
    void handle_greeting(const message& greeting);
    void make_endpoint_back(const connection_info& info);
    void join(peer& greeted);
    void handle_shown(const message& answer);

    bool progress_locked();
    bool progress_messages();
    bool progress_transfers();
    void begin(transfer& xfer);
    bool step(transfer& xfer);
    bool wait_for_window(transfer& xfer);
    bool move(transfer& xfer);
    bool move_here(transfer& xfer);
    bool flush(transfer& xfer);
    bool notify(transfer& xfer);
    void start_piece(transfer& xfer);
    void put_or_get(transfer& xfer, piece& made);
    void send_piece(transfer& xfer, const std::shared_ptr<piece>& made);
    void fetch_piece(transfer& xfer, const std::shared_ptr<piece>& made);
    bool is_one_sided(const transfer& xfer) const;
    void start_flush(transfer& xfer);
    void start_notice(transfer& xfer);
    void finish(transfer& xfer, ucs_status_t status);
    ucs_status_t end_locked(transfer& xfer);
    void leave_unfinished(transfer& xfer);
    bool release(transfer& xfer);
    void reap_released();

    ucx_layout::result<local_blocks> blocks_of(const described_list& list) const;
    ucs_status_t prepare_remote(transfer& xfer, const described_list& local, described_list remote);
    ucs_status_t prepare_own(transfer& xfer, const described_list& remote);
    ucs_status_t show_locally(transfer& xfer, const described_list& list);
    std::shared_ptr<remote_window> window_of(peer& at, described_list list);
    std::shared_ptr<peer> peer_of(const connection_info& info) const;
    ucs_status_t create_endpoint(peer& made, const connection_info& info, bool is_neighbor);
    std::vector<std::shared_ptr<peer>> peers_with_endpoint_to(std::uint64_t instance) const;
    void forget_old_windows(peer& at);
    void forget_windows_of(peer& ended);
    void close(const std::shared_ptr<peer>& ended);
    std::shared_ptr<peer> connected_as(std::uint64_t instance) const; // null if there is none
    std::shared_ptr<peer> peer_left_as(std::uint64_t instance);
    void reap_closing();
    void look_for_ended_neighbors();

    const std::string _agent;
    const pid_t _process;
    std::uint64_t _instance = 0;
    std::string _connection;
    ucp_context_h _context = nullptr;
    ucp_worker_h _worker   = nullptr;

    known_lists _lists;

    mutable std::mutex _lock;
    std::map<std::string, std::shared_ptr<peer>> _peers;
    std::vector<std::shared_ptr<peer>> _left; // not connected (any more), with endpoints that cannot be closed
    std::vector<std::pair<std::shared_ptr<peer>, ucs_status_ptr_t>> _closing;
    region_table _regions;
    std::uint64_t _last_number = 0;
    std::chrono::steady_clock::time_point _last_look;
    shown_windows _shown;
    std::vector<message> _received;                                    // that need no answer
    std::unordered_map<std::uint64_t, std::shared_ptr<piece>> _pieces; // with an answer to come
    std::vector<std::shared_ptr<region>> _unended;                     // deregistered, but still used by UCX
    std::set<transfer*> _transfers;                                    // all that are prepared
    std::vector<std::unique_ptr<transfer>> _released;                  // that UCX has not ended
    std::vector<transfer*> _active;

    std::mutex _posted_lock;
    std::vector<transfer*> _posted;
    std::mutex _notices_lock;
    notices _notices;
};

} // namespace ucxl::nixl
