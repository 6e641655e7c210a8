// Functions of libibverbs and libmlx5 that open a device, or give the program the address of a doorbell page.
#include "direct_verbs.h"
#include "export.h"
#include "softhca/shim/process/device_process.h"

#include <infiniband/mlx5dv.h>

#include <atomic>
#include <cerrno>
#include <dlfcn.h>

using namespace ucxl::softhca;

namespace
{

// The next definition after ours. The usual search misses a library that was loaded with RTLD_LOCAL, as UCX does.
template <typename Function>
Function* next_of(Function*, const char* library, const char* name)
{
    void* found = dlsym(RTLD_NEXT, name);
    if (found == nullptr) {
        if (void* const handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY)) {
            found = dlsym(handle, name);
            dlclose(handle);
        }
    }
    return reinterpret_cast<Function*>(found);
}

#define NEXT_OF_VERBS(function) static const auto next = next_of(&::function, "libibverbs.so.1", #function)
#define NEXT_OF_MLX5(function) static const auto next = next_of(&::function, "libmlx5.so.1", #function)

template <typename Open>
ibv_context* open_taken(Open&& open)
{
    device_process::begin_open();
    ibv_context* const context = open();
    const std::uint32_t uar    = device_process::end_open();
    if (context != nullptr) {
        take_context(context, uar);
    }
    return context;
}

ibv_qp_ex* extended(ibv_qp* queue_pair)
{
    NEXT_OF_VERBS(ibv_qp_to_qp_ex);
    return next != nullptr ? next(queue_pair) : nullptr;
}

template <typename Result>
Result lacking(Result result)
{
    errno = ENOSYS;
    return result;
}

} // namespace

SOFTHCA_INTERPOSED ibv_context* ibv_open_device(ibv_device* device)
{
    NEXT_OF_VERBS(ibv_open_device);
    return next != nullptr ? open_taken([device] { return next(device); }) : lacking<ibv_context*>(nullptr);
}

SOFTHCA_INTERPOSED int ibv_close_device(ibv_context* context)
{
    NEXT_OF_VERBS(ibv_close_device);
    release_context(context);
    return next != nullptr ? next(context) : lacking(-1);
}

SOFTHCA_INTERPOSED int ibv_modify_qp(ibv_qp* queue_pair, ibv_qp_attr* attributes, int mask)
{
    NEXT_OF_VERBS(ibv_modify_qp);
    const int failed = next != nullptr ? next(queue_pair, attributes, mask) : ENOSYS;
    if (failed == 0) {
        take_queue_pair(extended(queue_pair));
    }
    return failed;
}

SOFTHCA_INTERPOSED ibv_context* mlx5dv_open_device(ibv_device* device, mlx5dv_context_attr* attributes)
{
    NEXT_OF_MLX5(mlx5dv_open_device);
    return next != nullptr ? open_taken([=] { return next(device, attributes); }) : lacking<ibv_context*>(nullptr);
}

SOFTHCA_INTERPOSED int mlx5dv_init_obj(mlx5dv_obj* object, uint64_t kinds)
{
    NEXT_OF_MLX5(mlx5dv_init_obj);
    const int failed = next != nullptr ? next(object, kinds) : ENOSYS;
    if (failed == 0 && (kinds & MLX5DV_OBJ_QP) != 0) {
        give_page_away(object->qp.out->bf.reg);
    }
    if (failed == 0 && (kinds & MLX5DV_OBJ_CQ) != 0) {
        give_page_away(object->cq.out->cq_uar);
    }
    return failed;
}

SOFTHCA_INTERPOSED mlx5dv_devx_uar* mlx5dv_devx_alloc_uar(ibv_context* context, uint32_t flags)
{
    NEXT_OF_MLX5(mlx5dv_devx_alloc_uar);
    mlx5dv_devx_uar* const made   = next != nullptr ? next(context, flags) : lacking<mlx5dv_devx_uar*>(nullptr);
    device_process* const process = device_process::current();
    if (made != nullptr && process != nullptr) {
        process->pages().make_trapping(made->page_id);
    }
    return made;
}
