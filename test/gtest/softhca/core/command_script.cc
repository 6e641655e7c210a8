#include "command_script.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "commander.h"
#include "invariants.h"
#include "prm/cq.h"
#include "prm/doorbell.h"
#include "prm/rq.h"
#include "softhca/core/commands/call.h"

namespace ucxl::softhca::test
{

namespace
{

using prm::command;
using prm::command_status;

// The bytes of the script, followed by zeros.
class reader
{
public:
    explicit reader(std::span<const std::byte> bytes) : _bytes(bytes) {}

    bool at_end() const { return _bytes.empty(); }

    std::uint8_t byte()
    {
        if (_bytes.empty()) {
            return 0;
        }
        const auto value = std::to_integer<std::uint8_t>(_bytes.front());
        _bytes           = _bytes.subspan(1);
        return value;
    }

    std::uint64_t number(unsigned bytes)
    {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < bytes; ++i) {
            value = value << 8 | byte();
        }
        return value;
    }

    std::span<const std::byte> take(std::size_t bytes)
    {
        const auto taken = _bytes.first(std::min(bytes, _bytes.size()));
        _bytes           = _bytes.subspan(taken.size());
        return taken;
    }

private:
    std::span<const std::byte> _bytes;
};

constexpr std::array plain_commands = {command::dealloc_pd,
                                       command::dealloc_uar,
                                       command::destroy_umem,
                                       command::destroy_mkey,
                                       command::query_mkey,
                                       command::destroy_cq,
                                       command::query_cq,
                                       command::destroy_rmp,
                                       command::query_rmp,
                                       command::destroy_qp,
                                       command::query_qp,
                                       command::to_err_qp,
                                       command::to_rst_qp,
                                       command::query_lag,
                                       command::alloc_pd,
                                       command::drain_dct,
                                       command::destroy_dct,
                                       command::query_dct,
                                       command::arm_dct_for_key_violation};

constexpr std::array transitions = {command::rst2init_qp, command::init2init_qp, command::init2rtr_qp,
                                    command::rtr2rts_qp,  command::rts2rts_qp,   command::sqerr2rts_qp,
                                    command::sqd_rts_qp};

// All commands that the device has.
const std::vector<command_entry>& all_commands()
{
    static const auto all = [] {
        std::vector<command_entry> made;
        for (const command_entries family : command_families()) {
            made.insert(made.end(), family.begin(), family.end());
        }
        return made;
    }();
    return all;
}

class script_run
{
public:
    explicit script_run(std::span<const std::byte> script) : _script(script) {}

    script_result run();

private:
    static constexpr std::size_t num_processes = 3;
    static constexpr unsigned max_steps        = 200;

    void step();
    commander pick();
    void send(commander& by, std::vector<std::byte> input);
    void change(std::vector<std::byte>& input);
    std::uint32_t pick_number();
    void create(commander& by);
    void create_key(commander& by);
    void create_special_key(commander& by, std::uint8_t kind);
    void modify(commander& by);
    void modify_queue(commander& by);
    void any_command(commander& by);
    void replace_memory(commander& by);
    void open_and_alias(commander& by);
    void end_process();
    void ring(commander& by);
    void post(commander& by);
    void device_memory(commander& by);

