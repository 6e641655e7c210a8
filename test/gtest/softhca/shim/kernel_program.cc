#include "kernel_program.h"

#include <gtest/gtest.h>

#include <fcntl.h>

namespace ucxl::softhca::test
{

namespace
{

constexpr std::size_t room_bytes       = std::size_t{16} << 20;
constexpr std::size_t in_place_bytes   = 8;
constexpr std::uint32_t mlx5_driver_id = 1;

} // namespace

int test_kernel_host::next_fd()
{
    for (int fd = 3; fd < fd_limit; fd++) {
        if (open_fds.insert(fd).second) {
            return fd;
        }
    }
    return -EMFILE;
}

event_channel test_kernel_host::make_event_channel(int)
{
    const int reader = next_fd();
    if (reader < 0) {
        return {.reader = reader, .writer = -1, .pipe_inode = 0};
    }
    writers.insert(reader + 10000);
    return {.reader = reader, .writer = reader + 10000, .pipe_inode = 0};
}

event_channel test_kernel_host::keep_event_fd(int fd)
{
    if (!event_fds.contains(fd)) {
        return {.reader = open_fds.contains(fd) ? -EINVAL : -EBADF, .writer = -1, .pipe_inode = 0};
    }
    writers.insert(fd + 20000);
    return {.reader = 0, .writer = fd + 20000, .pipe_inode = 0};
}

std::uint32_t test_kernel_host::drop_events(const event_channel& channel, std::size_t, std::uint64_t value)
{
    return static_cast<std::uint32_t>(std::erase_if(_machine.notifications, [&](const notification& one) {
        return one.client == _process.id() && one.route.channel == channel.writer && one.route.value == value;
    }));
}

bool test_kernel_host::read_user(void* to, std::uint64_t from, std::size_t length)
{
    const std::byte* const at = _process.at(from, length);
    if (at == nullptr) {
        return false;
    }
    std::memcpy(to, at, length);
    return true;
}

bool test_kernel_host::write_user(std::uint64_t to, const void* from, std::size_t length)
{
    std::byte* const at = _process.at(to, length);
    if (at == nullptr) {
        return false;
    }
    std::memcpy(at, from, length);
    return true;
}

int test_kernel_host::check_user(std::uint64_t address, std::uint64_t length, bool)
{
    return length == 0 || _process.at(address, length) != nullptr ? 0 : EFAULT;
}

kernel_program::kernel_program(test_machine& its_machine)
    : machine(its_machine), process(its_machine.start()), host(its_machine, process),
      device(std::make_unique<kernel>(process.device(), host)), _room(process.allocate(room_bytes))
{
}

std::span<std::byte> kernel_program::room(std::size_t bytes)
{
    const std::size_t whole = (bytes + 63) / 64 * 64;
    EXPECT_LE(whole, _room.size()) << "the test needs a larger room";
    const std::span<std::byte> given = _room.first(bytes);
    _room                            = _room.subspan(whole);
    return given;
}

int kernel_program::open(unsigned number)
{
    return device->open("/dev/infiniband/uverbs" + std::to_string(number), O_RDWR | O_CLOEXEC).value_or(-2);
}

int kernel_program::open_context(unsigned number)
{
    const int fd = open(number);
    mlx5_ib_alloc_ucontext_req_v2 request{};
    request.total_num_bfregs       = 16;
    request.num_low_latency_bfregs = 4;
    request.flags                  = MLX5_IB_ALLOC_UCTX_DEVX;
    request.max_cqe_version        = 1;
    request.lib_caps               = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR;
    uverbs_request call(*this, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
    call.out<std::uint32_t>(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS)
        .out<std::uint64_t>(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT)
        .in(UVERBS_ATTR_UHW_IN, request)
        .out<mlx5_ib_alloc_ucontext_resp>(UVERBS_ATTR_UHW_OUT);
    EXPECT_EQ(call.run(fd), 0);
    return fd;
}

std::uint32_t kernel_program::alloc_pd(int fd)
{
    ib_uverbs_alloc_pd_resp response{};
    EXPECT_EQ(write_command(*this, fd, IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{}, response), 0);
    return response.pd_handle;
}

std::uint32_t kernel_program::alloc_uar(int fd, std::uint32_t* page)
{
    uverbs_request call(*this, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
    call.object(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0)
        .constant(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)
        .out<std::uint64_t>(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET)
        .out<std::uint32_t>(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH)
        .out<std::uint32_t>(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID);
    EXPECT_EQ(call.run(fd), 0);
    *page = call.answer<std::uint32_t>(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID);
    return static_cast<std::uint32_t>(call.handle(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE));
}

int kernel_program::async_channel(int fd)
{
    uverbs_request call(*this, UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
    call.object(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
    EXPECT_EQ(call.run(fd), 0);
    return static_cast<int>(call.handle(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE));
}

int kernel_program::completion_channel(int fd)
{
    ib_uverbs_create_comp_channel_resp response{};
    EXPECT_EQ(
        write_command(*this, fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, ib_uverbs_create_comp_channel{}, response), 0);
    return static_cast<int>(response.fd);
}

uverbs_request::uverbs_request(kernel_program& program, std::uint16_t object, std::uint16_t method) : _program(program)
{
    header.object_id = object;
    header.method_id = method;
    header.driver_id = mlx5_driver_id;
}

ib_uverbs_attr& uverbs_request::raw(std::uint16_t id)
{
    ib_uverbs_attr attribute{};
    attribute.attr_id = id;
    attribute.flags   = UVERBS_ATTR_F_MANDATORY;
    return attributes.emplace_back(attribute);
}

uverbs_request& uverbs_request::in_bytes(std::uint16_t id, const void* bytes, std::size_t length)
{
    ib_uverbs_attr& attribute = raw(id);
    attribute.len             = static_cast<std::uint16_t>(length);
    void* to                  = &attribute.data;
    if (length > in_place_bytes) {
        to             = _program.room(length).data();
        attribute.data = address_of(static_cast<std::byte*>(to));
    }
    std::memcpy(to, bytes, length);
    return *this;
}

uverbs_request& uverbs_request::out_bytes(std::uint16_t id, std::size_t length)
{
    const std::span<std::byte> room = _program.room(length);
    ib_uverbs_attr& attribute       = raw(id);
    attribute.len                   = static_cast<std::uint16_t>(length);
    attribute.data                  = address_of(room.data());
    return *this;
}

uverbs_request& uverbs_request::object(std::uint16_t id, std::uint64_t handle)
{
    raw(id).data = handle;
    return *this;
}

int uverbs_request::run(int fd)
{
    const std::size_t bytes = sizeof(header) + attributes.size() * sizeof(ib_uverbs_attr);
    header.length           = static_cast<std::uint16_t>(bytes);
    header.num_attrs        = static_cast<std::uint16_t>(attributes.size());
    std::byte* const at     = _program.room(bytes).data();
    std::memcpy(at, &header, sizeof(header));
    std::memcpy(at + sizeof(header), attributes.data(), bytes - sizeof(header));
    const int error = run_at(fd, address_of(at));
    std::memcpy(attributes.data(), at + sizeof(header), bytes - sizeof(header));
    return error;
}

int uverbs_request::run_at(int fd, std::uint64_t address)
{
    return _program.device->ioctl(fd, RDMA_VERBS_IOCTL, reinterpret_cast<void*>(address)) == 0 ? 0 : errno;
}

const ib_uverbs_attr& uverbs_request::attribute(std::uint16_t id) const
{
    for (const ib_uverbs_attr& one : attributes) {
        if (one.attr_id == id) {
            return one;
        }
    }
    ADD_FAILURE() << "no attribute " << id;
    static const ib_uverbs_attr none{};
    return none;
}

std::uint64_t uverbs_request::handle(std::uint16_t id) const
{
    return attribute(id).data;
}

std::span<std::byte> uverbs_request::bytes(std::uint16_t id) const
{
    const ib_uverbs_attr& one = attribute(id);
    return {reinterpret_cast<std::byte*>(one.data), one.len};
}

} // namespace ucxl::softhca::test
