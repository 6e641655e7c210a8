// This process as a user of the device: its fabric, its device files, its doorbell pages. Made when the process first
// touches a device file or its folders; a process that never does stays as it is.
//
// After fork() the child has none. What its parent made stays the parent's: doorbells of the child go nowhere, and its
// commands know nothing of it. It may open the device anew, or make something of its own through a context it
// inherited; that ends with the child. When a process ends, what it made is released; threads that still run find that
// everything answers EIO, as on a device that was unplugged.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "kernel_device.h"
#include "softhca/shim/doorbell/doorbell_pages.h"
#include "softhca/shim/memory/fabric_memory.h"
#include "softhca/shim/memory/linux_host.h"

namespace ucxl::softhca
{

class device_process final : private kernel_host, private doorbell_taker
{
public:
    // Null where this process has not attached (or has ended its use). Cheap.
    static device_process* current() { return _current.load(std::memory_order_acquire); }

    // The current one, or a new one. Null, with errno ENODEV, where there is none to be had; the reason goes to
    // standard error, once.
    static device_process* attach();

    // At the end of the process: nothing is attached any more afterwards.
    static void finish();
    // The same before another program takes its place; should that fail the process may open the device anew.
    static void before_program();

    // The one that this descriptor is a device file or event channel of, be it ended or the parent's. Null: no one's.
    static device_process* owner_of(int fd);

    // Whether this is the process that attached, and neither its child nor finished.
    bool in_use() const;
    // The same where a child may run on our memory, until it executes a program (vfork).
    bool is_this_process() const;

    // A descriptor is about to be closed. Nothing happens where a child runs on our memory (vfork).
    static void closing(int fd);

    kernel& files() { return *_kernel; }
    int ioctl(int fd, unsigned long request, void* argument);
    ssize_t write(int fd, const void* bytes, std::size_t length);

    // A WQE was posted through the verbs of a context whose doorbell page does not trap.
    void posted(std::uint32_t qpn);
    // Looks after everything of this process that can go on.
    void progress();

    // UARs made by this thread until the next call belong to a context that tells of its doorbells itself.
    static void begin_open();
    // Returns the last such UAR, 0 for none.
    static std::uint32_t end_open();
    doorbell_pages& pages() { return _pages; }
    void ring(std::uint32_t uar, std::size_t offset, std::uint64_t value) override;

private:
    class visit;

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

    int open_device_file(function_id which, int flags) override;
    std::uint64_t uar_map_offset(std::uint32_t uar) override;
    std::uint16_t memic_page_index(function_id which, std::size_t page) override;
    void uar_made(std::uint32_t uar) override;
    void uar_freed(std::uint32_t uar) override;
    event_channel make_event_channel(int flags) override;
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

    fabric_memory _memory;
    process_identity _process;
    linux_host _host;
    std::unique_ptr<fabric> _fabric;
    std::unique_ptr<kernel> _kernel;
    doorbell_pages _pages;
    // Of the file behind all device files: the first open sets them, and every later one sets them to the same.
    std::atomic<std::uint64_t> _file_device{0}, _file_inode{0};
    device_process* _previous       = nullptr;
    std::atomic<unsigned> _visitors = 0; // threads inside the fabric
    std::atomic<bool> _ended        = false;
    std::atomic<bool> _watching     = false; // doorbells may be missed
    std::atomic<pid_t> _child       = 0;     // the child of fork() that this is the copy of
};

} // namespace ucxl::softhca