    reader _script;
    test_machine _machine{{.devices = 2, .functions_per_device = 2}};
    std::vector<test_process*> _processes;
    std::vector<std::uint32_t> _numbers; // numbers of objects of any kind, given by the device
    script_result _result;
};

commander script_run::pick()
{
    const std::uint8_t choice = _script.byte();
    return {*_processes[choice % num_processes], static_cast<function_id>(choice / 4 % 4),
            static_cast<std::uint16_t>(choice / 16 % 3)};
}

void script_run::send(commander& by, std::vector<std::byte> input)
{
    ++_result.commands;
    if (by.send(input) != command_status::ok) {
        return;
    }
    ++_result.succeeded;
    const std::uint32_t number = by.out<prm::alloc_pd_out>().get(prm::alloc_pd_out::pd);
    if (number != 0 && _numbers.size() < 64) {
        _numbers.push_back(number);
    }
}

// Changes up to three bytes.
void script_run::change(std::vector<std::byte>& input)
{
    for (unsigned times = _script.byte() % 4; times != 0; --times) {
        const std::size_t at = _script.number(2) % input.size();
        input[at]            = static_cast<std::byte>(_script.byte());
    }
}

std::uint32_t script_run::pick_number()
{
    const std::uint8_t choice = _script.byte();
    if (choice < 0xe0 && !_numbers.empty()) {
        return _numbers[choice % _numbers.size()];
    }
    return static_cast<std::uint32_t>(_script.number(3));
}

void script_run::create_key(commander& by)
{
    const std::uint8_t kind = _script.byte();
    if (kind >= 0xc0) {
        return create_special_key(by, kind);
    }
    const bool of_memory = kind % 2 != 0;
    const auto memory    = by.process().allocate(4096);
    auto input           = by.key_input(by.alloc_pd(), memory);
    if (!of_memory) {
        std::array<std::byte, 64> entries{};
        std::ranges::copy(_script.take(entries.size()), entries.begin());
        input = by.klm_input(by.alloc_pd(), std::span(entries).first(_script.byte() % 5 * 16), _script.byte());
    }
    change(input.bytes);
    send(by, input.bytes);
}

// Of device memory, of blocks of one length, or of all addresses, which only the kernel may have.
void script_run::create_special_key(commander& by, std::uint8_t kind)
{
    auto input         = by.key_input(by.alloc_pd(), by.process().allocate(64));
    const auto context = (*input).at(prm::create_mkey_in::memory_key);
    (*input).put<false>(prm::create_mkey_in::mkey_umem_valid);
    switch (kind % 3) {
    case 0: {
        const std::uint64_t bytes = 1 + _script.byte();
        const auto made           = by.process().device().alloc_memic(by.function(), bytes, 6);
        prm::set_access_mode(context, prm::mkey_access_mode::memic);
        context.put(prm::mkc::start_addr, made ? *made : _script.number(2));
        context.put(prm::mkc::len, bytes);
        break;
    }
    case 1: {
        const std::uint32_t below = pick_number();
        input = by.klm_input(by.alloc_pd(), std::vector<std::byte>(std::size_t{16} * (1 + _script.byte() % 4)), 4);
        const auto ksm = (*input).at(prm::create_mkey_in::memory_key);
        prm::set_access_mode(ksm, prm::mkey_access_mode::ksm);
        ksm.put(prm::mkc::a, _script.byte() % 2 != 0);
        (void)ksm.set(prm::mkc::log_entity_size, _script.byte() % 16);
        for (std::size_t at = prm::create_mkey_in::size_bytes; at + 16 <= input.bytes.size(); at += 16) {
            input.bytes[at + 5] = static_cast<std::byte>(below >> 8); // its key is index << 8 | variant
            input.bytes[at + 6] = static_cast<std::byte>(below);
        }
        break;
    }
    default:
        prm::set_access_mode(context, prm::mkey_access_mode::physical_address);
        context.put(prm::mkc::length64, _script.byte() % 2 != 0);
    }
    change(input.bytes);
    send(by, input.bytes);
}

void script_run::create(commander& by)
{
    const std::uint8_t kind = _script.byte();
    const unsigned size     = _script.byte() % 6;
    std::vector<std::byte> input;
    switch (kind % 8) {
    case 0:
        return create_key(by);
    case 1:
        input = by.cq_input(size).bytes;
        break;
    case 2:
        input = by.rmp_input(size, 5).bytes;
        break;
    case 3:
        input = by.qp_input({.service = static_cast<prm::qp_service>(_script.byte() % 3), .log_send = size}).bytes;
        break;
    case 4:
        input = by.qp_input({.srq = by.create_srq()}).bytes;
        break;
    case 5:
        input = by.qp_input({.service = prm::qp_service::dci, .log_send = size}).bytes;
        break;
    case 6:
        input = by.dct_input(_script.byte()).bytes;
        break;
    default:
        return open_and_alias(by);
    }
    change(input);
    send(by, input);
}

void script_run::modify(commander& by)
{
    const command opcode    = transitions[_script.byte() % transitions.size()];
    const std::uint32_t qpn = pick_number();
    auto input =
        by.transition(opcode, qpn & 0xffffff, static_cast<std::uint16_t>(by.function() + 1), pick_number() & 0xffffff);
    change(input.bytes);
    send(by, input.bytes);
}

// Another size or other events of a completion queue, or the limit of a shared receive queue.
void script_run::modify_queue(commander& by)
{
    if (_script.byte() % 2 != 0) {
        mailbox<prm::modify_rmp_in> input;
        (*input).put<command::modify_rmp>(prm::modify_rmp_in::opcode);
        (void)(*input).set(prm::modify_rmp_in::rmpn, pick_number() & 0xffffff);
        (void)(*input).set(prm::modify_rmp_in::rmp_state, prm::rmp_state::ready);
        const auto context = (*input).at(prm::modify_rmp_in::rmp_context);
        (void)context.set(prm::rmpc::state, _script.byte() % 4 == 0 ? prm::rmp_state::error : prm::rmp_state::ready);
        (*input).put(prm::modify_rmp_in::modify_bitmask, std::uint64_t{_script.byte()} % 3);
        context.at(prm::rmpc::wq).put(prm::wq::lwm, static_cast<std::uint16_t>(_script.byte() % 64));
        change(input.bytes);
        return send(by, input.bytes);
    }
    const unsigned log_size = _script.byte() % 7;
    mailbox<prm::modify_cq_in> input;
    (*input).put<command::modify_cq>(prm::modify_cq_in::opcode);
    (void)(*input).set(prm::modify_cq_in::cqn, pick_number() & 0xffffff);
    (*input).put(prm::modify_cq_in::op_mod, static_cast<std::uint16_t>(_script.byte() % 3));
    (void)(*input).set(prm::modify_cq_in::modify_field_select, static_cast<prm::cq_modify>(_script.byte()));
    (*input).put(prm::modify_cq_in::cq_umem_id, by.umem(std::size_t{64} << log_size).umem);
    (*input).put<true>(prm::modify_cq_in::cq_umem_valid);
    (void)(*input).at(prm::modify_cq_in::cqc).set(prm::cqc::log_cq_size, log_size);
    change(input.bytes);
    send(by, input.bytes);
}

// One that the device has, whichever it is: zeros, but for some bytes and the numbers of some objects.
void script_run::any_command(commander& by)
{
    const command_entry& chosen = all_commands()[_script.byte() % all_commands().size()];
    std::vector<std::byte> input(chosen.input_bytes + _script.byte() % 5 * std::size_t{16});
    (void)prm::view<prm::any_input>::over(input)->set(prm::any_input::opcode, chosen.opcode);
    for (unsigned times = _script.byte() % 12; times != 0; --times) {
        const std::size_t at = _script.number(2) % input.size();
        if (_script.byte() % 2 != 0) {
            input[at] = static_cast<std::byte>(_script.byte());
            continue;
        }
        const std::uint32_t number = pick_number();
        for (std::size_t i = 0; i < 3 && at + i < input.size(); ++i) {
            input[at + i] = static_cast<std::byte>(number >> (16 - 8 * i));
        }
    }
    send(by, input);
}

// What the kernel does when a process registers other memory for a key that it has.
void script_run::replace_memory(commander& by)
{
    auto input = by.key_input(by.alloc_pd(), by.process().allocate(64));
    change(input.bytes);
    ++_result.commands;
    const std::uint32_t key = pick_number() << 8 | _script.byte() % 2;
    _result.succeeded += by.process().device().replace_region(by.function(), key, input.bytes) == command_status::ok;
}

void script_run::open_and_alias(commander& by)
{
    const std::uint32_t key = by.create_key(by.alloc_pd(), by.process().allocate(128));
    prm::storage<prm::allow_other_vhca_access_in> open;
    (*open).put<command::allow_other_vhca_access>(prm::allow_other_vhca_access_in::opcode);
    (*open).put<prm::object_type::mkey>(prm::allow_other_vhca_access_in::object_type_to_be_accessed);
    (*open).put(prm::allow_other_vhca_access_in::object_id_to_be_accessed, key >> 8);
    send(by, {open.bytes.begin(), open.bytes.end()});

    commander other(*_processes[_script.byte() % num_processes], static_cast<function_id>(_script.byte() % 4), 1);
    prm::storage<prm::create_alias_object_in> input;
    const auto alias = (*input).at(prm::create_alias_object_in::alias);
    prm::view<prm::any_input>::over(input.bytes)->put<command::create_general_object>(prm::any_input::opcode);
    (*input).put<prm::object_type::mkey>(prm::create_alias_object_in::obj_type);
    (*input).put<true>(prm::create_alias_object_in::alias_object);
    alias.put(prm::alias_context::vhca_id_to_be_accessed, static_cast<std::uint16_t>(by.function() + 1));
    alias.put(prm::alias_context::object_id_to_be_accessed, key >> 8);
    alias.put(prm::alias_context::metadata_1, other.alloc_pd());
    std::vector<std::byte> bytes(input.bytes.begin(), input.bytes.end());
    change(bytes);
    send(other, bytes);
}

void script_run::end_process()
{
    const std::uint8_t how = _script.byte();
    test_process*& one     = _processes[how % num_processes];
    switch (how / 16 % 3) {
    case 0:
        one->stop();
        break;
    case 1:
        one->kill();
        break;
    default:
        one->kill_with_lock();
        break;
    }
    one = &_machine.start();
}

void script_run::ring(commander& by)
{
    const std::uint32_t uar  = _script.byte() % 16;
    const std::size_t offset = _script.byte() % 2 != 0 ? prm::uar_send_doorbell_offset : prm::uar_cq_doorbell_offset;
    by.process().device().doorbell(uar, offset + _script.byte() % 16 * 8, _script.number(8));
}

// Writes bytes to the beginning of a send queue, and a new producer counter.
void script_run::post(commander& by)
{
    const qp_record* const qp = _machine.memory().qps.find(pick_number() & 0xffffff);
    const auto bytes          = _script.take(64);
    const std::uint64_t count = _script.byte() % 4;
    if (qp == nullptr || qp->owner.client != by.process().id() || !qp->send.present) {
        return;
    }
    std::byte* const queue  = by.process().at(qp->buffer.address + qp->send.offset, 64);
    std::byte* const record = by.process().at(qp->doorbell.address, 8);
    if (queue == nullptr || record == nullptr) {
        return;
    }
    std::ranges::copy(bytes, queue);
    prm::view<prm::qp_doorbell_record>::over(std::span(record, 8))
        ->put(prm::qp_doorbell_record::send_counter, static_cast<std::uint16_t>(qp->send.consumed + count));
    by.process().device().progress();
}

void script_run::device_memory(commander& by)
{
    fabric& device = by.process().device();
    if (_script.byte() % 2 == 0) {
        (void)device.alloc_memic(by.function(), _script.number(3), _script.byte() % 8);
    } else {
        (void)device.free_memic(by.function(), _script.byte() % 64 * memic_page_bytes);
    }
}

void script_run::step()
{
    const std::uint8_t choice = _script.byte();
    commander by              = pick();
    switch (choice) { // the others as they have always been, for inputs that were found before
    case 0xfc:
        return replace_memory(by);
    case 0xfd:
        return modify_queue(by);
    case 0xfe:
    case 0xff:
        return any_command(by);
    default:
        break;
    }
    switch (choice % 10) {
    case 0: {
        const auto raw = _script.take(_script.byte());
        return send(by, {raw.begin(), raw.end()});
    }
    case 1:
    case 2:
    case 3:
        return create(by);
    case 4: {
        const command opcode = plain_commands[_script.byte() % plain_commands.size()];
        ++_result.commands;
        _result.succeeded += by.plain(opcode, pick_number() & 0xffffff) == command_status::ok;
        return;
    }
    case 5:
        return modify(by);
    case 6:
        return end_process();
    case 7:
        return ring(by);
    case 8:
        return post(by);
    default:
        device_memory(by);
        return _machine.advance(_script.number(4));
    }
}

script_result script_run::run()
{
    for (std::size_t i = 0; i < num_processes; ++i) {
        _processes.push_back(&_machine.start());
    }
    for (unsigned steps = 0; steps < max_steps && !_script.at_end(); ++steps) {
        try {
            step();
        } catch (const std::runtime_error&) { // NOLINT(bugprone-empty-catch)
            // The device refused a part: the tables are full, or the function does not exist.
        }
        // The next holder of the lock repairs what the last one left.
        _processes[0]->device().drop_channel(0);
        _result.wrong = broken_invariants(_machine.memory());
        if (!_result.wrong.empty()) {
            return _result;
        }
    }
    for (test_process* const process : _processes) {
        process->stop();
    }
    // A new process finds the killed ones.
    _machine.start().stop();
    _result.wrong = what_is_left(_machine.memory());
    return _result;
}

} // namespace

script_result run_command_script(std::span<const std::byte> script)
{
    return script_run(script).run();
}

} // namespace ucxl::softhca::test
