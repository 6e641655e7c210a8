#include "vhca_access.h"

#include <algorithm>

#include <sys/random.h>

#include "prm/object.h"
#include "protection_domain.h"

namespace ucxl::mlx5
{

result<access_token> random_token()
{
    access_token token{};
    if (getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
        return fail_errno("a random token");
    }
    return token;
}

result<void> allow_access(ibv_context* context, std::uint32_t key, const access_token& token)
{
    prm::storage<prm::allow_other_vhca_access_in> input;
    prm::storage<prm::any_output> output;
    (*input).put<prm::command::allow_other_vhca_access>(prm::allow_other_vhca_access_in::opcode);
    (*input).put<prm::object_type::mkey>(prm::allow_other_vhca_access_in::object_type_to_be_accessed);
    (*input).put(prm::allow_other_vhca_access_in::object_id_to_be_accessed, key >> 8);
    std::ranges::copy(token, (*input).at(prm::allow_other_vhca_access_in::access_key).begin());
    if (const int error = mlx5dv_devx_general_cmd(context, input.bytes.data(), input.bytes.size(), output.bytes.data(),
                                                  output.bytes.size());
        error != 0) {
        return fail_errno(
            std::format("ALLOW_OTHER_VHCA_ACCESS (syndrome 0x{:x})", (*output).get(prm::any_output::syndrome)).c_str(),
            error);
    }
    return {};
}

result<key_alias> key_alias::create(ibv_pd* pd, std::uint16_t vhca_id, std::uint32_t key, const access_token& token)
{
    const auto pdn = UCXL_TRY(protection_domain_number(pd));
    prm::storage<prm::create_alias_object_in> input;
    prm::storage<prm::query_alias_object_out> output;
    (*input).put<prm::command::create_general_object>(prm::create_alias_object_in::opcode);
    (*input).put<prm::object_type::mkey>(prm::create_alias_object_in::obj_type);
    (*input).put<true>(prm::create_alias_object_in::alias_object);
    const auto alias = (*input).at(prm::create_alias_object_in::alias);
    alias.put(prm::alias_context::vhca_id_to_be_accessed, vhca_id);
    alias.put(prm::alias_context::object_id_to_be_accessed, key >> 8);
    alias.put(prm::alias_context::metadata_1, pdn);
    std::ranges::copy(token, alias.at(prm::alias_context::access_key).begin());
    devx_owner object(mlx5dv_devx_obj_create(pd->context, input.bytes.data(), input.bytes.size(), output.bytes.data(),
                                             output.bytes.size()));
    if (object == nullptr) {
        return fail_errno(std::format("an alias of key 0x{:x} of VHCA {} (syndrome 0x{:x})", key, vhca_id,
                                      (*output).get(prm::query_alias_object_out::syndrome))
                              .c_str());
    }
    if (const auto state = (*output).at(prm::query_alias_object_out::alias).get(prm::alias_context::status);
        state != 0) {
        return fail(errc::io_error, std::format("an alias of key 0x{:x} of VHCA {}: status {}", key, vhca_id, state));
    }
    return key_alias(std::move(object), (*output).get(prm::query_alias_object_out::obj_id) << 8);
}

} // namespace ucxl::mlx5
