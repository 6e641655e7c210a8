// Messages between the launcher and one of its processes, over a pair of descriptors. The processes have them as their
// standard input and output, so that a DPU program can also be started by ssh or in an emulator.
//
//     control to_launcher = control::of_this_process();
//     to_launcher.send(word::ready, "");    const std::string handles = to_launcher.receive(word::handles);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace examples
{

enum class word : std::uint32_t {
    failed = 1, // of a process: why it ends
    address,    // of the worker of a DPU process
    addresses,  // of all of them
    handles,    // of a host's buffers, for its DPU process
    try_device, // to a DPU process: does the device answer?
    ready,
    done,   // of a DPU process: everything of its host has been moved
    moved,  // to a host
    counts, // of a process, as JSON; its last message
    end,    // to a process: all others have got so far, too
};

class control
{
public:
    // Takes over standard input and output. What is printed goes to standard error from then on.
    static control of_this_process();

    control(int input, int output) : _input(input), _output(output) {}
    ~control();
    control(control&& other) noexcept;
    control& operator=(const control&) = delete;

    // The other side has ended.
    struct end_of_messages : std::runtime_error {
        end_of_messages() : std::runtime_error("the other side of the messages has ended") {}
    };

    int input() const { return _input; }
    // Throws end_of_messages.
    void send(word kind, std::string_view payload) const;

    struct message {
        word kind;
        std::string payload;
    };
    // Waits for a message. Throws end_of_messages.
    message receive();
    // The same, and throws std::runtime_error if it is of another kind.
    std::string receive(word kind);
    // Without waiting for more: call read_some() when there is something to read, then take() until nothing is left.
    void read_some();
    std::optional<message> take();

private:
    int _input;
    int _output;
    std::string _received;
};

// Parts of a payload.
void append_number(std::string& payload, std::uint64_t number);
void append_text(std::string& payload, std::string_view text);
// They take from the front of `rest`, and throw if that is too short.
std::uint64_t take_number(std::string_view& rest);
std::string_view take_text(std::string_view& rest);

} // namespace examples
