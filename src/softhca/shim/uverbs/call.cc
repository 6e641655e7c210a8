#include "call.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace ucxl::softhca
{

namespace
{

// Values of up to this length are in the attribute itself.
constexpr std::size_t in_place_bytes = sizeof(std::uint64_t);

const attribute_spec* spec_of(const method_spec& method, std::uint16_t id)
{
    const auto found = std::ranges::find(method.attributes, id, &attribute_spec::id);
    return found != method.attributes.end() ? &*found : nullptr;
}

bool devx_can_use(object_kind kind)
{
    return kind == object_kind::devx_object || kind == object_kind::cq || kind == object_kind::qp ||
           kind == object_kind::srq;
}

} // namespace

uverbs_call::~uverbs_call()
{
    if (_made != nullptr) {
        (void)_made->destroy();
    }
    if (_made_channel != nullptr) {
        file.device.drop_channel(_made_channel->number);
        file.outside.close_file(_made_channel->channel().reader);
    }
}

int uverbs_call::take(const method_spec& method, std::uint64_t attributes, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const std::uint64_t address = attributes + i * sizeof(ib_uverbs_attr);
        ib_uverbs_attr attribute{};
        if (!file.outside.read_user(&attribute, address, sizeof(attribute))) {
            return EFAULT;
        }
        if (const int error = take_one(method, attribute, address); error != 0) {
            return error;
        }
    }
    const bool complete = std::ranges::all_of(method.attributes, [this](const attribute_spec& spec) {
        return spec.needed == presence::optional || has(spec.id);
    });
    return complete ? 0 : EINVAL;
}

int uverbs_call::take_one(const method_spec& method, const ib_uverbs_attr& attribute, std::uint64_t address)
{
    const attribute_spec* const spec = spec_of(method, attribute.attr_id);
    if (spec == nullptr) {
        return (attribute.flags & UVERBS_ATTR_F_MANDATORY) != 0 ? EPROTONOSUPPORT : 0;
    }
    if (has(spec->id)) {
        return EINVAL;
    }
    given taken{.id = spec->id, .spec = spec, .input = {}, .output = {}};
    int error = 0;
    switch (spec->type) {
    case attribute_type::input:
        error = take_input(attribute, taken);
        break;
    case attribute_type::output:
        if (attribute.len < spec->min_length || attribute.len > spec->max_length) {
            error = EINVAL;
        }
        taken.output = {.address       = attribute.data,
                        .length        = attribute.len,
                        .flags_address = address + offsetof(ib_uverbs_attr, flags),
                        .flags         = attribute.flags};
        break;
    case attribute_type::object:
    case attribute_type::new_object:
        error = take_object(attribute, address, taken);
        break;
    case attribute_type::fd:
    case attribute_type::new_fd:
        if (attribute.attr_data.reserved != 0 || attribute.len != 0) {
            error = EINVAL;
        }
        taken.input  = {.data = attribute.data, .length = sizeof(attribute.data), .in_place = true};
        taken.output = {.address = address + offsetof(ib_uverbs_attr, data), .length = sizeof(attribute.data)};
        break;
    }
    if (error == 0) {
        _given.push_back(taken);
    }
    return error;
}

int uverbs_call::take_input(const ib_uverbs_attr& attribute, given& taken)
{
    const attribute_spec& spec = *taken.spec;
    if (attribute.attr_data.reserved != 0 || attribute.len < spec.min_length ||
        (!spec.zero_trailing && attribute.len > spec.max_length)) {
        return EINVAL;
    }
    taken.input = {.data = attribute.data, .length = attribute.len, .in_place = attribute.len <= in_place_bytes};
    return check_zero_behind(taken.input, spec.max_length);
}

int uverbs_call::check_zero_behind(const user_input& input, std::size_t known) const
{
    if (input.length <= known) {
        return 0;
    }
    std::vector<std::byte> behind(input.length - known);
    if (const int error = fetch(input, known, behind.data(), behind.size()); error != 0) {
        return error;
    }
    return std::ranges::any_of(behind, [](std::byte byte) { return byte != std::byte{0}; }) ? EOPNOTSUPP : 0;
}

int uverbs_call::take_object(const ib_uverbs_attr& attribute, std::uint64_t address, given& taken)
{
    if (attribute.attr_data.reserved != 0 || attribute.len != 0) {
        return EINVAL;
    }
    if (taken.spec->type == attribute_type::new_object) {
        const std::uint64_t handle = new_handle();
        return file.outside.write_user(address + offsetof(ib_uverbs_attr, data), &handle, sizeof(handle)) ? 0 : EFAULT;
    }
    if (attribute.data > UINT32_MAX) {
        return EINVAL;
    }
    return lookup(static_cast<std::uint32_t>(attribute.data), taken.spec->kind, taken.object);
}

void uverbs_call::take_write(const user_input& input, const user_output& output, const user_input& uhw_input,
                             const user_output& uhw_output)
{
    _given.push_back({.id = UVERBS_ATTR_CORE_IN, .input = input, .output = {}});
    _given.push_back({.id = UVERBS_ATTR_CORE_OUT, .input = {}, .output = output});
    _given.push_back({.id = UVERBS_ATTR_UHW_IN, .input = uhw_input, .output = {}});
    _given.push_back({.id = UVERBS_ATTR_UHW_OUT, .input = {}, .output = uhw_output});
}

