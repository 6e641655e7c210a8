// The methods of the uverbs interface, by object.
#pragma once

#include <span>

#include "spec.h"

namespace ucxl::softhca
{

std::span<const method_spec> context_methods();
std::span<const method_spec> device_methods();
std::span<const method_spec> pd_methods();
std::span<const method_spec> mr_methods();
std::span<const method_spec> cq_methods();
std::span<const method_spec> qp_methods();
std::span<const method_spec> srq_methods();
std::span<const method_spec> dm_methods();
std::span<const method_spec> uar_methods();
std::span<const method_spec> devx_methods();

} // namespace ucxl::softhca
