#include "fabric.h"

#include <algorithm>
#include <array>
#include <format>

#include "prm/decode.h"
#include "softhca/core/arena/device_failure.h"
#include "softhca/core/arena/limits.h"
#include "softhca/core/clients/client.h"
#include "softhca/core/commands/call.h"
#include "softhca/core/queues/adversarial_order.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint64_t guid_base = 0x5c0f7cca00000000; // locally administered

void write_status(std::span<std::byte> output, prm::command_status status)
{
    (void)prm::view<prm::any_output>::over(output)->set(prm::any_output::status, status);
}

std::expected<void, std::string> check_options(const fabric_options& options)
{
    if (options.devices == 0 || options.devices > max_devices) {
        return std::unexpected(std::format("devices: {} is not between 1 and {}", options.devices, max_devices));
    }
    const std::size_t most = max_functions / options.devices;
    if (options.functions_per_device == 0 || options.functions_per_device > most) {
        return std::unexpected(
            std::format("functions: {} per device is not between 1 and {} (all devices together, here {}, have at "
                        "most {})",
                        options.functions_per_device, most, options.devices, max_functions));
    }
    const unsigned functions = options.devices * options.functions_per_device;
    for (const fault_rule& rule : options.faults.rules) {
        if (rule.function >= functions) {
            return std::unexpected(
                std::format("fault: there is no mlx5_{}, mlx5_{} is the last one", rule.function, functions - 1));
        }
    }
    return {};
}

function_record describe_function(std::uint32_t index, std::uint32_t functions_per_device)
{
    function_record made;
    made.owner.life     = life::live;
    made.owner.function = static_cast<function_id>(index);
    made.vhca_id        = static_cast<std::uint16_t>(index + 1);
    made.lid            = static_cast<std::uint16_t>(index + 1);
    made.node_guid      = guid_base + (index + 1) * std::uint64_t{0x10000};
    made.port_guid      = made.node_guid + 1;
    made.device         = index / functions_per_device;
    made.image_guid     = guid_base + (made.device * functions_per_device + 1) * std::uint64_t{0x10000};
    return made;
}

// Changes at a time go to the schedule, all other faults are counted.
void plan(arena& memory, const fabric_options& options)
{
    std::size_t counted   = 0;
    std::size_t scheduled = 0;
    const auto add        = [&](change_kind kind, const fault_rule& rule, std::uint64_t time_ns) {
        memory.schedule.entries[scheduled++] = {
                   .kind = kind, .function = rule.function, .at_ns = options.now_ns + time_ns};
    };
    for (const fault_rule& rule : options.faults.rules) {
        if (rule.after_ns == 0) {
            memory.faults.rules[counted++] = rule;
            continue;
        }
        const change_kind kind = change_of(rule.kind);
        add(kind, rule, rule.after_ns);
        if (rule.amount != 0) {
            add(end_of(kind), rule, rule.after_ns + rule.amount);
        }
    }
    find_next(memory.schedule);
}

bool fits_arena(std::span<const std::byte> memory)
{
    return memory.size() >= sizeof(arena) && reinterpret_cast<std::uintptr_t>(memory.data()) % alignof(arena) == 0;
}

} // namespace

std::expected<void, std::string> fabric::format(std::span<std::byte> zeroed, const fabric_options& options)
{
    if (!fits_arena(zeroed)) {
        return std::unexpected(std::format("memory: {} bytes, page-aligned, are needed", sizeof(arena)));
    }
    if (auto checked = check_options(options); !checked) {
        return checked;
    }
    arena& memory    = *reinterpret_cast<arena*>(zeroed.data());
    memory.functions = options.devices * options.functions_per_device;
    memory.bytes     = sizeof(arena);
    memory.times     = static_cast<std::uint32_t>(options.costs);
    memory.card      = options.card;
    if (options.card.high_keys) {
        memory.mkeys.base = first_high_key;
    }
    plan(memory, options);
    if (options.adversarial_seed) {
        memory.adversarial = 1;
        memory.order_seed  = *options.adversarial_seed;
    }
    for (std::uint32_t i = 0; i < memory.functions; ++i) {
        memory.function_table[i] = describe_function(i, options.functions_per_device);
    }
    memory.function_table[0].netdev = options.netdev;

    memory.version = arena_version;
    memory.magic   = arena_magic;
    return {};
}

std::expected<std::unique_ptr<fabric>, std::string> fabric::attach(std::span<std::byte> memory, host& outside,
                                                                   const process_identity& process)
{
    if (!fits_arena(memory)) {
        return std::unexpected(std::format("memory: {} bytes, page-aligned, are needed", sizeof(arena)));
    }
    arena& shared = *reinterpret_cast<arena*>(memory.data());
    if (shared.magic != arena_magic || shared.version != arena_version || shared.bytes != sizeof(arena)) {
        return std::unexpected("memory: not a fabric of this version");
    }
    environment device{shared, outside, 0};
    client_id self = 0;
    {
        const locked guard(device);
        release_dead_clients(device);
        self = enter_client(shared, process.process, process.start_time);
        apply_due_changes(device);
    }
    if (self == 0) {
        return std::unexpected(std::format("processes: there are {} of them already", max_clients - 1));
    }
    return std::unique_ptr<fabric>(new fabric(shared, outside, self));
}

fabric::fabric(arena& memory, host& outside, client_id self)
    : _order(memory.adversarial != 0 ? std::make_unique<adversarial_order>(memory.order_seed) : nullptr),
      _device{.memory = memory, .outside = outside, .self = self, .order = _order.get()}
{
}

fabric::~fabric()
{
    const locked guard(_device);
    release_client(_device, _device.self);
}

client_id fabric::self() const
{
    return _device.self;
}

unsigned fabric::functions() const
{
    return _device.memory.functions;
}

function_record fabric::function(function_id function) const
{
    return function < _device.memory.functions ? _device.memory.function_table[function] : function_record{};
}

port_counters fabric::counters(function_id function) const
{
    return function < _device.memory.functions ? _device.memory.ports[function] : port_counters{};
}

prm::command_status fabric::command(function_id function, std::uint16_t uid, std::span<const std::byte> input,
                                    std::span<std::byte> output)
{
    const auto head = prm::const_view<prm::any_input>::over(input);
    if (output.size() < prm::any_output::size_bytes) {
        return prm::command_status::bad_output_length;
    }
    if (!head || function >= _device.memory.functions) {
        const auto status = head ? prm::command_status::bad_parameter : prm::command_status::bad_input_length;
        std::ranges::fill(output, std::byte{0});
        write_status(output, status);
        return status;
    }
    const prm::command opcode = head->get(prm::any_input::opcode);
    alignas(8) std::array<std::byte, longest_answer> answer{};
    command_call call{_device, _queue_pairs, function, uid, input, answer};
    prm::command_status status;
    {
        const locked guard(_device);
        status = execute_command(call, output.size(), opcode);
    }
    if (status == prm::command_status::ok) {
        const std::size_t length = std::min(output.size(), answer.size());
        std::ranges::copy(std::span(answer).first(length), output.begin());
        std::ranges::fill(output.subspan(length), std::byte{0});
    } else {
        std::ranges::fill(output, std::byte{0});
    }
    write_status(output, status);
    if (call.cost_ns != 0) {
        _device.outside.spend(call.cost_ns);
    }
    if (_device.outside.tracing()) {
        std::string text = std::format("function {} uid {}: {}", function, uid, prm::decode_command(input, output));
        if (call.reason != nullptr) {
            text += std::format("  refused: {}\n", call.reason);
        }
        _device.outside.trace(text);
    }
    return status;
}

} // namespace ucxl::softhca
