// What a channel asks of a method, between two sessions of this process.
#include "tools/common/load_layout.h"
#include "tools/perf/channel.h"

#include <gtest/gtest.h>
#include <thread>

namespace ucxl::perf
{

namespace
{

class counting_method : public method
{
public:
    using method::method;

    wire_buffer outgoing(unsigned /*slot*/) const override { return buffer(source()); }
    wire_buffer incoming(unsigned /*slot*/) const override { return buffer(destination()); }
    unsigned received() const { return _received; }

protected:
    void unpack(unsigned /*slot*/) override { ++_received; }

private:
    static wire_buffer buffer(const layout_image& image)
    {
        return {.address = image.blocks().front().address, .count = image.packed_length()};
    }

    unsigned _received = 0;
};

constexpr unsigned num_messages = 5;

// One side of messages that go back and forth. Returns how often the method was told of one that has come.
unsigned exchange_with(oob_socket peer, carrier kind, const std::string& layout, bool is_first)
{
    session own(peer);
    own.open(base_features);
    const auto image = [&] {
        return layout_image::create(own.context(), tools::load_layout(layout), image_place::own);
    };
    image_pair images{.source = image(), .destination = image()};
    counting_method method(images);
    {
        const std::unique_ptr<channel> way = make_channel(kind, own, method, 1);
        way->begin_receive(num_messages);
        own.barrier();
        for (unsigned i = 0; i < 2 * num_messages; ++i) {
            if ((i % 2 == 0) == is_first) {
                own.finish(way->send(method.outgoing(0)), "send");
            } else {
                way->receive();
            }
        }
    }
    own.close();
    return method.received();
}

class channel_kinds : public testing::TestWithParam<carrier>
{
};

TEST_P(channel_kinds, tell_the_method_of_each_message_once)
{
    for (const char* const layout : {"64", "1M"}) { // eager and rendezvous
        auto [one, other] = oob_socket::pair();
        unsigned of_other = 0;
        std::jthread side([&] { of_other = exchange_with(std::move(other), GetParam(), layout, false); });
        EXPECT_EQ(exchange_with(std::move(one), GetParam(), layout, true), num_messages) << layout;
        side.join();
        EXPECT_EQ(of_other, num_messages) << layout;
    }
}

INSTANTIATE_TEST_SUITE_P(all, channel_kinds, testing::Values(carrier::tag, carrier::am, carrier::stream));

} // namespace

} // namespace ucxl::perf
