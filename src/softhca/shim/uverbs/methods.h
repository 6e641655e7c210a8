// The methods of the interface, by the object they are about.
#pragma once

#include <span>

#include "spec.h"

namespace ucxl::softhca
{

std::span<const method_spec> device_methods();
std::span<const method_spec> pd_methods();
std::span<const method_spec> mr_methods();
std::span<const method_spec> cq_methods();
std::span<const method_spec> qp_methods();
std::span<const method_spec> srq_methods();
std::span<const method_spec> dm_methods();
std::span<const method_spec> uar_methods();
std::span<const method_spec> devx_methods();
std::span<const method_spec> devx_object_methods();
std::span<const method_spec> devx_event_methods();

std::span<const std::span<const method_spec>> all_methods();

} // namespace ucxl::softhca
