// A program that uses the kernel's part without interposition and without libibverbs: it fills in the structures of the
// uverbs interface itself, in memory of a process of the test machine.
//
//     kernel_program program(machine);
//     int fd = program.open_context();
//     uverbs_request request(program, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);
//     request.object(UVERBS_ATTR_DESTROY_PD_HANDLE, pd);
//     EXPECT_EQ(request.run(fd), EBUSY);
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "softhca/shim/uverbs/kernel.h"
#include "gtest/softhca/core/test_host.h"

namespace ucxl::softhca::test
{

// Descriptors are numbers without files.
class test_kernel_host final : public kernel_host
{
public:
    test_kernel_host(test_machine& machine, test_process& process) : _machine(machine), _process(process) {}

    int open_device_file(function_id, int) override { return next_fd(); }
    std::uint64_t uar_map_offset(std::uint32_t uar) override { return std::uint64_t{uar} << 12; }
    std::uint16_t memic_page_index(function_id, std::size_t page) override { return static_cast<std::uint16_t>(page); }
    void uar_made(std::uint32_t uar) override { uars.insert(uar); }
    void uar_freed(std::uint32_t uar) override { uars.erase(uar); }
    event_channel make_event_channel(int) override;
    event_channel make_answer_channel(int flags) override { return make_event_channel(flags); }
    int write_answer(const event_channel& channel, std::span<const std::byte> answer) override
    {
        answers[channel.writer].emplace_back(answer.begin(), answer.end());
        return answers_fit ? 0 : EAGAIN;
    }
    event_channel keep_event_fd(int fd) override;
    void end_event_channel(const event_channel& channel) override { writers.erase(channel.writer); }
    std::uint32_t drop_events(const event_channel& channel, std::size_t event_bytes, std::uint64_t value) override;
    void close_file(int fd) override { open_fds.erase(fd); }
    bool read_user(void* to, std::uint64_t from, std::size_t length) override;
    bool write_user(std::uint64_t to, const void* from, std::size_t length) override;
    int check_user(std::uint64_t address, std::uint64_t length, bool) override;

    int next_fd();

    std::set<std::uint32_t> uars;
    std::set<int> writers;
    std::set<int> open_fds;
    std::set<int> event_fds;                                    // those of the program that are eventfds
    std::map<int, std::vector<std::vector<std::byte>>> answers; // by writer
    bool answers_fit = true;
    int fd_limit     = 1000; // EMFILE from here

private:
    test_machine& _machine;
    test_process& _process;
};

class kernel_program
{
public:
    explicit kernel_program(test_machine& its_machine);

    int open(unsigned number = 0);
    int open_context(unsigned number = 0); // with DEVX

    // The objects that others need, each made with the minimal parameters.
    std::uint32_t alloc_pd(int fd);
    std::uint32_t alloc_uar(int fd, std::uint32_t* page);
    int async_channel(int fd);
    int completion_channel(int fd);

    // Zeroed memory of the program; never freed.
    std::span<std::byte> room(std::size_t bytes);
    template <typename Value>
    Value* place(const Value& value)
    {
        void* const at = room(sizeof(Value)).data();
        std::memcpy(at, &value, sizeof(value));
        return static_cast<Value*>(at);
    }

    test_machine& machine;
    test_process& process;
    test_kernel_host host;
    std::unique_ptr<kernel> device;

private:
    std::span<std::byte> _room;
};

template <typename Pointer>
std::uint64_t address_of(const Pointer* at)
{
    return reinterpret_cast<std::uint64_t>(at);
}

class uverbs_request
{
public:
    uverbs_request(kernel_program& program, std::uint16_t object, std::uint16_t method);

    template <typename Value>
    uverbs_request& in(std::uint16_t id, const Value& value)
    {
        return in_bytes(id, &value, sizeof(value));
    }
    uverbs_request& in_bytes(std::uint16_t id, const void* bytes, std::size_t length);
    template <typename Value>
    uverbs_request& out(std::uint16_t id)
    {
        return out_bytes(id, sizeof(Value));
    }
    uverbs_request& out_bytes(std::uint16_t id, std::size_t length);
    uverbs_request& object(std::uint16_t id, std::uint64_t handle);
    uverbs_request& constant(std::uint16_t id, std::uint64_t value) { return in(id, value); }
    ib_uverbs_attr& raw(std::uint16_t id); // a new attribute to fill in

    // 0 or the errno.
    int run(int fd);
    int run_at(int fd, std::uint64_t address); // the header is already at that address

    // After the call.
    std::uint64_t handle(std::uint16_t id) const;
    template <typename Value>
    Value answer(std::uint16_t id) const
    {
        Value value{};
        std::memcpy(&value, reinterpret_cast<const void*>(attribute(id).data), sizeof(value));
        return value;
    }
    std::span<std::byte> bytes(std::uint16_t id) const;
    const ib_uverbs_attr& attribute(std::uint16_t id) const;

    std::vector<ib_uverbs_attr> attributes;

private:
    kernel_program& _program;

public:
    ib_uverbs_ioctl_hdr header{}; // last, because the attributes follow it
};

// A command of the write interface, without the driver's part.
template <typename Request, typename Response>
int write_command(kernel_program& program, int fd, std::uint64_t number, const Request& request, Response& response,
                  std::span<const std::byte> driver = {})
{
    uverbs_request call(program, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    call.constant(UVERBS_ATTR_WRITE_CMD, number);
    call.in(UVERBS_ATTR_CORE_IN, request);
    call.out_bytes(UVERBS_ATTR_CORE_OUT, sizeof(Response));
    if (!driver.empty()) {
        call.in_bytes(UVERBS_ATTR_UHW_IN, driver.data(), driver.size());
    }
    const int error = call.run(fd);
    response        = call.answer<Response>(UVERBS_ATTR_CORE_OUT);
    return error;
}

} // namespace ucxl::softhca::test
