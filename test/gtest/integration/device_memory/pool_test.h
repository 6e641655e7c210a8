// Base of the tests of device memory: a connected pair, a domain on it, and a pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "counted_addresses.h"
#include "support/check.h"
#include "support/log_guard.h"
#include "support/must.h"
#include "support/verbs_pair.h"
#include "uct/ib/mlx5/domain/memic_pool.h"
#include "uct/ib/mlx5/layout/api_support.h"

namespace ucxl::test
{

// Nothing: it worked.
template <typename T>
std::optional<errc> error_of(const result<T>& made)
{
    return made ? std::nullopt : std::optional(made.error().code);
}

class pool_test : public ucx_test
{
protected:
    using pool_ptr = std::unique_ptr<mlx5::memic_pool>;

    void SetUp() override
    {
        uct_mlx5_layout_domain_params_t params{};
        params.field_mask = UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PD;
        params.pd         = pair.pd();
        ASSERT_EQ(uct_mlx5_layout_domain_open(&params, &_domain), UCS_OK);
        pool = new_pool();
    }

    // Nothing is left on the device or of the addresses.
    void TearDown() override
    {
        pool.reset();
        if (_domain != nullptr) {
            uct_mlx5_layout_domain_close(_domain);
        }
        EXPECT_EQ(addresses.bytes, 0u);
        EXPECT_NE(device_piece(device_bytes()), nullptr);
        EXPECT_TRUE(pair.close());
    }

    mlx5::domain& domain() const { return _domain->value; }

    pool_ptr new_pool(std::uint64_t chunk_bytes = 0)
    {
        return must(mlx5::memic_pool::create(domain(), addresses, {.chunk_bytes = chunk_bytes}));
    }

    std::uint64_t device_bytes() const
    {
        ibv_device_attr_ex device{};
        EXPECT_EQ(ibv_query_device_ex(pair.context(), nullptr, &device), 0);
        return device.max_dm_size;
    }

    // Device memory of somebody else; null: there is no room.
    struct free_dm {
        void operator()(ibv_dm* memory) const { EXPECT_EQ(ibv_free_dm(memory), 0); }
    };
    std::unique_ptr<ibv_dm, free_dm> device_piece(std::uint64_t length) const
    {
        ibv_alloc_dm_attr wanted{};
        wanted.length = length;
        return std::unique_ptr<ibv_dm, free_dm>(ibv_alloc_dm(pair.context(), &wanted));
    }

    static std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

    std::vector<std::uint8_t> contents(const mlx5::memic_allocation& memory) const
    {
        std::vector<std::uint8_t> bytes(memory.length);
        must(pool->copy_out(memory.address, memory.length, bytes.data()));
        return bytes;
    }

    std::uint64_t word(const mlx5::memic_allocation& memory) const
    {
        std::uint64_t value = 0;
        must(pool->copy_out(memory.address, sizeof(value), &value));
        return value;
    }

    // Registered bytes 1, 2, 3, ... modulo a prime.
    struct host_buffer {
        std::vector<std::uint8_t> bytes;
        ibv_mr* mr;

        ibv_sge piece(std::uint64_t offset, std::size_t length) const
        {
            return {number(bytes.data()) + offset, static_cast<std::uint32_t>(length), mr->lkey};
        }
    };
    std::unique_ptr<host_buffer> host_memory(std::size_t size)
    {
        auto made = std::make_unique<host_buffer>();
        made->bytes.resize(size);
        for (std::size_t i = 0; i < size; ++i) {
            made->bytes[i] = static_cast<std::uint8_t>(i % 251 + 1);
        }
        made->mr = pair.registered(made->bytes.data(), size);
        return made;
    }

    verbs_pair pair;
    counted_addresses addresses;
    pool_ptr pool;

private:
    uct_mlx5_layout_domain_h _domain = nullptr;
};

} // namespace ucxl::test
