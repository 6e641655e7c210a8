#include "stock_export.h"

#include "plain_peer.h"
#include "remote_key.h"
#include "scenario.h"

#include <cstdlib>
#include <cstring>

namespace ucxl::two_process
{

namespace
{

constexpr std::size_t length = 70000;

ucp_mem_h registered(ucp_context_h context, bytes& memory)
{
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address    = memory.data();
    params.length     = memory.size();
    ucp_mem_h memh    = nullptr;
    check_ok(ucp_mem_map(context, &params, &memh), "ucp_mem_map");
    return memh;
}

bytes exported(ucp_mem_h memh)
{
    const ucp_memh_pack_params_t params{.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS,
                                        .flags      = UCP_MEMH_PACK_FLAG_EXPORT};
    void* buffer     = nullptr;
    std::size_t size = 0;
    check_ok(ucp_memh_pack(memh, &params, &buffer, &size), "ucp_memh_pack");
    const auto* const first = static_cast<const std::byte*>(buffer);
    bytes packed(first, first + size);
    const ucp_memh_buffer_release_params_t release{};
    ucp_memh_buffer_release(buffer, &release);
    return packed;
}

void lend(session& session, ucp_context_h context, unsigned rounds)
{
    for (unsigned round = 0; round < rounds; ++round) {
        bytes memory = test_pattern(length, round);
        bytes target(length);
        const ucp_mem_h memh        = registered(context, memory);
        const ucp_mem_h target_memh = registered(context, target);
        session.exchange(exported(memh));
        bytes place;
        append_key(place, context, target_memh, target.data());
        append_key(place, context, memh, memory.data()); // for its address
        session.exchange(place);
        session.barrier();
        check(std::getenv(refused_variable) != nullptr || target == memory, "round {}: other bytes have come", round);
        ucp_mem_unmap(context, memh);
        ucp_mem_unmap(context, target_memh);
    }
}

void move(session& session, ucp_context_h context, unsigned rounds)
{
    for (unsigned round = 0; round < rounds; ++round) {
        const bytes packed              = session.exchange({});
        const bytes place               = session.exchange({});
        std::span<const std::byte> rest = place;
        const remote_key target(session.endpoint(), rest);
        const remote_key source(session.endpoint(), rest);
        ucp_mem_map_params_t params{};
        params.field_mask           = UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER;
        params.exported_memh_buffer = packed.data();
        ucp_mem_h memh              = nullptr;
        const auto status           = ucp_mem_map(context, &params, &memh);
        if (std::getenv(refused_variable) != nullptr) {
            check(status == UCS_ERR_UNREACHABLE, "the import ended with {}", ucs_status_string(status));
        } else {
            check_ok(status, "import");
            ucp_request_param_t param{};
            param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
            param.memh         = memh;
            check_ok(session.wait(ucp_put_nbx(session.endpoint(), reinterpret_cast<const void*>(source.address()),
                                              length, target.address(), target.get(), &param)),
                     "put");
            session.flush();
            ucp_mem_unmap(context, memh);
        }
        session.barrier();
    }
}

const scenario plain("export.plain", [](const peer_arguments& arguments) {
    const context_handle context(arguments);
    session session(arguments, context);
    if (arguments.plays(0)) {
        lend(session, context.get(), arguments.rounds);
    } else {
        move(session, context.get(), arguments.rounds);
    }
    session.close();
});

} // namespace

} // namespace ucxl::two_process
