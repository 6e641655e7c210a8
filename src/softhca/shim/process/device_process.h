// This process as a user of the device: its fabric, its device files, its doorbell pages. It is made when the process
// first touches a device file or its folders. A process that never does is left alone.
//
// A child of fork() starts without one. The objects of its parent stay the parent's: the child's doorbells are ignored,
// and its commands do not know those objects. The child may open the device again, or make objects through an inherited
// context; they are released when the child ends. When a process ends, its objects are released; threads that still run
// get EIO, as on an unplugged device.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "softhca/shim/doorbell/pages.h"
#include "softhca/shim/host/fabric_memory.h"
#include "softhca/shim/host/linux_host.h"
#include "softhca/shim/system/uncancelled.h"
#include "softhca/shim/uverbs/kernel.h"

namespace ucxl::softhca
{

class device_process final : private kernel_host, private doorbell_taker
{
public:
    // Null when this process is not attached. Cheap.
    static device_process* current() { return _current.load(std::memory_order_acquire); }

    // The current one, or a new one. Null with errno ENODEV when it cannot be made; the reason goes to standard error,
    // once.
    static device_process* attach();

    // Called at the end of the process: nothing can be attached afterwards.
    static void finish();
    // Called before the process executes another program. If that fails, the process may open the device again.
    static void before_program();

    // The one with this descriptor as a device file or event channel, even if it has ended or is the parent's. Null
    // when there is none.
    static device_process* owner_of(int fd);

    // As long as this exists, the end of the process does not release the fabric under this thread. False when the
    // process has ended already.
    class visit
    {
    public:
        explicit visit(device_process& process) : _to(process.enter() ? &process : nullptr) {}
        ~visit();
        visit(const visit&)            = delete;
        visit& operator=(const visit&) = delete;
        explicit operator bool() const { return _to != nullptr; }

    private:
        uncancelled _entire;
        device_process* _to;
    };

    // Whether this is the process that attached, not its child, and it has not ended.
    bool in_use() const;

    // For all that own such a descriptor: called before the C library closes it, or those from `first` to `last`, and
    // after it copied `from` to `to`. Do nothing in a child that runs on our memory until it executes a program
    // (vfork).
    static void closing(int fd);
    static void closing(unsigned first, unsigned last);
    static void duplicated(int from, int to);

    kernel& files() { return *_kernel; }
    int ioctl(int fd, unsigned long request, void* argument);
    ssize_t write(int fd, const void* bytes, std::size_t length);
    // The program has read this from one of our descriptors. Returns what read() returns for it.
    ssize_t was_read(int fd, const void* bytes, std::size_t length);

    // A WQE was posted with the verbs of a context whose doorbell page does not trap.
    void posted(std::uint32_t qpn);
    // Executes everything of this process that can continue.
    void progress();

    // UARs that this thread makes until end_open() belong to a context that reports its doorbells itself.
    static void begin_open();
    // Returns the last such UAR, 0 for none.
    static std::uint32_t end_open();
    doorbell_pages& pages() { return _pages; }
    void ring(std::uint32_t uar, std::size_t offset, std::uint64_t value) override;

private:
    explicit device_process(const fabric_memory& memory, const process_identity& process, std::string trace_file);
    static device_process* make();
    static std::optional<fabric_memory>& shared_memory();

    static void before_fork();
    static void after_fork_in_parent();
    static void after_fork_in_child();
    static bool take_fault(int signal, siginfo_t& fault, void* context);
    static void on_wake(void* process);

    device_process* heir();
    static void end_current();
    void end();
    bool prepare_call();
    bool enter();
    void leave() { _visitors.fetch_sub(1); }
    // Also false in a child that runs on our memory.
    bool is_this_process() const;
    static bool is_own_memory();
    void forget(unsigned first, unsigned last);

    int open_device_file(function_id function, int flags) override;
    std::uint64_t uar_map_offset(std::uint32_t uar) override;
    std::uint16_t memic_page_index(function_id function, std::size_t page) override;
    void uar_made(std::uint32_t uar) override;
    void uar_freed(std::uint32_t uar) override;
    event_channel make_event_channel(int flags) override;
    event_channel make_answer_channel(int flags) override;
    int write_answer(const event_channel& channel, std::span<const std::byte> answer) override;
    event_channel keep_event_fd(int fd) override;
    void end_event_channel(const event_channel& channel) override;
    void close_file(int fd) override;
    std::uint32_t drop_events(const event_channel& channel, std::size_t event_bytes, std::uint64_t value) override;
    bool read_user(void* to, std::uint64_t from, std::size_t length) override;
    bool write_user(std::uint64_t to, const void* from, std::size_t length) override;
    int check_user(std::uint64_t address, std::uint64_t length, bool writable) override;

    void missed_some() override;
    void lost_track() override;

    static std::atomic<device_process*> _current;
    static std::atomic<device_process*> _newest; // current or ended; objects are never deleted
    static std::atomic<pid_t> _memory_owner;     // another one calls getpid() in a child of vfork()

    fabric_memory _memory;
    process_identity _process;
    linux_host _host;
    std::unique_ptr<fabric> _fabric;
    std::unique_ptr<kernel> _kernel;
    doorbell_pages _pages;
    // Of the file behind all device files. The first open sets them; later ones set the same values.
    std::atomic<std::uint64_t> _file_device{0}, _file_inode{0};
    device_process* _previous       = nullptr;
    std::atomic<unsigned> _visitors = 0; // threads inside the fabric
    std::atomic<bool> _ended        = false;
    std::atomic<bool> _watching     = false; // doorbells may be missed
    std::atomic<bool> _missed       = false; // doorbells were missed since progress() last looked
    std::atomic<pid_t> _child       = 0;     // the child of fork() whose copy this is
};

} // namespace ucxl::softhca
