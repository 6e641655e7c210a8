// Protection domains.
#include <rdma/mlx5-abi.h>

#include <array>

#include "call.h"
#include "methods.h"
#include "prm/resource.h"
#include "softhca/shim/objects/verbs.h"
#include "write_commands.h"

namespace ucxl::softhca
{

int write_alloc_pd(uverbs_call& call)
{
    ib_uverbs_alloc_pd request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    mailbox<prm::any_input> input(prm::command::alloc_pd);
    prm::storage<prm::alloc_pd_out> output;
    if (const int error = call.file.run(input, output); error != 0) {
        return error;
    }
    const std::uint32_t pdn = (*output).get(prm::alloc_pd_out::pd);
    call.create(std::make_unique<pd_object>(call.file, pdn));

    const mlx5_ib_alloc_pd_resp driver{.pdn = pdn};
    if (const int error = call.write(UVERBS_ATTR_UHW_OUT, driver); error != 0) {
        return error;
    }
    ib_uverbs_alloc_pd_resp response{};
    response.pd_handle = call.new_handle();
    return call.respond(response);
}

namespace
{

int destroy_pd(uverbs_call& call)
{
    return call.destroy(*call.object<pd_object>(UVERBS_ATTR_DESTROY_PD_HANDLE));
}

int query_pd(uverbs_call& call)
{
    return call.write(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, call.object<pd_object>(MLX5_IB_ATTR_QUERY_PD_HANDLE)->pdn);
}

constexpr std::array destroy_attributes{handle(UVERBS_ATTR_DESTROY_PD_HANDLE, object_kind::pd)};

constexpr std::array query_attributes{
    handle(MLX5_IB_ATTR_QUERY_PD_HANDLE, object_kind::pd),
    output<std::uint32_t>(MLX5_IB_ATTR_QUERY_PD_RESP_PDN),
};

constexpr std::array methods{
    method_spec{UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, destroy_attributes, destroy_pd},
    method_spec{UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, query_attributes, query_pd},
};

} // namespace

std::span<const method_spec> pd_methods()
{
    return methods;
}

} // namespace ucxl::softhca
