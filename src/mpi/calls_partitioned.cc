// Partitioned communication: both MPIs copy partitions, or find them, by means that windows do not allow. So a
// partition is packed when the program says that it is ready, and unpacked when the program hears that it arrived.
#include "call.h"
#include "packed_side.h"
#include "requests.h"
#include "settings.h"
#include "type_uses.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace
{

using namespace ucxl::mpi;

class held_partitions final : public held
{
public:
    held_partitions(packed_side&& side, int number, MPI_Count count, direction way, bool may_fail)
        : _side(std::move(side)), _count(count), _way(way), _may_fail(may_fail),
          _has_arrived(static_cast<std::size_t>(number), true)
    {
        is_persistent = is_message = true;
    }

    const packed_side& side() const { return _side; }
    void begin() override
    {
        if (_may_fail) {
            _side.pack_updated();
        }
        const std::lock_guard guard(_lock);
        _has_arrived.assign(_has_arrived.size(), false);
    }
    void end() override
    {
        for (std::size_t i = 0; i < _has_arrived.size(); ++i) {
            note_arrival(static_cast<int>(i));
        }
    }
    bool must_end() const override { return _way == direction::receive; }

    void pack(int partition) const
    {
        if (_way == direction::send && is_partition(partition)) {
            _side.pack_some(0, partition * _count, _count);
        }
    }
    void pack_range(int first, int last) const
    {
        const int end = std::min(last, static_cast<int>(_has_arrived.size()) - 1);
        for (int i = std::max(first, 0); i <= end; ++i) {
            pack(i);
        }
    }
    // The first of several calls unpacks the partition.
    void note_arrival(int partition)
    {
        const std::lock_guard guard(_lock);
        if (_way == direction::receive && is_partition(partition) &&
            !_has_arrived[static_cast<std::size_t>(partition)]) {
            _side.unpack_some(0, partition * _count, _count);
            _has_arrived[static_cast<std::size_t>(partition)] = true;
        }
    }

private:
    bool is_partition(int number) const
    {
        return number >= 0 && static_cast<std::size_t>(number) < _has_arrived.size();
    }

    packed_side _side;
    const MPI_Count _count; // elements of one partition
    const direction _way;
    const bool _may_fail; // and the program goes on then
    std::mutex _lock;
    std::vector<bool> _has_arrived; // all of them before the first start
};

template <typename Next, typename Buffer>
int start(Next* next, Buffer buffer, int number, MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
          MPI_Info info, MPI_Request* request, direction way)
{
    std::unique_ptr<held_partitions> things;
    if (peer != MPI_PROC_NULL && number > 0 && count > 0 && settings::get().takes_messages &&
        find_used(type, starts_of_persistent * number * count) != nullptr) [[unlikely]] {
        try {
            if (auto side = packed_side::of(buffer, number * count, type, way)) {
                things = std::make_unique<held_partitions>(std::move(*side), number, count, way,
                                                           !errors_are_fatal(&PMPI_Comm_get_errhandler, comm));
            }
        } catch (const std::bad_alloc&) {
            things.reset();
        }
    }
    if (things == nullptr) {
        return next(buffer, number, count, type, peer, tag, comm, info, request);
    }
    const int result =
        next(things->side().data(), number, count, things->side().type(0), peer, tag, comm, info, request);
    if (result == MPI_SUCCESS) {
        requests::hold(*request, std::move(things));
    }
    return result;
}

held_partitions* partitions_of(MPI_Request request)
{
    return requests::any() ? dynamic_cast<held_partitions*>(requests::find(request)) : nullptr;
}

} // namespace

UCXL_MPI_CALL own_MPI_Psend_init(const void* buffer, int number, MPI_Count count, MPI_Datatype type, int destination,
                                 int tag, MPI_Comm comm, MPI_Info info, MPI_Request* request)
{
    return start(next_MPI_Psend_init, buffer, number, count, type, destination, tag, comm, info, request,
                 direction::send);
}

UCXL_MPI_CALL own_MPI_Precv_init(void* buffer, int number, MPI_Count count, MPI_Datatype type, int source, int tag,
                                 MPI_Comm comm, MPI_Info info, MPI_Request* request)
{
    return start(next_MPI_Precv_init, buffer, number, count, type, source, tag, comm, info, request,
                 direction::receive);
}

UCXL_MPI_CALL own_MPI_Pready(int partition, MPI_Request request)
{
    if (const auto* const things = partitions_of(request)) {
        things->pack(partition);
    }
    return next_MPI_Pready(partition, request);
}

UCXL_MPI_CALL own_MPI_Pready_range(int first, int last, MPI_Request request)
{
    if (const auto* const things = partitions_of(request)) {
        things->pack_range(first, last);
    }
    return next_MPI_Pready_range(first, last, request);
}

UCXL_MPI_CALL own_MPI_Pready_list(int length, UCXL_PARAMETER(1, Pready_list) list, MPI_Request request)
{
    if (const auto* const things = partitions_of(request); things != nullptr && list != nullptr) {
        for (int i = 0; i < length; ++i) {
            things->pack(list[i]);
        }
    }
    return next_MPI_Pready_list(length, list, request);
}

UCXL_MPI_CALL own_MPI_Parrived(MPI_Request request, int partition, int* flag)
{
    const int result = next_MPI_Parrived(request, partition, flag);
    if (result == MPI_SUCCESS && *flag != 0) {
        if (auto* const things = partitions_of(request); things != nullptr) {
            things->note_arrival(partition);
        }
    }
    return result;
}