const uverbs_call::given* uverbs_call::find(std::uint16_t id) const
{
    const auto found = std::ranges::find(_given, id, &given::id);
    return found != _given.end() ? &*found : nullptr;
}

std::size_t uverbs_call::length(std::uint16_t id) const
{
    const given* const attribute = find(id);
    return attribute == nullptr ? 0 : std::max(attribute->input.length, attribute->output.length);
}

int uverbs_call::channel_of(std::uint16_t id, event_format format, std::shared_ptr<event_file>& channel) const
{
    const given* const attribute = find(id);
    if (attribute == nullptr) {
        return 0;
    }
    const auto found = file.channel(static_cast<std::int64_t>(attribute->input.data));
    if (found == nullptr || found->format() != format) {
        return EBADF;
    }
    channel = found;
    return 0;
}

int uverbs_call::fetch(const user_input& input, std::size_t offset, void* to, std::size_t length) const
{
    if (input.in_place) {
        std::memcpy(to, reinterpret_cast<const std::byte*>(&input.data) + offset, length);
        return 0;
    }
    return file.outside.read_user(to, input.data + offset, length) ? 0 : EFAULT;
}

int uverbs_call::read_bytes(std::uint16_t id, void* to, std::size_t length)
{
    const given* const attribute = find(id);
    if (attribute == nullptr) {
        return 0;
    }
    const std::size_t copied = std::min(length, attribute->input.length);
    std::memset(to, 0, length);
    return copied == 0 ? 0 : fetch(attribute->input, 0, to, copied);
}

int uverbs_call::read_all(std::uint16_t id, std::vector<std::byte>& bytes)
{
    bytes.assign(length(id), std::byte{0});
    return read_bytes(id, bytes.data(), bytes.size());
}

int uverbs_call::read_growing(std::uint16_t id, void* to, std::size_t length)
{
    const given* const attribute = find(id);
    if (attribute == nullptr) {
        return 0;
    }
    const int error = check_zero_behind(attribute->input, length);
    return error != 0 ? error : read_bytes(id, to, length);
}

int uverbs_call::read_flags(std::uint16_t id, std::uint64_t allowed, std::uint32_t& flags)
{
    std::uint64_t value = 0;
    if (const int error = read(id, value); error != 0) {
        return error;
    }
    if ((value & ~allowed) != 0) {
        return EINVAL;
    }
    flags = static_cast<std::uint32_t>(value);
    return 0;
}

int uverbs_call::write_bytes(std::uint16_t id, const void* from, std::size_t length)
{
    const given* const attribute = find(id);
    if (attribute == nullptr) {
        return 0;
    }
    const std::size_t copied = std::min(length, attribute->output.length);
    if (copied != 0 && !file.outside.write_user(attribute->output.address, from, copied)) {
        return EFAULT;
    }
    if (attribute->output.flags_address == 0) {
        return 0;
    }
    const std::uint16_t flags = attribute->output.flags | UVERBS_ATTR_F_VALID_OUTPUT;
    return file.outside.write_user(attribute->output.flags_address, &flags, sizeof(flags)) ? 0 : EFAULT;
}

int uverbs_call::lookup(std::uint32_t handle, object_kind kind, uobject*& found) const
{
    found = file.find(handle);
    if (found == nullptr) {
        return ENOENT;
    }
    const bool right = kind == object_kind::any_devx ? devx_can_use(found->kind()) : found->kind() == kind;
    return right ? 0 : EINVAL;
}

std::uint32_t uverbs_call::new_handle()
{
    _handle = file.next_handle();
    return *_handle;
}

void uverbs_call::create(std::unique_ptr<uobject> object)
{
    _made = std::move(object);
}

int uverbs_call::destroy(uobject& object)
{
    return file.remove(object);
}

void uverbs_call::destroyed(uobject& object)
{
    file.erase(object);
}

int uverbs_call::create_channel(event_format format, std::optional<std::uint64_t> device_events)
{
    const event_channel channel = format == event_format::devx_answer ? file.outside.make_answer_channel(O_CLOEXEC)
                                                                      : file.outside.make_event_channel(O_CLOEXEC);
    if (channel.reader < 0) {
        return -channel.reader;
    }
    _made_channel         = std::make_shared<event_file>(file.outside, channel, format);
    const auto route      = _made_channel->route(device_events.value_or(0), 0);
    _made_channel->number = file.device.add_channel(file.function, route, device_events.has_value());
    return _made_channel->number != 0 ? 0 : EMFILE;
}

int uverbs_call::finish(int error)
{
    if (error != 0) {
        return error;
    }
    if (_made != nullptr) {
        file.add(*_handle, std::move(_made));
    }
    if (_made_channel != nullptr) {
        file.add_channel(_made_channel);
        _made_channel.reset();
    }
    return 0;
}

} // namespace ucxl::softhca
