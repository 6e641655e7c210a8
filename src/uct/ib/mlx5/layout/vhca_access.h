// Use of a memory key of one function of a device (VHCA) by another function of the same device, such as that of a DPU.
// The owner allows it with a token; who knows the token makes an alias of the key, which is a key of its own function.
// Source: the commands ALLOW_OTHER_VHCA_ACCESS and CREATE_GENERAL_OBJECT with an alias context, as in prm/object.h.
//
// Example:
//     owner:  UCXL_TRY(allow_access(context, key, token));
//     other:  auto alias = UCXL_TRY(key_alias::create(pd, vhca_id, key, token)); use(alias.key());
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <infiniband/verbs.h>

#include "sys/error.h"
#include "verbs_handles.h"

namespace ucxl::mlx5
{

using access_token = std::array<std::byte, 32>;

// Of random bytes. Errors: io_error.
result<access_token> random_token();

// Later aliases need this token. Errors: unsupported, io_error.
result<void> allow_access(ibv_context* context, std::uint32_t key, const access_token& token);

class key_alias
{
public:
    // `vhca_id` and `key` are the owner's. Errors: io_error (there is no such key, the token is another one, or the
    // device refuses), no_memory.
    static result<key_alias> create(ibv_pd* pd, std::uint16_t vhca_id, std::uint32_t key, const access_token& token);

    std::uint32_t key() const { return _key; } // lkey and rkey

private:
    key_alias(devx_owner&& object, std::uint32_t key) : _object(std::move(object)), _key(key) {}

    devx_owner _object;
    std::uint32_t _key;
};

} // namespace ucxl::mlx5
